//! A loop device over the file of a FUSE mount: the way that every kernel has.

use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{DeviceError, DeviceOptions, loop_device};
use crate::Volume;
use crate::blocking::blocking;
use crate::fuse::{FrozenFuse, FuseMount};
use crate::handover::Parcel;

/// An attached loop device and what is under it.
pub(super) struct LoopOverFuse {
    fuse: FuseMount,
    path: PathBuf,
    resizer: AbortHandle,
}

/// A loop device whose I/O waits in the kernel.
pub(super) struct FrozenLoop {
    fuse: FrozenFuse,
    path: PathBuf,
}

impl LoopOverFuse {
    pub async fn attach<V: Volume>(volume: V, options: &DeviceOptions) -> Result<Self, DeviceError> {
        clear(options).await?;
        let fuse = FuseMount::mount(volume.clone(), &options.identity(), &options.name).await?;
        let (file, block_size, read_only) = (fuse.file(), options.block_size, options.read_only);
        match blocking(move || loop_device::attach(&file, block_size, read_only)).await {
            Ok(path) => Ok(Self::start(&volume, fuse, path)),
            Err(source) => {
                let file = fuse.file();
                if let Err(error) = fuse.unmount().await {
                    tracing::warn!(%error, "a mount stays behind");
                }
                Err(DeviceError::Loop { file, source })
            }
        }
    }

    /// `/dev/loopN`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub async fn detach(self) -> io::Result<()> {
        self.resizer.abort();
        // Closing may write what the kernel still holds, which FUSE must be there to take.
        let detached = blocking(move || loop_device::detach(&self.path)).await;
        let unmounted = self.fuse.unmount().await;
        detached.and(unmounted)
    }

    pub async fn freeze(self) -> io::Result<FrozenLoop> {
        self.resizer.abort();
        Ok(FrozenLoop { fuse: self.fuse.freeze().await?, path: self.path })
    }

    fn start<V: Volume>(volume: &V, fuse: FuseMount, path: PathBuf) -> Self {
        let resizing = follow_size(volume.size(), path.clone(), fuse.file());
        let resizer = tokio::task::spawn_local(resizing).abort_handle();
        Self { fuse, path, resizer }
    }
}

impl FrozenLoop {
    pub fn resume<V: Volume>(self, volume: &V) -> io::Result<LoopOverFuse> {
        let fuse = self.fuse.resume(volume.clone())?;
        Ok(LoopOverFuse::start(volume, fuse, self.path))
    }

    pub fn to_parcel(&self) -> io::Result<Parcel> {
        self.fuse.to_parcel()
    }

    pub fn from_parcel(path: PathBuf, parcel: Parcel) -> io::Result<Self> {
        Ok(Self { fuse: FrozenFuse::from_parcel(parcel)?, path })
    }
}

/// Detaches what a process that was killed left attached to the volume's file.
pub(super) async fn clear(options: &DeviceOptions) -> Result<(), DeviceError> {
    let file = options.identity().join(crate::fuse::FILE_NAME);
    let stale = file.clone();
    let cleared = blocking(move || loop_device::detach_all_of(&stale)).await;
    cleared.map_err(|source| DeviceError::Loop { file, source })
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
