//! A connected socket of either family, whole or in two halves, set up for small messages and dead peers.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

use super::address::Address;

/// The kernel asks an idle peer whether it is there after this long, then this often, so many times.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);

/// Bytes that nobody acknowledged for this long end the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

const UNIX_BUFFER: usize = 2 << 20;

/// A connected socket.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

pub enum ReadHalf {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
}

pub enum WriteHalf {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
}

impl Stream {
    pub async fn connect(address: &Address) -> io::Result<Self> {
        let stream = match address {
            Address::Tcp(target) => Self::Tcp(TcpStream::connect(target).await?),
            Address::Unix(path) => Self::Unix(UnixStream::connect(path).await?),
        };
        stream.prepare()?;
        Ok(stream)
    }

    /// A reply must not wait for the next one to fill a packet, a peer whose machine is gone must be noticed, and a
    /// unix socket must hold more than part of a large message: the kernel gives as much as the machine allows.
    pub fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                let (idle, interval, count) = KEEPALIVE;
                sockopt::set_socket_keepalive(stream, true)?;
                sockopt::set_tcp_keepidle(stream, idle)?;
                sockopt::set_tcp_keepintvl(stream, interval)?;
                sockopt::set_tcp_keepcnt(stream, count)?;
                sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED.as_millis() as u32)?;
                if stream.peer_addr()?.ip().is_loopback() {
                    // Within one machine nothing is lost and nothing need be paced; pacing would cost a timer for
                    // every few packets. Every kernel has this one.
                    sockopt::set_tcp_congestion(stream, "reno")?;
                }
            }
            Self::Unix(stream) => sockopt::set_socket_send_buffer_size(stream, UNIX_BUFFER)?,
        }
        Ok(())
    }

    pub fn split(self) -> (ReadHalf, WriteHalf) {
        match self {
            Self::Tcp(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Tcp(read), WriteHalf::Tcp(write))
            }
            Self::Unix(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Unix(read), WriteHalf::Unix(write))
            }
        }
    }
}

macro_rules! reads {
    ($half:ident) => {
        impl AsyncRead for $half {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                into: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    Self::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
                    Self::Unix(stream) => Pin::new(stream).poll_read(cx, into),
                }
            }
        }
    };
}

macro_rules! writes {
    ($half:ident) => {
        impl AsyncWrite for $half {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                from: &[u8],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    Self::Tcp(stream) => Pin::new(stream).poll_write(cx, from),
                    Self::Unix(stream) => Pin::new(stream).poll_write(cx, from),
                }
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                from: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, from),
                    Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, from),
                }
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
                    Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
                }
            }
        }
    };
}

reads!(Stream);
reads!(ReadHalf);
writes!(Stream);
writes!(WriteHalf);
