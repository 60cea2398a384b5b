//! The volume as a block device of the kernel, by the best way this kernel has: ublk, else a loop device over FUSE.
//! Whoever uses the device cannot tell which it is: block sizes are the same, so what is formatted by one way is read
//! by the other.

mod link;
mod loop_device;
mod over_fuse;
mod settle;
mod way;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use self::over_fuse::{FrozenLoop, LoopOverFuse};
pub use self::way::Way;
use crate::Volume;
use crate::fuse::MountError;
use crate::handover::Parcel;
use crate::ublk::{self, FrozenUblk, Ublk, UblkError, UblkOptions, Unusable};

/// How the device is to be made.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// The volume's name; a device of the same name that a killed process left is taken over or cleared away.
    pub name: String,
    /// Where a FUSE file is mounted, in a directory of the volume's name.
    pub run_directory: PathBuf,
    /// A symbolic link to the device, kept while it is attached.
    pub link: Option<PathBuf>,
    /// 512 or 4096.
    pub block_size: u32,
    pub read_only: bool,
    /// `None`: the best there is.
    pub way: Option<Way>,
}

#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error("cannot attach a loop device to {file}: {source}; it needs root and the kernel's loop driver")]
    Loop { file: PathBuf, source: io::Error },
    #[error("{0}; or let the device be a loop device, with `device` or `device?via=loop`")]
    NoUblk(#[from] Unusable),
    #[error(transparent)]
    Ublk(#[from] UblkError),
    #[error("cannot make the link {link}: {source}")]
    Link { link: PathBuf, source: io::Error },
}

/// An attached device. Its end is [`Self::detach`] or [`Self::freeze`].
pub struct Device {
    attached: Attached,
    path: PathBuf,
    link: Option<PathBuf>,
}

enum Attached {
    Ublk(Ublk),
    Loop(LoopOverFuse),
}

/// A device whose I/O waits in the kernel.
pub struct FrozenDevice {
    frozen: Frozen,
    path: PathBuf,
    link: Option<PathBuf>,
}

enum Frozen {
    Ublk(FrozenUblk),
    Loop(FrozenLoop),
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    path: PathBuf,
    link: Option<PathBuf>,
    /// Of a loop device: what FUSE adds.
    fuse: Vec<u8>,
    /// Of a ublk device: its number. Processes from before there were any do not send it.
    #[serde(default)]
    ublk: Option<u32>,
}

impl DeviceOptions {
    /// A path that only this volume has.
    fn identity(&self) -> PathBuf {
        self.run_directory.join(&self.name)
    }
}

impl Device {
    pub async fn attach<V: Volume>(volume: V, options: &DeviceOptions) -> Result<Self, DeviceError> {
        let attached = match Way::choose(options.way).await? {
            Way::Ublk => {
                over_fuse::clear(options).await?;
                let (block_size, read_only) = (options.block_size, options.read_only);
                let options = UblkOptions { identity: options.identity(), block_size, read_only };
                Attached::Ublk(Ublk::attach(volume, &options).await?)
            }
            Way::Loop => {
                ublk::clear(&options.identity()).await?;
                Attached::Loop(LoopOverFuse::attach(volume, options).await?)
            }
        };
        let device = Self::start(attached, options.link.clone());
        if let Some(link) = &options.link
            && let Err(source) = link::point(link, &device.path)
        {
            if let Err(error) = device.detach().await {
                tracing::warn!(%error, "a device stays behind");
            }
            return Err(DeviceError::Link { link: link.clone(), source });
        }
        Ok(device)
    }

    /// `/dev/ublkbN` or `/dev/loopN`.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Detaches the device and all that is under it. What was written before is flushed; a device that is still mounted
    /// somewhere fails what that mount writes afterwards. Who wants it clean unmounts first.
    pub async fn detach(self) -> io::Result<()> {
        settle::settle(&self.path).await;
        if let Some(link) = &self.link {
            link::remove(link, &self.path);
        }
        match self.attached {
            Attached::Ublk(ublk) => ublk.detach().await,
            Attached::Loop(device) => device.detach().await,
        }
    }

    /// Takes no more requests; those of the device's users wait in the kernel.
    pub async fn freeze(self) -> io::Result<FrozenDevice> {
        let frozen = match self.attached {
            Attached::Ublk(ublk) => Frozen::Ublk(ublk.freeze().await?),
            Attached::Loop(device) => Frozen::Loop(device.freeze().await?),
        };
        Ok(FrozenDevice { frozen, path: self.path, link: self.link })
    }

    fn start(attached: Attached, link: Option<PathBuf>) -> Self {
        // The kernel must not wait for this thread to make room for the memory this thread asks for. Without the right
        // to say so, that is only as unlikely as it is.
        if let Err(error) = rustix::process::configure_io_flusher_behavior(true) {
            tracing::debug!(%error, "the kernel does not know that this thread serves a block device");
        }
        let path = match &attached {
            Attached::Ublk(ublk) => ublk.path(),
            Attached::Loop(device) => device.path().to_owned(),
        };
        Self { attached, path, link }
    }
}

impl FrozenDevice {
    pub async fn resume<V: Volume>(self, volume: &V) -> Result<Device, DeviceError> {
        let attached = match self.frozen {
            Frozen::Ublk(frozen) => Attached::Ublk(frozen.resume(volume.clone()).await?),
            Frozen::Loop(frozen) => {
                let resumed = frozen.resume(volume);
                Attached::Loop(resumed.map_err(|source| DeviceError::Loop { file: self.path, source })?)
            }
        };
        Ok(Device::start(attached, self.link))
    }

    pub fn to_parcel(&self) -> io::Result<Parcel> {
        let (mut parcel, ublk) = match &self.frozen {
            Frozen::Ublk(frozen) => (Parcel::default(), Some(frozen.device())),
            Frozen::Loop(frozen) => (frozen.to_parcel()?, None),
        };
        let (path, link) = (self.path.clone(), self.link.clone());
        parcel.header = serde_json::to_vec(&Manifest { path, link, fuse: parcel.header, ublk })?;
        Ok(parcel)
    }

    pub fn from_parcel(mut parcel: Parcel) -> io::Result<Self> {
        let Manifest { path, link, fuse, ublk } = serde_json::from_slice(&parcel.header)?;
        parcel.header = fuse;
        let frozen = match ublk {
            Some(device) => Frozen::Ublk(FrozenUblk::handed_over(device)),
            None => Frozen::Loop(FrozenLoop::from_parcel(path.clone(), parcel)?),
        };
        Ok(Self { frozen, path, link })
    }
}
