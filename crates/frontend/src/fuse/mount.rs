//! Mounting and unmounting, and what a process that was killed left behind.
//! Every call here may wait for the process that serves the mount, so none may run on the thread that serves one.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

#[derive(Debug, thiserror::Error)]
pub enum MountError {
    #[error("cannot open /dev/fuse: {0}; this frontend needs the kernel's FUSE")]
    NoFuse(io::Error),
    #[error("{path} is mounted and served by another process; stop that one first")]
    Busy { path: PathBuf },
    #[error("cannot mount on {path}: {source}")]
    Mount { path: PathBuf, source: io::Error },
}

/// Makes the directory if need be, clears away a dead mount, and mounts; the kernel's descriptor.
pub(super) fn mount_at(path: &Path, name: &str) -> Result<OwnedFd, MountError> {
    let failed = |source: io::Error| MountError::Mount { path: path.into(), source };
    clear(path)?;
    std::fs::create_dir_all(path).map_err(failed)?;
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
        .map_err(|error| MountError::NoFuse(error.into()))?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
    let options = CString::new(options).map_err(|error| failed(error.into()))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
    mount(name, path, "fuse.granary", flags, options.as_c_str()).map_err(|error| failed(error.into()))?;
    Ok(device)
}

/// Detaches the mount; those who have the file open lose it when the descriptor closes.
pub(super) fn unmount_from(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH) {
        Ok(()) => Ok(()),
        // Somebody was faster.
        Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A mount whose process has died answers "not connected": it is detached. One that answers is somebody's.
pub(super) fn clear(path: &Path) -> Result<(), MountError> {
    // Several may lie over one another.
    for _ in 0..16 {
        match std::fs::metadata(path) {
            Err(error) if error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
                tracing::info!(path = %path.display(), "detaching the mount of a process that died");
                unmount_from(path).map_err(|source| MountError::Mount { path: path.into(), source })?;
            }
            Ok(_) if path.join(super::FILE_NAME).exists() && is_ours(path) => {
                return Err(MountError::Busy { path: path.into() });
            }
            _ => return Ok(()),
        }
    }
    Err(MountError::Busy { path: path.into() })
}

fn is_ours(path: &Path) -> bool {
    let Ok(table) = std::fs::read_to_string("/proc/self/mounts") else { return false };
    let path = path.to_string_lossy();
    table.lines().any(|line| {
        let mut fields = line.split(' ').skip(1);
        fields.next() == Some(&path) && fields.next() == Some("fuse.granary")
    })
}
