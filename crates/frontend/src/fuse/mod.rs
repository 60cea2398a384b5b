//! The volume as one file of a mounted directory, without a library in between: the kernel's requests are read and
//! answered on the volume's own thread.
//!
//! The kernel talks to whoever holds the descriptor of `/dev/fuse`, and keeps the mount while somebody does. That is
//! what a handover moves; libraries for FUSE insist on being there when the mount is made.

mod abi;
mod mount;
mod session;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

pub use self::mount::MountError;
pub use self::session::FILE_NAME;
use self::session::{Ended, serve, watch};
use crate::Volume;
use crate::handover::Parcel;
use crate::orders::{Order, Orders};

/// A running mount. Its end is [`Self::unmount`] or [`Self::freeze`]; when dropped it is served until the runtime ends.
pub struct FuseMount {
    path: PathBuf,
    orders: Rc<Orders>,
    session: JoinHandle<(io::Result<Ended>, AsyncFd<OwnedFd>)>,
}

/// A mount that nobody serves: requests wait in the kernel.
pub struct FrozenFuse {
    path: PathBuf,
    device: OwnedFd,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: u32,
    path: PathBuf,
}

const FORMAT: u32 = 1;

impl FuseMount {
    /// Mounts the volume as `PATH/volume`. `name` is what the mount table shows as its source.
    pub async fn mount<V: Volume>(volume: V, path: &Path, name: &str) -> Result<Self, MountError> {
        let (at, source) = (path.to_owned(), name.to_owned());
        let failed = |source| MountError::Mount { path: path.into(), source };
        let device = tokio::task::spawn_blocking(move || mount::mount_at(&at, &source))
            .await
            .map_err(|error| failed(io::Error::other(error)))??;
        Self::start(volume, path.into(), device).map_err(failed)
    }

    /// The file that is the volume.
    pub fn file(&self) -> PathBuf {
        self.path.join(FILE_NAME)
    }

    /// Detaches the mount and answers what is in flight. Those who still have the file open get errors from then on.
    pub async fn unmount(self) -> io::Result<()> {
        let path = self.path.clone();
        let detached = tokio::task::spawn_blocking(move || mount::unmount_from(&path)).await;
        self.orders.give(Order::Stop);
        let ended = self.session.await;
        detached.map_err(io::Error::other)??;
        ended.map_err(io::Error::other)?.0.map(|_| ())
    }

    /// Takes no more requests, lets those in flight end, and returns what another process needs to go on.
    pub async fn freeze(self) -> io::Result<FrozenFuse> {
        self.orders.give(Order::Freeze);
        let (ended, device) = self.session.await.map_err(io::Error::other)?;
        match ended? {
            Ended::Ordered => Ok(FrozenFuse { path: self.path, device: device.into_inner() }),
            Ended::Unmounted => Err(io::Error::other(format!("{} was unmounted", self.path.display()))),
        }
    }

    fn start<V: Volume>(volume: V, path: PathBuf, device: OwnedFd) -> io::Result<Self> {
        let (device, orders) = (watch(device)?, Rc::new(Orders::new()));
        let given = orders.clone();
        let session = tokio::task::spawn_local(async move {
            let ended = serve(&device, volume, &given).await;
            if let Err(error) = &ended {
                tracing::error!(%error, "a FUSE mount failed; its users get errors");
            }
            (ended, device)
        });
        Ok(Self { path, orders, session })
    }
}

impl FrozenFuse {
    pub fn resume<V: Volume>(self, volume: V) -> io::Result<FuseMount> {
        FuseMount::start(volume, self.path, self.device)
    }

    pub fn to_parcel(&self) -> io::Result<Parcel> {
        let header = serde_json::to_vec(&Manifest { format: FORMAT, path: self.path.clone() })?;
        Ok(Parcel { header, fds: vec![self.device.try_clone()?], ..Parcel::default() })
    }

    pub fn from_parcel(parcel: Parcel) -> io::Result<Self> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "this is not the parcel of a FUSE mount");
        let manifest: Manifest = serde_json::from_slice(&parcel.header)?;
        let device =
            parcel.fds.into_iter().next().filter(|_| manifest.format == FORMAT).ok_or_else(broken)?;
        Ok(Self { path: manifest.path, device })
    }
}
