//! All the ways one volume is reached, started, stopped and handed over together.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::device::{Device, DeviceError, DeviceOptions, FrozenDevice};
use crate::fuse::{FrozenFuse, FuseMount, MountError};
use crate::handover::{Parcel, await_go, give_go};
use crate::nbd::{Export, FrozenServer, ListenError, NbdUrl, Server, TlsError};
use crate::{FrontendSpec, Volume};

/// Of block devices. Disks that were partitioned or formatted elsewhere expect this one more often than any other.
const BLOCK_SIZE: u32 = 512;

/// What all frontends of a volume need to know.
#[derive(Clone, Debug)]
pub struct VolumeIdentity {
    pub name: String,
    pub read_only: bool,
    /// Where block devices have their FUSE files.
    pub run_directory: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum FrontendError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("a frontend could not go on where another process stopped: {0}")]
    Handover(#[from] io::Error),
    #[error("the process before this one had other frontends; start this one with the same ones")]
    OtherFrontends,
}

pub struct Frontends<V> {
    running: Vec<Running<V>>,
}

enum Running<V> {
    Nbd(Server<V>),
    Fuse(FuseMount),
    Device(Device),
}

/// Frontends between two processes.
#[derive(Default)]
pub struct FrozenFrontends {
    frozen: Vec<Frozen>,
}

enum Frozen {
    Nbd(FrozenServer),
    Fuse(FrozenFuse),
    Device(FrozenDevice),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Nbd,
    Fuse,
    Device,
}

impl<V: Volume> Frontends<V> {
    /// Of a volume that nobody reaches.
    pub fn none() -> Self {
        Self { running: Vec::new() }
    }

    /// Starts them all, or none. Also returns where each is reached.
    pub async fn start(
        specs: &[FrontendSpec],
        identity: &VolumeIdentity,
        volume: &V,
    ) -> Result<(Self, Vec<String>), FrontendError> {
        let (mut frontends, mut places) = (Self { running: Vec::new() }, Vec::new());
        for spec in specs {
            match Running::start(spec, identity, volume).await {
                Ok((running, place)) => {
                    frontends.running.push(running);
                    places.push(place);
                }
                Err(error) => {
                    frontends.stop().await;
                    return Err(error);
                }
            }
        }
        Ok((frontends, places))
    }

    /// Ends them in order: what is in flight is answered, and nothing is left behind.
    pub async fn stop(self) {
        for running in self.running {
            let stopped = match running {
                Running::Nbd(server) => {
                    server.stop().await;
                    Ok(())
                }
                Running::Fuse(mount) => mount.unmount().await,
                Running::Device(device) => device.detach().await,
            };
            if let Err(error) = stopped {
                tracing::warn!(%error, "a frontend did not stop in order");
            }
        }
    }

    /// Stops taking requests and lets those in flight end; users wait until somebody resumes.
    pub async fn freeze(self) -> io::Result<FrozenFrontends> {
        let mut frozen = Vec::new();
        for running in self.running {
            frozen.push(match running {
                Running::Nbd(server) => Frozen::Nbd(server.freeze().await?),
                Running::Fuse(mount) => Frozen::Fuse(mount.freeze().await?),
                Running::Device(device) => Frozen::Device(device.freeze().await?),
            });
        }
        Ok(FrozenFrontends { frozen })
    }
}

impl<V: Volume> Running<V> {
    async fn start(
        spec: &FrontendSpec,
        identity: &VolumeIdentity,
        volume: &V,
    ) -> Result<(Self, String), FrontendError> {
        Ok(match spec {
            FrontendSpec::Nbd { url, .. } => {
                let server = Server::new(export(spec, identity, volume)?);
                let address = server.listen(&url.address).await?;
                (Self::Nbd(server), NbdUrl { address, ..url.clone() }.to_string())
            }
            FrontendSpec::Fuse(path) => {
                let mount = FuseMount::mount(volume.clone(), path, &identity.name).await?;
                let place = mount.file().display().to_string();
                (Self::Fuse(mount), place)
            }
            FrontendSpec::Device { link, via } => {
                let options = DeviceOptions {
                    name: identity.name.clone(),
                    run_directory: identity.run_directory.clone(),
                    link: link.clone(),
                    block_size: BLOCK_SIZE,
                    read_only: identity.read_only,
                    way: *via,
                };
                let device = Device::attach(volume.clone(), &options).await?;
                let place = device.path().display().to_string();
                (Self::Device(device), place)
            }
        })
    }
}

fn export<V: Volume>(
    spec: &FrontendSpec,
    identity: &VolumeIdentity,
    volume: &V,
) -> Result<Export<V>, TlsError> {
    let mut export = Export::new(identity.name.clone(), volume.clone());
    export.read_only = identity.read_only;
    if let FrontendSpec::Nbd { url, tls } = spec {
        export.tls = FrontendSpec::server_tls(url, tls.as_ref())?;
    }
    Ok(export)
}

impl FrozenFrontends {
    /// Gives them to the process at the other end. After an error they are still ours to [`Self::resume`].
    pub fn send(&self, to: &UnixStream) -> io::Result<()> {
        set_timeouts(to)?;
        let kinds: Vec<_> = self.frozen.iter().map(Frozen::kind).collect();
        Parcel { header: serde_json::to_vec(&kinds)?, ..Parcel::default() }.send(to)?;
        for frozen in &self.frozen {
            frozen.to_parcel()?.send(to)?;
        }
        give_go(to)
    }

    /// Takes them from the process at the other end, which no longer serves them once this returns.
    pub fn receive(from: &UnixStream) -> io::Result<Self> {
        set_timeouts(from)?;
        let kinds: Vec<Kind> = serde_json::from_slice(&Parcel::receive(from)?.header)?;
        let mut frozen = Vec::new();
        for kind in kinds {
            let parcel = Parcel::receive(from)?;
            frozen.push(match kind {
                Kind::Nbd => Frozen::Nbd(FrozenServer::from_parcel(parcel)?),
                Kind::Fuse => Frozen::Fuse(FrozenFuse::from_parcel(parcel)?),
                Kind::Device => Frozen::Device(FrozenDevice::from_parcel(parcel)?),
            });
        }
        await_go(from)?;
        Ok(Self { frozen })
    }

    /// Serves them again, with the specifications they were started with.
    pub async fn resume<V: Volume>(
        self,
        specs: &[FrontendSpec],
        identity: &VolumeIdentity,
        volume: &V,
    ) -> Result<Frontends<V>, FrontendError> {
        if specs.len() != self.frozen.len() {
            return Err(FrontendError::OtherFrontends);
        }
        let mut running = Vec::new();
        for (frozen, spec) in self.frozen.into_iter().zip(specs) {
            running.push(match (frozen, spec) {
                (Frozen::Nbd(server), FrontendSpec::Nbd { .. }) => {
                    Running::Nbd(server.resume(export(spec, identity, volume)?)?)
                }
                (Frozen::Fuse(mount), FrontendSpec::Fuse(_)) => Running::Fuse(mount.resume(volume.clone())?),
                (Frozen::Device(device), FrontendSpec::Device { .. }) => {
                    Running::Device(device.resume(volume).await?)
                }
                _ => return Err(FrontendError::OtherFrontends),
            });
        }
        Ok(Frontends { running })
    }
}

impl Frozen {
    fn kind(&self) -> Kind {
        match self {
            Self::Nbd(_) => Kind::Nbd,
            Self::Fuse(_) => Kind::Fuse,
            Self::Device(_) => Kind::Device,
        }
    }

    fn to_parcel(&self) -> io::Result<Parcel> {
        match self {
            Self::Nbd(server) => server.to_parcel(),
            Self::Fuse(mount) => mount.to_parcel(),
            Self::Device(device) => device.to_parcel(),
        }
    }
}

/// Both calls block, but neither process waits for the other for ever.
fn set_timeouts(socket: &UnixStream) -> io::Result<()> {
    let timeout = Some(std::time::Duration::from_secs(10));
    socket.set_read_timeout(timeout)?;
    socket.set_write_timeout(timeout)
}
