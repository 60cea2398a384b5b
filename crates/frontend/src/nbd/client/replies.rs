//! What a server has sent: bytes in, whole replies out. Large payloads get a buffer of their own.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio_util::io::poll_read_buf;

use super::super::stream::Stream;
use super::super::wire::{
    CHUNK_HEADER_LEN, CHUNK_MAGIC, MAX_PAYLOAD, SIMPLE_REPLY_LEN, SIMPLE_REPLY_MAGIC, chunk,
};

const CHUNK: usize = 128 << 10;
const MIN_ROOM: usize = 32 << 10;
const LARGE: usize = 32 << 10;

/// One reply, or one chunk of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub cookie: u64,
    pub body: Body,
    /// Nothing more comes for this cookie.
    pub done: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Simple { error: u32, data: Bytes },
    Chunk { kind: u16, data: Bytes },
}

#[derive(Clone, Copy)]
struct Head {
    cookie: u64,
    kind: HeadKind,
    len: usize,
    done: bool,
}

#[derive(Clone, Copy)]
enum HeadKind {
    Simple(u32),
    Chunk(u16),
}

#[derive(Default)]
pub(super) struct Replies {
    buffer: BytesMut,
    large: Option<(Head, BytesMut)>,
}

impl Replies {
    /// The next message that is there whole. `data_len` says how much data a simple reply without error brings.
    pub fn next(&mut self, data_len: impl Fn(u64) -> usize) -> io::Result<Option<Message>> {
        if let Some((head, payload)) = self.large.take() {
            if payload.len() < head.len {
                self.large = Some((head, payload));
                return Ok(None);
            }
            return Ok(Some(head.with(payload.freeze())));
        }
        let Some((head, head_len)) = self.head(data_len)? else { return Ok(None) };
        if self.buffer.len() >= head_len + head.len {
            self.buffer.advance(head_len);
            return Ok(Some(head.with(self.buffer.split_to(head.len).freeze())));
        }
        if head.len >= LARGE {
            let mut payload = BytesMut::with_capacity(head.len);
            payload.put_slice(&self.buffer[head_len..]);
            self.buffer.clear();
            self.large = Some((head, payload));
        }
        Ok(None)
    }

    /// Receives more; only after [`Self::next`] had nothing.
    pub fn poll_fill(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Some((head, payload)) = &mut self.large {
            let missing = head.len - payload.len();
            return poll_read_buf(Pin::new(stream), cx, &mut payload.limit(missing));
        }
        if self.buffer.capacity() - self.buffer.len() < MIN_ROOM {
            self.buffer.reserve(CHUNK);
        }
        poll_read_buf(Pin::new(stream), cx, &mut self.buffer)
    }

    fn head(&self, data_len: impl Fn(u64) -> usize) -> io::Result<Option<(Head, usize)>> {
        let mut raw = &self.buffer[..];
        if raw.len() < SIMPLE_REPLY_LEN {
            return Ok(None);
        }
        match raw.get_u32() {
            SIMPLE_REPLY_MAGIC => {
                let (error, cookie) = (raw.get_u32(), raw.get_u64());
                let len = if error == 0 { data_len(cookie) } else { 0 };
                Ok(Some((Head { cookie, kind: HeadKind::Simple(error), len, done: true }, SIMPLE_REPLY_LEN)))
            }
            CHUNK_MAGIC if self.buffer.len() < CHUNK_HEADER_LEN => Ok(None),
            CHUNK_MAGIC => {
                let (flags, kind, cookie) = (raw.get_u16(), raw.get_u16(), raw.get_u64());
                let len = raw.get_u32() as usize;
                if len > MAX_PAYLOAD as usize + 64 {
                    return Err(io::Error::other("the server sends more than was asked for"));
                }
                let done = flags & chunk::DONE != 0;
                Ok(Some((Head { cookie, kind: HeadKind::Chunk(kind), len, done }, CHUNK_HEADER_LEN)))
            }
            _ => Err(io::Error::other("what the server sends is not a reply")),
        }
    }
}

impl Head {
    fn with(self, data: Bytes) -> Message {
        let body = match self.kind {
            HeadKind::Simple(error) => Body::Simple { error, data },
            HeadKind::Chunk(kind) => Body::Chunk { kind, data },
        };
        Message { cookie: self.cookie, body, done: self.done }
    }
}
