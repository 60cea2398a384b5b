//! What a client has sent and nobody has begun: bytes in, requests with their payload out.
//! A payload is a slice of the receive buffer, or of a buffer of its own when it is large; it is never copied
//! twice. It never holds more than one receive buffer and one large payload.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio_util::io::poll_read_buf;

use super::stream::Stream;
use super::wire::{ProtocolError, REQUEST_LEN, Request};

/// One receive buffer: thirty writes of 4 KiB in one system call.
const CHUNK: usize = 128 << 10;
/// With less room than this, a new buffer is begun rather than the old one filled up.
const MIN_ROOM: usize = 32 << 10;
/// A payload from this size on is received straight into a buffer of its own.
const LARGE: usize = 32 << 10;
/// After a large payload another one is likely: read little more than its header, so that little is copied.
const AFTER_LARGE: usize = 4 << 10;

#[derive(Default)]
pub(crate) struct Inbox {
    buffer: BytesMut,
    large: Option<LargeWrite>,
    after_large: bool,
}

struct LargeWrite {
    request: Request,
    payload: BytesMut,
}

impl Inbox {
    /// Begins with bytes that were received elsewhere.
    pub fn with(buffer: BytesMut) -> Self {
        Self { buffer, ..Self::default() }
    }

    /// The next request that has arrived with all of its payload.
    pub fn next(&mut self) -> Result<Option<(Request, Bytes)>, ProtocolError> {
        if let Some(large) = &self.large {
            return Ok(if large.payload.len() < large.request.payload_len() {
                None
            } else {
                self.after_large = true;
                self.large.take().map(|large| (large.request, large.payload.freeze()))
            });
        }
        let Some(header) = self.buffer.first_chunk::<REQUEST_LEN>() else { return Ok(None) };
        let request = Request::decode(header)?;
        let len = request.payload_len();
        if self.buffer.len() - REQUEST_LEN >= len {
            self.buffer.advance(REQUEST_LEN);
            self.after_large = false;
            let payload = if len == 0 { Bytes::new() } else { self.buffer.split_to(len).freeze() };
            return Ok(Some((request, payload)));
        }
        if len >= LARGE {
            let mut payload = BytesMut::with_capacity(len);
            payload.put_slice(&self.buffer[REQUEST_LEN..]);
            self.buffer.clear();
            self.large = Some(LargeWrite { request, payload });
        }
        Ok(None)
    }

    /// Receives more; the number of bytes, 0 at the end of the stream.
    pub fn poll_fill(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let stream = Pin::new(stream);
        if let Some(large) = &mut self.large {
            let missing = large.request.payload_len() - large.payload.len();
            return poll_read_buf(stream, cx, &mut (&mut large.payload).limit(missing));
        }
        if self.buffer.capacity() - self.buffer.len() < MIN_ROOM {
            self.buffer.reserve(CHUNK);
        }
        let limit = if self.after_large { AFTER_LARGE } else { usize::MAX };
        poll_read_buf(stream, cx, &mut (&mut self.buffer).limit(limit))
    }

    /// Everything not yet handed out, as it came.
    pub fn into_bytes(self) -> BytesMut {
        match self.large {
            None => self.buffer,
            Some(large) => {
                let mut bytes = BytesMut::with_capacity(REQUEST_LEN + large.payload.len());
                large.request.encode(&mut bytes);
                bytes.unsplit(large.payload);
                bytes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixStream;

    use super::super::wire::{MAX_PAYLOAD, command};
    use super::*;

    fn request(cookie: u64, len: u32) -> Request {
        Request { flags: 0, command: command::WRITE, cookie, offset: 0, len }
    }

    fn encode(request: &Request) -> BytesMut {
        let mut bytes = BytesMut::new();
        request.encode(&mut bytes);
        bytes.put_bytes(request.cookie as u8, request.payload_len());
        bytes
    }

    async fn take(inbox: &mut Inbox, stream: &mut Stream) -> (Request, Bytes) {
        loop {
            if let Some(request) = inbox.next().unwrap() {
                return request;
            }
            let received = std::future::poll_fn(|cx| inbox.poll_fill(stream, cx)).await.unwrap();
            assert_ne!(received, 0, "the stream ended early");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Small, large and empty payloads in any order arrive whole, also when what was received moves to another
        /// inbox in between, as it does in a handover.
        #[test]
        fn requests_come_out_as_they_went_in(lens in proptest::collection::vec(
            (prop_oneof![0_u32..20_000, 20_000_u32..300_000, Just(0)], any::<bool>()), 1..20,
        )) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (mut client, server) = UnixStream::pair().unwrap();
                let mut stream = Stream::Unix(server);
                let sent: Vec<_> = lens.iter().zip(0..).map(|((len, _), id)| request(id, *len)).collect();
                let bytes: Vec<_> = sent.iter().map(encode).collect();
                let sender = tokio::spawn(async move {
                    for part in bytes {
                        client.write_all(&part).await.unwrap();
                    }
                    client
                });
                let mut inbox = Inbox::default();
                for (expected, (_, moves)) in sent.iter().zip(&lens) {
                    let (request, payload) = take(&mut inbox, &mut stream).await;
                    assert_eq!(&request, expected);
                    assert_eq!(payload, vec![request.cookie as u8; request.payload_len()]);
                    if *moves {
                        inbox = Inbox::with(inbox.into_bytes());
                    }
                }
                sender.await.unwrap();
            });
        }
    }

    #[test]
    fn a_large_write_that_has_only_begun_moves_on_with_its_header() {
        let whole = encode(&request(9, 1 << 20));
        let mut inbox = Inbox::with(BytesMut::from(&whole[..100_000]));
        assert_eq!(inbox.next(), Ok(None));
        assert!(inbox.large.is_some());
        assert_eq!(inbox.into_bytes(), whole[..100_000]);
    }

    #[test]
    fn a_payload_beyond_the_limit_takes_no_memory() {
        let mut header = BytesMut::new();
        request(1, MAX_PAYLOAD + 1).encode(&mut header);
        let mut inbox = Inbox::with(header);
        assert_eq!(inbox.next(), Err(ProtocolError::TooLarge(MAX_PAYLOAD + 1)));
        assert!(inbox.large.is_none());
    }
}
