//! Where the control API is reached. There is no authentication, so it is either a socket file that only its owner
//! can open, or a port that only this machine can reach.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use futures::{Stream, StreamExt, stream};
use granary_block::wire::address::Address;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::service::Service;
use crate::v1::engine_server::EngineServer;

#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: PathBuf },
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen for control at {address}: {source}")]
    Bind { address: Address, source: io::Error },
    #[error(
        "{0} can be reached from other machines, and control is not protected there; use a loopback address or \
         unix:///path"
    )]
    Exposed(Address),
    #[error("another engine listens at {0}; stop it, choose another --control, or take over with --takeover")]
    InUse(Address),
}

impl Listener {
    /// `replace`: the engine that listens at the same path is on its way out, so its socket file may go.
    pub async fn bind(address: &Address, replace: bool) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Bind { address: address.clone(), source };
        match address {
            Address::Tcp(target) => {
                let listener = TcpListener::bind(target).await.map_err(failed)?;
                if !listener.local_addr().map_err(failed)?.ip().is_loopback() {
                    return Err(ListenError::Exposed(address.clone()));
                }
                Ok(Self::Tcp(listener))
            }
            Address::Unix(path) => {
                if !replace && UnixStream::connect(path).await.is_ok() {
                    return Err(ListenError::InUse(address.clone()));
                }
                Ok(Self::Unix { listener: bind_unix(path).map_err(failed)?, path: path.clone() })
            }
        }
    }

    /// As it is reached: with the port that was chosen, if none was asked for.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Tcp(listener) => Address::Tcp(listener.local_addr()?.to_string()),
            Self::Unix { path, .. } => Address::Unix(path.clone()),
        })
    }

    /// Serves until the task is dropped.
    pub async fn serve(self, service: Service) -> Result<(), tonic::transport::Error> {
        let router = tonic::transport::Server::builder().add_service(EngineServer::new(service));
        match self {
            Self::Tcp(listener) => router.serve_with_incoming(accepted_tcp(listener)).await,
            Self::Unix { listener, .. } => router.serve_with_incoming(accepted_unix(listener)).await,
        }
    }
}

/// The file appears under its name with its mode already set, and replaces what a dead engine left.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let fresh = PathBuf::from(name);
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&fresh)?;
    std::fs::set_permissions(&fresh, PermissionsExt::from_mode(0o600))?;
    std::fs::rename(&fresh, path)?;
    Ok(listener)
}

fn accepted_tcp(listener: TcpListener) -> impl Stream<Item = io::Result<TcpStream>> {
    stream::unfold(listener, |listener| async move {
        let accepted = listener.accept().await.map(|(stream, _)| stream);
        Some((accepted, listener))
    })
    .boxed()
}

fn accepted_unix(listener: UnixListener) -> impl Stream<Item = io::Result<UnixStream>> {
    stream::unfold(listener, |listener| async move {
        let accepted = listener.accept().await.map(|(stream, _)| stream);
        Some((accepted, listener))
    })
    .boxed()
}
