//! A real directory on a real file system. Every call is one or two system calls; nothing is cached here.

use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::ops::Range;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};

use super::{Disk, File, ImageIdentity, LockError, LockGuard, Space};
use crate::geometry::BLOCK;

/// A lock that is held is tried again for half a second.
const LOCK_TRIES: u32 = 25;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

const LOCK_FILE: &str = "lock";

pub struct Directory {
    path: PathBuf,
    /// Names are resolved against this, so that renaming the directory while it is open changes nothing.
    fd: OwnedFd,
}

impl Directory {
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path: path.to_owned(), fd })
    }

    /// Makes the directory if it is not there; the new name is durable.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        if !path.is_dir() {
            fs::create_dir_all(path)?;
            let parent =
                path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            fs::File::open(parent)?.sync_all()?;
        }
        Self::open(path)
    }

    fn open_with(&self, name: &str, flags: OFlags) -> io::Result<fs::File> {
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = rustix::fs::openat(&self.fd, name, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, mode)?;
        Ok(fs::File::from(fd))
    }

    fn holder(&self) -> Option<u32> {
        let mut text = String::new();
        self.open_with(LOCK_FILE, OFlags::RDONLY).ok()?.read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }
}

impl Disk for Directory {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn lock(&self) -> Result<LockGuard, LockError> {
        let mut file = self.open_with(LOCK_FILE, OFlags::RDWR | OFlags::CREATE)?;
        let mut tries = 0;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                // A predecessor that is just ending, or a child of it on its way to another program, still has it.
                Err(Errno::WOULDBLOCK) if tries < LOCK_TRIES => {
                    tries += 1;
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(Errno::WOULDBLOCK) => return Err(LockError::Held(self.holder())),
                Err(error) => return Err(LockError::Io(error.into())),
            }
        }
        // The process id is only there to be named to people; a full disk must not keep a volume from opening.
        if let Err(error) = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| {
            writeln!(file, "{}", std::process::id())?;
            file.flush()
        }) {
            tracing::warn!(directory = %self.path.display(), %error, "cannot note who holds the lock");
        }
        Ok(Box::new(file))
    }

    fn lock_holder(&self) -> io::Result<Option<u32>> {
        let meta = match self.open_with(LOCK_FILE, OFlags::RDONLY) {
            Ok(file) => file.metadata()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        let place = format!("{major:02x}:{minor:02x}:{}", meta.ino());
        let locks = fs::read_to_string("/proc/locks")?;
        let held =
            locks.lines().any(|line| line.contains("FLOCK") && line.split_whitespace().any(|at| at == place));
        Ok(if held { self.holder() } else { None })
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile(self.open_with(name, OFlags::RDWR)?)))
    }

    fn open_read_only(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile(self.open_with(name, OFlags::RDONLY)?)))
    }

    fn open_image(&self, path: &str) -> io::Result<(Arc<dyn File>, ImageIdentity)> {
        let file = fs::File::open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let modified = jiff::Timestamp::try_from(meta.modified()?).map_err(io::Error::other)?;
        Ok((Arc::new(RealFile(file)), ImageIdentity { size: meta.len(), modified }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile(self.open_with(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?)))
    }

    fn link(&self, name: &str, into: &dyn Disk) -> io::Result<()> {
        let any: &dyn std::any::Any = into;
        let into = any.downcast_ref::<Self>().ok_or(io::ErrorKind::CrossesDevices)?;
        Ok(rustix::fs::linkat(&self.fd, name, &into.fd, name, AtFlags::empty())?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    fn space(&self) -> io::Result<Space> {
        let stat = rustix::fs::fstatvfs(&self.fd)?;
        Ok(Space { free: stat.f_bavail * stat.f_frsize, total: stat.f_blocks * stat.f_frsize })
    }

    fn block_size(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstatvfs(&self.fd)?.f_frsize)
    }

    fn boot_id(&self) -> io::Result<String> {
        Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
    }
}

struct RealFile(fs::File);

impl RealFile {
    /// Reads until the buffer is full or the file ends; answers how much it got.
    fn fill(&self, mut offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match rustix::io::pread(&self.0, &mut into[done..], offset) {
                Ok(0) => break,
                Ok(count) => {
                    done += count;
                    offset += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }
}

/// The most that one system call writes. The kernel keeps a write in one folio as large as the write, and every later
/// overwrite of a block in it costs time that grows with the folio: 4 KiB into one of 1 MiB took five times as long
/// on ext4 as into one of 64 KiB.
const PIECE: usize = 64 << 10;

impl File for RealFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let done = self.fill(offset, into)?;
        into[done..].fill(0);
        Ok(())
    }

    fn read_cached(&self, offset: u64, into: &mut [u8]) -> io::Result<bool> {
        let mut slices = [io::IoSliceMut::new(into)];
        match rustix::io::preadv2(&self.0, &mut slices, offset, ReadWriteFlags::NOWAIT) {
            Ok(count) => Ok(count == into.len()),
            // Some file systems cannot tell; then a read may always have to wait.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, mut offset: u64, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let piece = &data[..data.len().min(PIECE)];
            match rustix::io::pwrite(&self.0, piece, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    data = &data[count..];
                    offset += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.0, flags, range.start, range.end - range.start)?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(&self.0)?)
    }

    fn send_ahead(&self, range: Range<u64>) {
        if let Err(error) = begin_write_back(&self.0, range) {
            tracing::debug!(%error, "a hint to write pages back was refused");
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let start = match rustix::fs::seek(&self.0, SeekFrom::Data(offset)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(&self.0, SeekFrom::Hole(start))?;
        Ok(Some(start / BLOCK * BLOCK..end.next_multiple_of(BLOCK)))
    }

    fn allocated(&self) -> io::Result<u64> {
        // st_blocks counts 512 bytes, whatever the file system's block size.
        Ok(self.0.metadata()?.blocks() * 512)
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.nlink())
    }

    fn forget(&self, range: Range<u64>) {
        let len = std::num::NonZeroU64::new(range.end - range.start);
        if let Err(error) = rustix::fs::fadvise(&self.0, range.start, len, Advice::DontNeed) {
            tracing::debug!(%error, "a hint to the page cache was refused");
        }
    }
}

/// `sync_file_range`, of which only the first step is asked for: to hand dirty pages to the disk.
#[allow(unsafe_code)]
fn begin_write_back(file: &fs::File, range: Range<u64>) -> io::Result<()> {
    let out_of_range = |_| io::ErrorKind::InvalidInput;
    let offset = i64::try_from(range.start).map_err(out_of_range)?;
    let len = i64::try_from(range.end - range.start).map_err(out_of_range)?;
    // SAFETY: the call takes numbers only, and the descriptor is open for as long as `file` is borrowed.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
