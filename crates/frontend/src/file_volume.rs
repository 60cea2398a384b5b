//! A file or a block device as a volume: what the page cache can do at once is done on the calling thread, the rest
//! on tokio's pool for blocking work. It takes no snapshots and keeps no copies; data movers and tests use it.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwritev2};
use tokio::sync::watch;

use crate::zeroes::zeroes;
use crate::{AllocationRun, Volume, VolumeError};

/// Up to this size a copy out of the page cache is shorter than waking another thread.
const INLINE: usize = 256 << 10;
/// An answer about allocation ends after this many runs; the caller asks on from there.
const MAX_RUNS: usize = 4096;

#[derive(Clone)]
pub struct FileVolume {
    file: Arc<File>,
    size: Arc<watch::Sender<u64>>,
}

impl FileVolume {
    /// Opens a file or block device that exists, for reading and writing.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let size = if file.metadata()?.file_type().is_block_device() {
            seek(&file, SeekFrom::End(0))?
        } else {
            file.metadata()?.len()
        };
        Ok(Self { file: Arc::new(file), size: Arc::new(watch::Sender::new(size)) })
    }

    /// Makes a sparse file of this size, or opens the one that is there and makes it this size.
    pub fn create(path: &Path, size: u64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len(size)?;
        Ok(Self { file: Arc::new(file), size: Arc::new(watch::Sender::new(size)) })
    }

    /// Grows the file; frontends that can say so tell their users.
    pub fn expand(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)?;
        self.size.send_replace(size);
        Ok(())
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&File) -> io::Result<T> + Send + 'static,
    ) -> Result<T, VolumeError> {
        let file = self.file.clone();
        match tokio::task::spawn_blocking(move || work(&file)).await {
            Ok(result) => result.map_err(|error| volume_error(&error)),
            Err(_) => Err(VolumeError::ShuttingDown),
        }
    }
}

impl Volume for FileVolume {
    fn size(&self) -> watch::Receiver<u64> {
        self.size.subscribe()
    }

    async fn read(&self, offset: u64, len: u32) -> Result<Bytes, VolumeError> {
        let len = len as usize;
        if len <= INLINE {
            let mut buffer = vec![0; len];
            let slices = &mut [IoSliceMut::new(&mut buffer)];
            if preadv2(&*self.file, slices, offset, ReadWriteFlags::NOWAIT) == Ok(len) {
                return Ok(buffer.into());
            }
        }
        self.blocking(move |file| read_exact(file, offset, len)).await
    }

    async fn write(&self, offset: u64, data: Bytes, durable: bool) -> Result<(), VolumeError> {
        if !durable && data.len() <= INLINE {
            let written = pwritev2(&*self.file, &[IoSlice::new(&data)], offset, ReadWriteFlags::NOWAIT);
            if written == Ok(data.len()) {
                return Ok(());
            }
        }
        self.blocking(move |file| write_all(file, offset, &data, durable)).await
    }

    async fn zero(&self, offset: u64, len: u64, allocate: bool, durable: bool) -> Result<(), VolumeError> {
        self.blocking(move |file| {
            zero_range(file, offset, len, allocate)?;
            if durable { file.sync_data() } else { Ok(()) }
        })
        .await
    }

    async fn flush(&self) -> Result<(), VolumeError> {
        self.blocking(File::sync_data).await
    }

    async fn allocation(&self, offset: u64, len: u64) -> Result<Vec<AllocationRun>, VolumeError> {
        self.blocking(move |file| allocation_runs(file, offset, offset + len)).await
    }
}

fn read_exact(file: &File, offset: u64, len: usize) -> io::Result<Bytes> {
    let mut buffer = Vec::with_capacity(len);
    while buffer.len() < len {
        let at = offset + buffer.len() as u64;
        match pread(file, spare_capacity(&mut buffer), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The allocator may have given more than was asked for, and the file may go on.
    buffer.truncate(len);
    Ok(buffer.into())
}

fn write_all(file: &File, offset: u64, data: &[u8], durable: bool) -> io::Result<()> {
    let flags = if durable { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
    let mut done = 0;
    while done < data.len() {
        match pwritev2(file, &[IoSlice::new(&data[done..])], offset + done as u64, flags) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn zero_range(file: &File, offset: u64, len: u64, allocate: bool) -> io::Result<()> {
    let how = if allocate { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE };
    match fallocate(file, how | FallocateFlags::KEEP_SIZE, offset, len) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => write_zeroes(file, offset, len),
        result => Ok(result?),
    }
}

/// For file systems that cannot punch holes, and for ranges a block device cannot discard.
fn write_zeroes(file: &File, mut offset: u64, len: u64) -> io::Result<()> {
    let end = offset + len;
    while offset < end {
        let step = (end - offset).min(1 << 20);
        write_all(file, offset, &zeroes(step as usize), false)?;
        offset += step;
    }
    Ok(())
}

fn allocation_runs(file: &File, mut offset: u64, end: u64) -> io::Result<Vec<AllocationRun>> {
    let mut runs = Vec::new();
    while offset < end && runs.len() < MAX_RUNS {
        let (data, hole) = match seek(file, SeekFrom::Data(offset)) {
            Ok(data) if data > offset => (data.min(end), true),
            Ok(_) => (seek(file, SeekFrom::Hole(offset))?.min(end), false),
            Err(Errno::NXIO) => (end, true),
            // A block device does not know; all of it counts as data.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => (end, false),
            Err(error) => return Err(error.into()),
        };
        runs.push(AllocationRun { len: data - offset, hole });
        offset = data;
    }
    Ok(runs)
}

fn volume_error(error: &io::Error) -> VolumeError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            VolumeError::NoSpace
        }
        io::ErrorKind::InvalidInput => VolumeError::Invalid,
        _ => {
            tracing::warn!(%error, "the file behind a volume failed");
            VolumeError::Io
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read_and_what_is_zeroed_is_a_hole() {
        let directory = tempfile::tempdir().unwrap();
        let volume = FileVolume::create(&directory.path().join("disk"), 4 << 20).unwrap();
        let data = Bytes::from(vec![7; 1 << 20]);
        volume.write(1 << 20, data.clone(), false).await.unwrap();
        volume.write(3, Bytes::from_static(b"odd"), true).await.unwrap();
        assert_eq!(volume.read(1 << 20, 1 << 20).await.unwrap(), data);
        assert_eq!(&volume.read(2, 5).await.unwrap()[..], b"\0odd\0");

        volume.zero(1 << 20, 1 << 19, false, true).await.unwrap();
        let runs = volume.allocation(1 << 20, 1 << 20).await.unwrap();
        let (hole, data) =
            (AllocationRun { len: 1 << 19, hole: true }, AllocationRun { len: 1 << 19, hole: false });
        assert_eq!(runs, [hole, data]);
        assert_eq!(volume.read(1 << 20, 16).await.unwrap(), zeroes(16));
        volume.flush().await.unwrap();
    }

    #[tokio::test]
    async fn expanding_is_seen_by_those_who_watch() {
        let directory = tempfile::tempdir().unwrap();
        let volume = FileVolume::create(&directory.path().join("disk"), 4096).unwrap();
        let watcher = volume.size();
        volume.expand(8192).unwrap();
        assert_eq!(*watcher.borrow(), 8192);
        assert_eq!(volume.read(4096, 4096).await.unwrap(), zeroes(4096));
    }
}
