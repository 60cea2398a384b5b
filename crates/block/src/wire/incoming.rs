//! Bytes as they come off a socket, and the whole messages in them. One read takes all that the socket has; memory
//! stays within one message beyond what a read brings.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::frame::{Frame, FrameError, HEADER, Limits, Parsed, parse};

/// What one read may bring: thirty-odd data requests of one block, or a good part of a large one.
const CHUNK: usize = 256 << 10;

/// The reading side of a connection.
pub struct Incoming {
    buffer: BytesMut,
    limits: Limits,
    chunk: usize,
    /// The buffer must hold this much before the next message can be whole.
    needed: usize,
}

impl Incoming {
    pub fn new(limits: Limits) -> Self {
        // A stranger gets no more than what its few words need.
        let chunk = if limits == Limits::HANDSHAKE { HEADER + limits.payload as usize } else { CHUNK };
        Self { buffer: BytesMut::new(), limits, chunk, needed: HEADER }
    }

    /// The peer has proved who it is: from here on it may say more. Keeps what has been read.
    pub fn trust(&mut self, limits: Limits) {
        let buffer = std::mem::take(&mut self.buffer);
        *self = Self { buffer, ..Self::new(limits) };
    }

    /// The next whole message among what has been read.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        match parse(&mut self.buffer, self.limits)? {
            Parsed::Frame(frame) => Ok(Some(frame)),
            Parsed::NeedBytes(needed) => {
                self.needed = needed;
                Ok(None)
            }
        }
    }

    /// Nothing is left of what has been read.
    pub fn is_drained(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Reads what the socket has. Call when [`Incoming::next_frame`] has nothing more. `false`: the peer has closed.
    pub fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
    ) -> Poll<io::Result<bool>> {
        let missing = self.needed.saturating_sub(self.buffer.len());
        self.buffer.reserve(missing.max(if self.buffer.is_empty() { self.chunk } else { self.chunk / 4 }));
        let read = ready!(pin!(from.read_buf(&mut self.buffer)).poll(cx))?;
        Poll::Ready(Ok(read > 0))
    }
}
