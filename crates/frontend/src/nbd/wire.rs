//! The numbers of the NBD protocol and the shapes of its messages, for both sides.
//! It decodes and encodes; what a message means is decided elsewhere.

use bytes::{Buf, BufMut, BytesMut};

use crate::VolumeError;

pub(crate) const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(crate) const CHUNK_MAGIC: u32 = 0x668e_33ef;

pub(crate) const REQUEST_LEN: usize = 28;
pub(crate) const OPTION_HEADER_LEN: usize = 16;
pub(crate) const SIMPLE_REPLY_LEN: usize = 16;
pub(crate) const CHUNK_HEADER_LEN: usize = 20;

/// The largest payload of one request, and what clients assume when nobody tells them.
pub(crate) const MAX_PAYLOAD: u32 = 32 << 20;
pub(crate) const PREFERRED_BLOCK: u32 = 4096;
/// Names in the protocol are at most this long.
pub(crate) const MAX_STRING: usize = 4096;
/// The one context we give out: `base:allocation`.
pub(crate) const ALLOCATION_CONTEXT: &str = "base:allocation";
pub(crate) const ALLOCATION_CONTEXT_ID: u32 = 1;

pub(crate) mod handshake_flag {
    pub const FIXED_NEWSTYLE: u16 = 1;
    pub const NO_ZEROES: u16 = 2;
}

pub(crate) mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

pub(crate) mod option_reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const FIRST_ERROR: u32 = 1 << 31;
    pub const UNSUPPORTED: u32 = FIRST_ERROR + 1;
    pub const POLICY: u32 = FIRST_ERROR + 2;
    pub const INVALID: u32 = FIRST_ERROR + 3;
    pub const TLS_REQUIRED: u32 = FIRST_ERROR + 5;
    pub const UNKNOWN: u32 = FIRST_ERROR + 6;
}

pub(crate) mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

pub(crate) mod export_flag {
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

pub(crate) mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISCONNECT: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

pub(crate) mod command_flag {
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DONT_FRAGMENT: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

pub(crate) mod chunk {
    pub const DONE: u16 = 1;
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    /// Every type with this bit reports an error.
    pub const ERROR_BIT: u16 = 1 << 15;
    pub const ERROR: u16 = ERROR_BIT + 1;
}

/// `base:allocation`: a hole that reads as zero.
pub(crate) const STATE_HOLE_AND_ZERO: u32 = 3;

/// The errors the protocol knows, with its numbers for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum NbdError {
    NotPermitted = 1,
    Io = 5,
    Invalid = 22,
    NoSpace = 28,
    NotSupported = 95,
    Shutdown = 108,
}

impl From<VolumeError> for NbdError {
    fn from(error: VolumeError) -> Self {
        match error {
            VolumeError::Io => Self::Io,
            VolumeError::NoSpace => Self::NoSpace,
            VolumeError::Invalid => Self::Invalid,
            VolumeError::ShuttingDown => Self::Shutdown,
        }
    }
}

/// What a client is told of an error number; those we do not know are input/output errors.
pub(crate) fn volume_error(number: u32) -> VolumeError {
    match number {
        22 | 75 | 95 => VolumeError::Invalid,
        28 => VolumeError::NoSpace,
        108 => VolumeError::ShuttingDown,
        _ => VolumeError::Io,
    }
}

/// The header of one request of the transmission phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub flags: u16,
    pub command: u16,
    pub cookie: u64,
    pub offset: u64,
    pub len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error("a request began with {0:#010x}, which is not the magic number of one")]
    Magic(u32),
    #[error("a write of {0} bytes, more than the {MAX_PAYLOAD} the client was told")]
    TooLarge(u32),
}

impl Request {
    pub fn decode(raw: &[u8; REQUEST_LEN]) -> Result<Self, ProtocolError> {
        let mut raw = raw.as_slice();
        let magic = raw.get_u32();
        if magic != REQUEST_MAGIC {
            return Err(ProtocolError::Magic(magic));
        }
        let request = Self {
            flags: raw.get_u16(),
            command: raw.get_u16(),
            cookie: raw.get_u64(),
            offset: raw.get_u64(),
            len: raw.get_u32(),
        };
        match request.payload_len() {
            len if len > MAX_PAYLOAD as usize => Err(ProtocolError::TooLarge(request.len)),
            _ => Ok(request),
        }
    }

    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u32(REQUEST_MAGIC);
        out.put_u16(self.flags);
        out.put_u16(self.command);
        out.put_u64(self.cookie);
        out.put_u64(self.offset);
        out.put_u32(self.len);
    }

    /// How many bytes follow the header.
    pub fn payload_len(&self) -> usize {
        if self.command == command::WRITE { self.len as usize } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_request_survives_the_wire(flags: u16, command in 0_u16..9, cookie: u64, offset: u64, len in 0..=MAX_PAYLOAD) {
            let request = Request { flags, command, cookie, offset, len };
            let mut raw = BytesMut::new();
            request.encode(&mut raw);
            prop_assert_eq!(Request::decode(raw[..].try_into().unwrap()), Ok(request));
        }

        #[test]
        fn only_a_write_can_be_too_large(command in 0_u16..9, len in MAX_PAYLOAD + 1..) {
            let mut raw = BytesMut::new();
            Request { flags: 0, command, cookie: 0, offset: 0, len }.encode(&mut raw);
            let refused = Request::decode(raw[..].try_into().unwrap()) == Err(ProtocolError::TooLarge(len));
            prop_assert_eq!(refused, command == command::WRITE);
        }
    }

    #[test]
    fn garbage_is_not_a_request() {
        assert_eq!(Request::decode(&[0x55; REQUEST_LEN]), Err(ProtocolError::Magic(0x5555_5555)));
    }
}
