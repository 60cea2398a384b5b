//! Requests and replies as frames. The data path has its fields in the header; the rest is JSON.
//! Says whether a message is well formed, never whether it may be carried out.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::checksum::Seal;
use super::frame::{Frame, Header};
use super::message::{Control, Failure, Reply, Request, Run};
use super::outgoing::Outgoing;
use crate::geometry::Range;

mod kind {
    pub const READ: u8 = 0x01;
    pub const WRITE: u8 = 0x02;
    pub const ZERO: u8 = 0x03;
    pub const FLUSH: u8 = 0x04;
    pub const CONTROL: u8 = 0x05;
    pub const CONTROL_WITH: u8 = 0x06;

    pub const DONE: u8 = 0x81;
    pub const DATA: u8 = 0x82;
    pub const INFO: u8 = 0x83;
    pub const RUNS: u8 = 0x84;
    pub const RUNS_WITH: u8 = 0x85;
    pub const DIGESTS: u8 = 0x86;
    pub const CHECKSUM: u8 = 0x87;
    pub const FAILED: u8 = 0x88;
}

const DURABLE: u8 = 1;
const ALLOCATE: u8 = 2;

/// A whole frame that is no message we know. The connection stays usable; a request of this sort is answered with
/// a failure.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("message {id} is of the unknown kind {kind:#04x}")]
    Kind { id: u64, kind: u8 },
    #[error("message {id} carries something that its kind has no place for")]
    Shape { id: u64 },
    #[error("message {id} cannot be read: {source}")]
    Meta { id: u64, source: serde_json::Error },
}

impl CodecError {
    pub fn id(&self) -> u64 {
        match self {
            Self::Kind { id, .. } | Self::Shape { id } | Self::Meta { id, .. } => *id,
        }
    }
}

impl Outgoing {
    pub fn request(&mut self, id: u64, request: &Request) {
        self.request_sealed(id, request, &mut Seal::default());
    }

    /// [`Outgoing::request`] for a request that goes to several replicas, one after the other.
    pub fn request_sealed(&mut self, id: u64, request: &Request, seal: &mut Seal) {
        let none = Bytes::new();
        match request {
            Request::Read { range } => self.push(ranged(kind::READ, 0, id, *range), &[], &none),
            Request::Write { offset, data, durable } => {
                let flags = if *durable { DURABLE } else { 0 };
                let range = Range::new(*offset, data.len() as u64);
                self.push_sealed(ranged(kind::WRITE, flags, id, range), &[], data, seal.of(data));
            }
            Request::Zero { range, allocate, durable } => {
                let flags = if *durable { DURABLE } else { 0 } | if *allocate { ALLOCATE } else { 0 };
                self.push(ranged(kind::ZERO, flags, id, *range), &[], &none);
            }
            Request::Flush => self.push(plain(kind::FLUSH, id), &[], &none),
            Request::Control(control) => self.with_meta(kind::CONTROL, id, control, &none),
            Request::ControlWith(control, data) => self.with_meta(kind::CONTROL_WITH, id, control, data),
        }
    }

    pub fn reply(&mut self, id: u64, reply: &Reply) {
        let none = Bytes::new();
        match reply {
            Reply::Done => self.push(plain(kind::DONE, id), &[], &none),
            Reply::Data(data) => self.push(plain(kind::DATA, id), &[], data),
            Reply::Info(info) => self.with_meta(kind::INFO, id, info, &none),
            Reply::Runs(runs) => self.with_meta(kind::RUNS, id, runs, &none),
            Reply::RunsWith(runs, data) => self.with_meta(kind::RUNS_WITH, id, runs, data),
            Reply::Digests(digests) => self.push(plain(kind::DIGESTS, id), &[], digests),
            Reply::Checksum(digest) => self.with_meta(kind::CHECKSUM, id, digest, &none),
            Reply::Failed(failure) => self.with_meta(kind::FAILED, id, failure, &none),
        }
    }

    /// [`Reply::Data`] without a buffer of its own: `fill` reads straight into what is sent.
    pub fn data_in_place<T>(
        &mut self,
        id: u64,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Option<T>,
    ) -> Option<T> {
        self.push_in_place(plain(kind::DATA, id), len, fill)
    }

    fn with_meta(&mut self, kind: u8, id: u64, meta: &impl Serialize, payload: &Bytes) {
        let meta = serde_json::to_vec(meta).expect("messages have string keys and no failing serializers");
        self.push(plain(kind, id), &meta, payload);
    }
}

fn plain(kind: u8, id: u64) -> Header {
    Header { kind, id, ..Header::default() }
}

fn ranged(kind: u8, flags: u8, id: u64, range: Range) -> Header {
    Header { kind, flags, id, offset: range.offset, length: range.len, ..Header::default() }
}

/// A request, beside the id that its reply must carry.
pub fn decode_request(frame: Frame) -> Result<(u64, Request), CodecError> {
    let Header { kind, flags, id, offset, length, .. } = frame.header;
    let known_flags = match kind {
        kind::WRITE => DURABLE,
        kind::ZERO => DURABLE | ALLOCATE,
        _ => 0,
    };
    if flags & !known_flags != 0 {
        return Err(CodecError::Shape { id });
    }
    let range = Range::new(offset, length);
    let durable = flags & DURABLE != 0;
    let request = match kind {
        kind::READ => bare(&frame, Request::Read { range })?,
        kind::WRITE if frame.meta.is_empty() && length == frame.payload.len() as u64 => {
            Request::Write { offset, data: frame.payload, durable }
        }
        kind::WRITE => return Err(CodecError::Shape { id }),
        kind::ZERO => bare(&frame, Request::Zero { range, allocate: flags & ALLOCATE != 0, durable })?,
        kind::FLUSH => bare(&frame, Request::Flush)?,
        kind::CONTROL if frame.payload.is_empty() => Request::Control(meta(&frame)?),
        kind::CONTROL => return Err(CodecError::Shape { id }),
        kind::CONTROL_WITH => Request::ControlWith(meta::<Control>(&frame)?, frame.payload),
        kind => return Err(CodecError::Kind { id, kind }),
    };
    Ok((id, request))
}

/// A reply, beside the id of the request it answers.
pub fn decode_reply(frame: Frame) -> Result<(u64, Reply), CodecError> {
    let id = frame.header.id;
    let reply = match frame.header.kind {
        kind::DONE => bare(&frame, Reply::Done)?,
        kind::DATA if frame.meta.is_empty() => Reply::Data(frame.payload),
        kind::INFO => Reply::Info(meta(&frame)?),
        kind::RUNS => Reply::Runs(meta(&frame)?),
        kind::RUNS_WITH => Reply::RunsWith(meta::<Vec<Run>>(&frame)?, frame.payload),
        kind::DIGESTS if frame.meta.is_empty() => Reply::Digests(frame.payload),
        kind::CHECKSUM => Reply::Checksum(meta(&frame)?),
        kind::FAILED => Reply::Failed(meta::<Failure>(&frame)?),
        kind::DATA | kind::DIGESTS => return Err(CodecError::Shape { id }),
        kind => return Err(CodecError::Kind { id, kind }),
    };
    Ok((id, reply))
}

fn bare<T>(frame: &Frame, message: T) -> Result<T, CodecError> {
    if frame.meta.is_empty() && frame.payload.is_empty() {
        Ok(message)
    } else {
        Err(CodecError::Shape { id: frame.header.id })
    }
}

fn meta<T: DeserializeOwned>(frame: &Frame) -> Result<T, CodecError> {
    serde_json::from_slice(&frame.meta).map_err(|source| CodecError::Meta { id: frame.header.id, source })
}

#[cfg(test)]
mod tests;
