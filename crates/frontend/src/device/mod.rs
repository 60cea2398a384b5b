//! The volume as a block device of the kernel, by the best way this kernel has.
//!
//! Today that is the loop device over a FUSE file. ublk would be shorter, but where it is missing (as `/dev/ublk-control`
//! tells) a device must still be had; [`Choice`] says what was found and why.

mod loop_device;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::Volume;
use crate::fuse::{FrozenFuse, FuseMount, MountError};
use crate::handover::Parcel;

/// How the device is to be made.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// The volume's name; a device of the same name that a killed process left is cleared away.
    pub name: String,
    /// Where the FUSE file is mounted, in a directory of the volume's name.
    pub run_directory: PathBuf,
    /// A symbolic link to the device, kept while it is attached.
    pub link: Option<PathBuf>,
    /// 512 or 4096.
    pub block_size: u32,
}

/// Which way was taken, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    LoopNoUblk,
    LoopUblkUnused,
}

#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error("cannot attach a loop device to {file}: {source}; it needs root and the kernel's loop driver")]
    Loop { file: PathBuf, source: io::Error },
    #[error("cannot make the link {link}: {source}")]
    Link { link: PathBuf, source: io::Error },
}

/// An attached device. Its end is [`Self::detach`] or [`Self::freeze`].
pub struct Device {
    fuse: FuseMount,
    path: PathBuf,
    link: Option<PathBuf>,
    resizer: AbortHandle,
}

/// A device whose I/O waits in the kernel.
pub struct FrozenDevice {
    fuse: FrozenFuse,
    path: PathBuf,
    link: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    path: PathBuf,
    link: Option<PathBuf>,
    fuse: Vec<u8>,
}

impl Choice {
    pub fn probe() -> Self {
        if Path::new("/dev/ublk-control").exists() { Self::LoopUblkUnused } else { Self::LoopNoUblk }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LoopNoUblk => "loop device over FUSE, because this kernel has no /dev/ublk-control",
            Self::LoopUblkUnused => "loop device over FUSE; ublk is there, but this build cannot use it",
        })
    }
}

impl Device {
    pub async fn attach<V: Volume>(volume: V, options: &DeviceOptions) -> Result<Self, DeviceError> {
        tracing::info!(name = options.name, "block device: {}", Choice::probe());
        let mount_point = options.run_directory.join(&options.name);
        let file = mount_point.join(crate::fuse::FILE_NAME);
        let failed = |source| DeviceError::Loop { file: file.clone(), source };
        let stale = file.clone();
        blocking(move || loop_device::detach_all_of(&stale)).await.map_err(failed)?;
        let fuse = FuseMount::mount(volume.clone(), &mount_point, &options.name).await?;
        let (backing, block_size) = (file.clone(), options.block_size);
        let path = match blocking(move || loop_device::attach(&backing, block_size)).await {
            Ok(path) => path,
            Err(source) => {
                unmount_after_failure(fuse).await;
                return Err(failed(source));
            }
        };
        let device = Self::start(&volume, fuse, path, options.link.clone());
        if let Some(link) = &options.link
            && let Err(source) = point(link, &device.path)
        {
            if let Err(error) = device.detach().await {
                tracing::warn!(%error, "a device stays behind");
            }
            return Err(DeviceError::Link { link: link.clone(), source });
        }
        Ok(device)
    }

    /// `/dev/loopN`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Detaches the device and unmounts what is under it. A device that is still mounted somewhere goes when that
    /// mount does, with errors for what it still writes; who wants it clean unmounts first.
    pub async fn detach(self) -> io::Result<()> {
        self.resizer.abort();
        if let Some(link) = &self.link
            && std::fs::read_link(link).is_ok_and(|target| target == self.path)
            && let Err(error) = std::fs::remove_file(link)
        {
            tracing::warn!(link = %link.display(), %error, "the link to a device stays behind");
        }
        // Closing may write what the kernel still holds, which FUSE must be there to take.
        let detached = blocking(move || loop_device::detach(&self.path)).await;
        let unmounted = self.fuse.unmount().await;
        detached.and(unmounted)
    }

    /// Takes no more requests; those of the device's users wait in the kernel.
    pub async fn freeze(self) -> io::Result<FrozenDevice> {
        self.resizer.abort();
        Ok(FrozenDevice { fuse: self.fuse.freeze().await?, path: self.path, link: self.link })
    }

    fn start<V: Volume>(volume: &V, fuse: FuseMount, path: PathBuf, link: Option<PathBuf>) -> Self {
        let resizing = follow_size(volume.size(), path.clone(), fuse.file());
        let resizer = tokio::task::spawn_local(resizing).abort_handle();
        Self { fuse, path, link, resizer }
    }
}

impl FrozenDevice {
    pub fn resume<V: Volume>(self, volume: &V) -> io::Result<Device> {
        let fuse = self.fuse.resume(volume.clone())?;
        Ok(Device::start(volume, fuse, self.path, self.link))
    }

    pub fn to_parcel(&self) -> io::Result<Parcel> {
        let mut parcel = self.fuse.to_parcel()?;
        let (path, link) = (self.path.clone(), self.link.clone());
        parcel.header = serde_json::to_vec(&Manifest { path, link, fuse: parcel.header })?;
        Ok(parcel)
    }

    pub fn from_parcel(mut parcel: Parcel) -> io::Result<Self> {
        let Manifest { path, link, fuse } = serde_json::from_slice(&parcel.header)?;
        parcel.header = fuse;
        Ok(Self { fuse: FrozenFuse::from_parcel(parcel)?, path, link })
    }
}

/// The kernel learns of a new size only when told.
async fn follow_size(mut size: watch::Receiver<u64>, device: PathBuf, file: PathBuf) {
    while size.changed().await.is_ok() {
        let (device, file) = (device.clone(), file.clone());
        if let Err(error) = blocking(move || loop_device::update_size(&device, &file)).await {
            tracing::error!(%error, "a device could not be made as large as its volume");
        }
    }
}

async fn unmount_after_failure(fuse: FuseMount) {
    if let Err(error) = fuse.unmount().await {
        tracing::warn!(%error, "a mount stays behind");
    }
}

/// Replaces a link in one step, and only a link.
fn point(link: &Path, device: &Path) -> io::Result<()> {
    if let Some(directory) = link.parent() {
        std::fs::create_dir_all(directory)?;
    }
    if std::fs::symlink_metadata(link).is_ok_and(|there| !there.is_symlink()) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let new = link.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::os::unix::fs::symlink(device, &new)?;
    std::fs::rename(&new, link)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
