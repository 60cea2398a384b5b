//! Messages on their way out: headers and small bodies collect in one reused buffer, large payloads stay where they
//! are, and one system call writes many of them. Never copies a payload it was handed, never blocks.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::checksum::{body_crc, crc32c};
use super::frame::{HEADER, Header};

/// Pieces handed to one system call. More would only make the array on the stack larger: the socket's buffer is
/// full by then.
const PIECES: usize = 64;

/// What the buffer keeps for the next batch; one that had to grow beyond this is given back when it is empty.
const KEEP: usize = 4 << 20;

/// Payloads up to this are copied beside their header: cheaper than another piece.
const SMALL: usize = 512;

/// A queue of encoded messages.
#[derive(Default)]
pub struct Outgoing {
    /// Headers and small bodies, and payloads that were made in place. Only `..used` means anything.
    arena: Vec<u8>,
    used: usize,
    pieces: VecDeque<Piece>,
    /// How much of the first piece is with the socket already.
    sent: usize,
    pending: usize,
}

enum Piece {
    Arena(Range<usize>),
    Shared(Bytes),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Arena(range) => range.len(),
            Self::Shared(bytes) => bytes.len(),
        }
    }
}

impl Outgoing {
    /// Bytes that the socket has not taken yet.
    pub fn pending(&self) -> usize {
        self.pending
    }

    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Queues a message; lengths and checksum of the header are filled in here.
    pub fn push(&mut self, header: Header, meta: &[u8], payload: &Bytes) {
        self.push_sealed(header, meta, payload, body_crc(meta, payload));
    }

    /// [`Outgoing::push`] when the checksum of the body is known.
    pub fn push_sealed(&mut self, header: Header, meta: &[u8], payload: &Bytes, body_crc: u32) {
        let header =
            Header { meta_len: meta.len() as u32, payload_len: payload.len() as u32, body_crc, ..header };
        self.append(&header.encode());
        self.append(meta);
        if payload.len() <= SMALL {
            self.append(payload);
        } else {
            self.pending += payload.len();
            self.pieces.push_back(Piece::Shared(payload.clone()));
        }
    }

    /// Queues a message whose payload `fill` writes where it will be sent from. `None` from `fill` takes the message
    /// back.
    pub fn push_in_place<T>(
        &mut self,
        header: Header,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]) -> Option<T>,
    ) -> Option<T> {
        let start = self.used;
        self.reserve(HEADER + payload_len);
        let payload = &mut self.arena[start + HEADER..start + HEADER + payload_len];
        let filled = fill(payload)?;
        let header =
            Header { meta_len: 0, payload_len: payload_len as u32, body_crc: crc32c(payload), ..header };
        self.arena[start..start + HEADER].copy_from_slice(&header.encode());
        self.commit(HEADER + payload_len);
        Some(filled)
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.reserve(bytes.len());
        self.arena[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.commit(bytes.len());
    }

    /// Makes room without giving it a meaning yet; the buffer is cleared once, when it grows.
    fn reserve(&mut self, len: usize) {
        let needed = self.used + len;
        if self.arena.len() < needed {
            self.arena.resize(needed.next_power_of_two().max(64 << 10), 0);
        }
    }

    fn commit(&mut self, len: usize) {
        let range = self.used..self.used + len;
        self.used = range.end;
        self.pending += len;
        match self.pieces.back_mut() {
            Some(Piece::Arena(last)) if last.end == range.start => last.end = range.end,
            _ => self.pieces.push_back(Piece::Arena(range)),
        }
    }

    /// Writes until nothing is left or the socket is full. May be given up at any point and called again.
    pub fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<io::Result<()>> {
        while self.pending > 0 {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                let bytes = match piece {
                    Piece::Arena(range) => &self.arena[range.clone()],
                    Piece::Shared(bytes) => &bytes[..],
                };
                *slice = IoSlice::new(if count == 0 { &bytes[self.sent..] } else { bytes });
                count += 1;
            }
            let written = ready!(Pin::new(&mut *to).poll_write_vectored(cx, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Gives memory back that a busy time left behind.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            self.arena = Vec::new();
        }
    }

    fn advance(&mut self, written: usize) {
        self.pending -= written;
        self.sent += written;
        while let Some(front) = self.pieces.front()
            && self.sent >= front.len()
        {
            self.sent -= front.len();
            self.pieces.pop_front();
        }
        if self.pieces.is_empty() {
            self.used = 0;
            if self.arena.len() > KEEP {
                self.arena = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;
    use crate::wire::frame::{Frame, Limits, Parsed, parse};

    /// A socket that takes at most so many bytes at once and is full now and then.
    struct Trickle {
        taken: Vec<u8>,
        steps: Vec<usize>,
        calls: usize,
    }

    impl AsyncWrite for Trickle {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(buf)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.calls += 1;
            let mut room = self.steps.pop().unwrap_or(usize::MAX);
            if room == 0 {
                return Poll::Pending;
            }
            let before = self.taken.len();
            for buf in bufs {
                let now = room.min(buf.len());
                self.taken.extend_from_slice(&buf[..now]);
                room -= now;
            }
            Poll::Ready(Ok(self.taken.len() - before))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn read_back(bytes: &[u8]) -> Vec<Frame> {
        let mut buffer = BytesMut::from(bytes);
        let mut frames = Vec::new();
        while let Parsed::Frame(frame) = parse(&mut buffer, Limits::SESSION).unwrap() {
            frames.push(frame);
        }
        assert!(buffer.is_empty());
        frames
    }

    proptest! {
        #[test]
        fn every_message_arrives_whole_and_in_order(
            sizes in proptest::collection::vec((0usize..2000, any::<bool>(), 0u8..4), 1..100),
            steps in proptest::collection::vec(0usize..5000, 0..40),
        ) {
            let mut outgoing = Outgoing::default();
            let mut socket = Trickle { taken: Vec::new(), steps, calls: 0 };
            let mut cx = Context::from_waker(Waker::noop());
            for (id, &(size, in_place, write)) in sizes.iter().enumerate() {
                let header = Header { id: id as u64, ..Header::default() };
                if in_place {
                    let filled = outgoing.push_in_place(header, size, |into| {
                        into.fill(id as u8);
                        Some(())
                    });
                    prop_assert!(filled.is_some());
                    let refused: Option<()> = outgoing.push_in_place(header, 100, |into| { into.fill(99); None });
                    prop_assert!(refused.is_none());
                } else {
                    outgoing.push(header, b"meta", &Bytes::from(vec![id as u8; size]));
                }
                if write == 0 {
                    while outgoing.poll_write(&mut cx, &mut socket).is_pending() {}
                    prop_assert!(outgoing.is_empty());
                }
            }
            while outgoing.poll_write(&mut cx, &mut socket).is_pending() {}
            let frames = read_back(&socket.taken);
            prop_assert_eq!(frames.len(), sizes.len());
            for (id, (frame, (size, ..))) in frames.iter().zip(&sizes).enumerate() {
                prop_assert_eq!(frame.header.id, id as u64);
                prop_assert_eq!(&frame.payload[..], &vec![id as u8; *size][..]);
            }
        }
    }

    #[test]
    fn a_batch_is_one_system_call() {
        let mut outgoing = Outgoing::default();
        let mut socket = Trickle { taken: Vec::new(), steps: Vec::new(), calls: 0 };
        let payload = Bytes::from(vec![1; 4096]);
        for id in 0..PIECES as u64 / 2 {
            outgoing.push(Header { id, ..Header::default() }, &[], &payload);
        }
        let wrote = outgoing.poll_write(&mut Context::from_waker(Waker::noop()), &mut socket);
        assert!(matches!(wrote, Poll::Ready(Ok(()))));
        assert_eq!(socket.calls, 1);
    }
}
