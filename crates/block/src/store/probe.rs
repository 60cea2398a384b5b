//! Whether a file system tells exactly which blocks of a sparse file hold data. A replica's content depends on it.

use std::io;

use super::error::{Result, StoreError};
use crate::disk::{Disk, File};
use crate::geometry::BLOCK;

const SCRATCH: &str = "probe.tmp";

/// Writes one block beyond a hole in a scratch file and looks at what is said to be there.
pub(super) fn probe(disk: &dyn Disk) -> Result<()> {
    let unsuitable = |reason: String| StoreError::UnsuitableFileSystem { directory: disk.describe(), reason };
    let block = disk.block_size().map_err(StoreError::io("ask for the file system's block size"))?;
    if block != BLOCK {
        let advice = if block < BLOCK { " (make it anew with `mkfs.ext4 -b 4096`)" } else { "" };
        return Err(unsuitable(format!("its blocks have {block} bytes instead of {BLOCK}{advice}")));
    }
    let outcome = try_out(disk);
    let removed = match disk.remove(SCRATCH) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    match outcome.and_then(|answer| removed.map(|()| answer)) {
        Ok(None) => Ok(()),
        Ok(Some(reason)) => Err(unsuitable(reason)),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            Err(unsuitable(format!("it cannot keep sparse files ({error})")))
        }
        Err(error) => Err(StoreError::io(format!("try out the file system of {}", disk.describe()))(error)),
    }
}

fn try_out(disk: &dyn Disk) -> io::Result<Option<String>> {
    match disk.remove(SCRATCH) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(SCRATCH)?;
    file.set_len(1 << 20)?;
    let written = 16 * BLOCK..17 * BLOCK;
    file.write_at(written.start, &[0xa5; BLOCK as usize])?;
    for moment in ["after a write", "after a sync"] {
        let found = extents(&*file)?;
        if found != [written.clone()] {
            return Ok(Some(format!("{moment} of block 16 it says that data is at {found:?}")));
        }
        file.sync()?;
    }
    file.punch(written)?;
    let found = extents(&*file)?;
    Ok((!found.is_empty()).then(|| format!("after a hole was punched it says that data is at {found:?}")))
}

fn extents(file: &dyn File) -> io::Result<Vec<std::ops::Range<u64>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(run) = file.next_data(at)? {
        at = run.end;
        found.push(run);
    }
    Ok(found)
}
