//! What is to be sent to the other side: small pieces gathered, large ones as they are, all with few system calls.
//! It never copies a payload.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use super::stream::Stream;

/// Slices passed to one system call: 64 replies with data.
const MAX_SLICES: usize = 128;
/// Headers are put into memory of this size; a new one is made when they are still being sent.
const HEADS: usize = 4 << 10;
/// No header is longer.
const MAX_HEAD: usize = 64;

#[derive(Default)]
pub(crate) struct Outbox {
    heads: BytesMut,
    queue: VecDeque<Bytes>,
    /// Bytes in the queue.
    queued: usize,
    /// TLS may hold bytes back until it is flushed.
    unflushed: bool,
}

impl Outbox {
    pub fn with(bytes: Bytes) -> Self {
        let mut outbox = Self::default();
        outbox.payload(bytes);
        outbox
    }

    /// Where a header is appended.
    pub fn head(&mut self) -> &mut BytesMut {
        if self.heads.capacity() - self.heads.len() < MAX_HEAD {
            self.seal();
            self.heads.reserve(HEADS);
        }
        &mut self.heads
    }

    pub fn payload(&mut self, payload: Bytes) {
        if !payload.is_empty() {
            self.seal();
            self.queued += payload.len();
            self.queue.push_back(payload);
        }
    }

    /// How many bytes wait to be sent.
    pub fn len(&self) -> usize {
        self.queued + self.heads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.heads.is_empty() && !self.unflushed
    }

    /// Sends until all is sent or the socket takes no more.
    pub fn poll_send(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.seal();
        while !self.queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let count = self.queue.len().min(MAX_SLICES);
            for (slice, part) in slices.iter_mut().zip(&self.queue) {
                *slice = IoSlice::new(part);
            }
            let sent = ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &slices[..count]))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unflushed = stream.is_tls();
            self.advance(sent);
        }
        if self.unflushed {
            ready!(Pin::new(stream).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// All that was not sent, in one piece.
    pub fn into_bytes(mut self) -> Bytes {
        self.seal();
        let mut bytes = BytesMut::with_capacity(self.queue.iter().map(Bytes::len).sum());
        self.queue.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes.freeze()
    }

    fn seal(&mut self) {
        if !self.heads.is_empty() {
            let heads = self.heads.split().freeze();
            self.queued += heads.len();
            self.queue.push_back(heads);
        }
    }

    fn advance(&mut self, mut sent: usize) {
        self.queued -= sent;
        while let Some(part) = self.queue.front_mut() {
            if part.len() > sent {
                return part.advance(sent);
            }
            sent -= part.len();
            self.queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn headers_and_payloads_arrive_in_order_through_a_socket_that_takes_little() {
        let (server, mut client) = UnixStream::pair().unwrap();
        let mut stream = Stream::Unix(server);
        let (mut outbox, mut expected) = (Outbox::default(), Vec::new());
        for id in 0..500_u32 {
            outbox.head().put_u32(id);
            expected.put_u32(id);
            let payload = Bytes::from(vec![id as u8; (id as usize * 37) % 5000]);
            expected.extend_from_slice(&payload);
            outbox.payload(payload);
        }
        let mut received = vec![0; expected.len()];
        let send = std::future::poll_fn(|cx| outbox.poll_send(&mut stream, cx));
        let (sent, read) = tokio::join!(send, client.read_exact(&mut received));
        sent.unwrap();
        read.unwrap();
        assert_eq!(received, expected);
        assert!(outbox.is_empty());
    }

    #[test]
    fn what_was_not_sent_can_be_taken_elsewhere() {
        let mut outbox = Outbox::default();
        outbox.head().put_slice(b"one ");
        outbox.payload(Bytes::from_static(b"two "));
        outbox.head().put_slice(b"three");
        outbox.advance(0);
        assert_eq!(outbox.into_bytes(), "one two three");
    }
}
