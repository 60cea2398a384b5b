//! Where clients come in: a unix or TCP socket that listens. A unix socket's file is the server's to remove.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::stream::Stream;
use super::url::Address;

pub(crate) enum Listener {
    Unix { socket: UnixListener, path: PathBuf },
    Tcp(TcpListener),
}

#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct ListenError {
    address: String,
    source: io::Error,
}

impl Listener {
    pub async fn bind(address: &Address) -> Result<Self, ListenError> {
        match address {
            Address::Unix(path) => {
                bind_unix(path).await.map_err(|source| (path.display().to_string(), source))
            }
            Address::Tcp { host, port } => {
                let bound = TcpListener::bind((host.as_str(), *port)).await;
                bound.map(Self::Tcp).map_err(|source| (format!("{host}:{port}"), source))
            }
        }
        .map_err(|(address, source)| ListenError { address, source })
    }

    pub async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix { socket, .. } => Ok(Stream::Unix(socket.accept().await?.0)),
            Self::Tcp(socket) => Ok(Stream::Tcp(tuned(socket.accept().await?.0)?)),
        }
    }

    /// The address clients can use: with the real port where any was asked for.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Unix { path, .. } => Ok(Address::Unix(path.clone())),
            Self::Tcp(socket) => {
                let local = socket.local_addr()?;
                Ok(Address::Tcp { host: local.ip().to_string(), port: local.port() })
            }
        }
    }

    /// Nobody can come in any more.
    pub fn close(self) {
        if let Self::Unix { path, .. } = self
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "the socket's file stays behind");
        }
    }

    pub fn into_fd(self) -> io::Result<(OwnedFd, Option<PathBuf>)> {
        match self {
            Self::Unix { socket, path } => Ok((socket.into_std()?.into(), Some(path))),
            Self::Tcp(socket) => Ok((socket.into_std()?.into(), None)),
        }
    }

    pub fn from_fd(fd: OwnedFd, path: Option<PathBuf>) -> io::Result<Self> {
        match path {
            Some(path) => Ok(Self::Unix { socket: UnixListener::from_std(fd.into())?, path }),
            None => Ok(Self::Tcp(TcpListener::from_std(fd.into())?)),
        }
    }
}

/// A client's socket from another process.
pub(crate) fn stream_from_fd(fd: OwnedFd, unix: bool) -> io::Result<Stream> {
    if unix {
        Ok(Stream::Unix(UnixStream::from_std(fd.into())?))
    } else {
        Ok(Stream::Tcp(TcpStream::from_std(fd.into())?))
    }
}

/// Answers leave at once, and a peer that vanished is noticed some time.
pub(crate) fn tuned(socket: TcpStream) -> io::Result<TcpStream> {
    socket.set_nodelay(true)?;
    rustix::net::sockopt::set_socket_keepalive(&socket, true)?;
    Ok(socket)
}

/// Only our own user comes in. A socket file that nobody listens on is left from a crash and replaced.
async fn bind_unix(path: &Path) -> io::Result<Listener> {
    let bound = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && nobody_listens(path).await => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    };
    let socket = bound?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(Listener::Unix { socket, path: path.to_owned() })
}

async fn nobody_listens(path: &Path) -> bool {
    matches!(UnixStream::connect(path).await, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
}
