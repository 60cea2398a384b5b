//! One connected socket, plain or under TLS, as the rest of the NBD code sees it.
//! Only plain sockets can be taken apart again and moved to another process.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{TlsStream, client, server};

pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<TlsStream<Stream>>),
}

/// Calls the same method on whichever socket it is.
macro_rules! each {
    ($stream:expr, $socket:ident => $call:expr) => {
        match $stream {
            Stream::Unix($socket) => {
                let $socket = Pin::new($socket);
                $call
            }
            Stream::Tcp($socket) => {
                let $socket = Pin::new($socket);
                $call
            }
            Stream::Tls($socket) => {
                let $socket = Pin::new($socket.as_mut());
                $call
            }
        }
    };
}

impl Stream {
    /// The socket itself; `None` under TLS, whose keys cannot move.
    pub fn into_fd(self) -> io::Result<Option<OwnedFd>> {
        match self {
            Self::Unix(socket) => Ok(Some(socket.into_std()?.into())),
            Self::Tcp(socket) => Ok(Some(socket.into_std()?.into())),
            Self::Tls(_) => Ok(None),
        }
    }

    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

impl From<server::TlsStream<Stream>> for Stream {
    fn from(stream: server::TlsStream<Stream>) -> Self {
        Self::Tls(Box::new(stream.into()))
    }
}

impl From<client::TlsStream<Stream>> for Stream {
    fn from(stream: client::TlsStream<Stream>) -> Self {
        Self::Tls(Box::new(stream.into()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), socket => socket.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), socket => socket.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), socket => socket.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), socket => socket.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), socket => socket.poll_shutdown(cx))
    }
}
