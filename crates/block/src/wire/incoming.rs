//! Bytes as they come off a socket, and the whole messages in them. One read takes all that the socket has; a large
//! message gets a buffer of its own, so that it is not moved while it grows. Memory stays within one message beyond
//! what a read brings.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, BytesMut};
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

use super::frame::{Frame, FrameError, HEADER, Limits, Parsed, parse};

/// What one read may bring: thirty-odd data requests of one block.
const CHUNK: usize = 256 << 10;

/// With less room than this a new buffer is begun rather than the old one filled up.
const MIN_ROOM: usize = CHUNK / 4;

/// A message from this size on is received straight into a buffer of its size.
const LARGE: usize = 64 << 10;

/// After a large message another one is likely: read little more than its header, so that little is copied.
const AFTER_LARGE: usize = 4 << 10;

/// The reading side of a connection.
pub struct Incoming {
    buffer: BytesMut,
    limits: Limits,
    chunk: usize,
    /// The buffer must hold this much before the next message can be whole.
    needed: usize,
    after_large: bool,
}

impl Incoming {
    pub fn new(limits: Limits) -> Self {
        // A stranger gets no more than what its few words need.
        let chunk = if limits == Limits::HANDSHAKE { HEADER + limits.payload as usize } else { CHUNK };
        Self { buffer: BytesMut::new(), limits, chunk, needed: HEADER, after_large: false }
    }

    /// The peer has proved who it is: from here on it may say more. Keeps what has been read.
    pub fn trust(&mut self, limits: Limits) {
        let buffer = std::mem::take(&mut self.buffer);
        *self = Self { buffer, ..Self::new(limits) };
    }

    /// The next whole message among what has been read.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        match parse(&mut self.buffer, self.limits)? {
            Parsed::Frame(frame) => {
                self.after_large = self.buffer.is_empty() && frame.payload.len() >= LARGE;
                Ok(Some(frame))
            }
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
        let limit = self.make_room();
        let read = ready!(poll_read_buf(Pin::new(from), cx, &mut (&mut self.buffer).limit(limit)))?;
        Poll::Ready(Ok(read > 0))
    }

    /// Prepares the buffer for the next read; answers how much that may bring.
    fn make_room(&mut self) -> usize {
        let (held, room) = (self.buffer.len(), self.buffer.capacity() - self.buffer.len());
        if self.needed >= LARGE {
            if held + room < self.needed {
                let mut own = BytesMut::with_capacity(self.needed);
                own.put_slice(&self.buffer);
                self.buffer = own;
            }
            return self.needed - held;
        }
        if self.after_large {
            self.buffer.reserve(AFTER_LARGE);
            return AFTER_LARGE;
        }
        if room < MIN_ROOM.min(self.chunk) {
            self.buffer.reserve(self.chunk);
        }
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::wire::frame::Header;
    use crate::wire::outgoing::Outgoing;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Small, large and empty messages in any order, through a pipe that holds only part of them.
        #[test]
        fn messages_come_out_as_they_went_in(
            lens in proptest::collection::vec(prop_oneof![0_usize..5000, 50_000_usize..400_000, Just(0)], 1..20),
            pipe in 1000_usize..200_000,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let (mut near, mut far) = tokio::io::duplex(pipe);
                let sent = lens.clone();
                let sender = async move {
                    for (id, len) in sent.into_iter().enumerate() {
                        let mut outgoing = Outgoing::default();
                        let header = Header { id: id as u64, ..Header::default() };
                        outgoing.push(header, &[], &Bytes::from(vec![id as u8; len]));
                        std::future::poll_fn(|cx| outgoing.poll_write(cx, &mut near)).await.unwrap();
                    }
                    near.shutdown().await.unwrap();
                };
                let receiver = async move {
                    let mut incoming = Incoming::new(Limits::SESSION);
                    let mut frames = Vec::new();
                    loop {
                        while let Some(frame) = incoming.next_frame().unwrap() {
                            frames.push((frame.header.id, frame.payload));
                        }
                        if !std::future::poll_fn(|cx| incoming.poll_fill(cx, &mut far)).await.unwrap() {
                            break frames;
                        }
                    }
                };
                let ((), frames) = tokio::join!(sender, receiver);
                assert_eq!(frames.len(), lens.len());
                for (id, (len, (got, payload))) in lens.iter().zip(&frames).enumerate() {
                    assert_eq!((id as u64, *len), (*got, payload.len()));
                    assert!(payload.iter().all(|byte| *byte == id as u8));
                }
            });
        }
    }
}
