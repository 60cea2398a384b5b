//! The kernel's FUSE protocol, as far as one directory with one file needs it: numbers, and how messages are laid out.
//! All integers are in the machine's own order. It decodes and encodes; it decides nothing.

use bytes::{Buf, BufMut, Bytes};

pub(super) const MAJOR: u32 = 7;
/// The newest minor version whose layouts these are; an older kernel is told so and keeps to its own.
pub(super) const MINOR: u32 = 36;
pub(super) const IN_HEADER_LEN: usize = 40;
const OUT_HEADER_LEN: usize = 16;

pub(super) const ROOT: u64 = 1;
pub(super) const FILE: u64 = 2;

pub(super) mod init_flag {
    pub const ASYNC_READ: u32 = 1;
    pub const BIG_WRITES: u32 = 1 << 5;
    pub const ASYNC_DIO: u32 = 1 << 15;
    pub const MAX_PAGES: u32 = 1 << 22;
}

/// Every read and write reaches us, so that what the volume says is what users see; writes need not wait for one
/// another.
pub(super) const OPEN_FLAGS: u32 = 1 | 1 << 6;

pub(super) mod fallocate_mode {
    pub const KEEP_SIZE: u32 = 1;
    pub const PUNCH_HOLE: u32 = 2;
    pub const ZERO_RANGE: u32 = 16;
}

pub(super) const SEEK_DATA: u32 = 3;
pub(super) const SEEK_HOLE: u32 = 4;

/// What the kernel asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Init {
        minor: u32,
        max_readahead: u32,
        flags: u32,
    },
    Lookup {
        name: Bytes,
    },
    GetAttributes,
    /// `size` when that is to change.
    SetAttributes {
        size: Option<u64>,
    },
    Open,
    Read {
        offset: u64,
        len: u32,
    },
    Write {
        offset: u64,
        data: Bytes,
    },
    /// fsync, fdatasync, and the close of a descriptor.
    Flush,
    Fallocate {
        offset: u64,
        len: u64,
        mode: u32,
    },
    Seek {
        offset: u64,
        whence: u32,
    },
    ReadDirectory {
        offset: u64,
    },
    StatFs,
    /// Closing, access checks and the like: always fine.
    Accept,
    /// Has no answer.
    Ignore,
    /// The file system is being unmounted.
    Destroy,
    Unknown(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub unique: u64,
    pub node: u64,
    pub operation: Operation,
}

impl Request {
    /// `None` for what no kernel sends.
    pub fn decode(mut message: Bytes) -> Option<Self> {
        if message.len() < IN_HEADER_LEN {
            return None;
        }
        let _len = message.get_u32_ne();
        let opcode = message.get_u32_ne();
        let unique = message.get_u64_ne();
        let node = message.get_u64_ne();
        message.advance(16);
        Some(Self { unique, node, operation: Operation::decode(opcode, message)? })
    }
}

impl Operation {
    fn decode(opcode: u32, mut body: Bytes) -> Option<Self> {
        let needed = match opcode {
            26 | 43 => 16,
            15 | 16 | 28 => 40,
            4 | 46 => 24,
            _ => 0,
        };
        if body.len() < needed {
            return None;
        }
        Some(match opcode {
            1 => Self::Lookup { name: body.slice(..body.len().saturating_sub(1)) },
            2 | 36 | 42 => Self::Ignore,
            3 => Self::GetAttributes,
            4 => {
                let valid = body.get_u32_ne();
                body.advance(12);
                let size = body.get_u64_ne();
                Self::SetAttributes { size: (valid & 8 != 0).then_some(size) }
            }
            14 | 27 => Self::Open,
            15 | 16 | 28 => {
                body.advance(8);
                let (offset, len) = (body.get_u64_ne(), body.get_u32_ne());
                body.advance(20);
                match opcode {
                    15 => Self::Read { offset, len },
                    28 => Self::ReadDirectory { offset },
                    _ if body.len() < len as usize => return None,
                    _ => Self::Write { offset, data: body.split_to(len as usize) },
                }
            }
            17 => Self::StatFs,
            18 | 29 | 30 | 34 => Self::Accept,
            20 | 25 => Self::Flush,
            26 => {
                let _major = body.get_u32_ne();
                let (minor, max_readahead) = (body.get_u32_ne(), body.get_u32_ne());
                Self::Init { minor, max_readahead, flags: body.get_u32_ne() }
            }
            38 => Self::Destroy,
            43 if body.len() < 28 => return None,
            43 => {
                body.advance(8);
                let (offset, len) = (body.get_u64_ne(), body.get_u64_ne());
                Self::Fallocate { offset, len, mode: body.get_u32_ne() }
            }
            46 if body.len() < 20 => return None,
            46 => {
                body.advance(8);
                Self::Seek { offset: body.get_u64_ne(), whence: body.get_u32_ne() }
            }
            other => Self::Unknown(other),
        })
    }
}

/// The header of an answer with `len` bytes after it.
pub(super) fn reply_header(unique: u64, error: i32, len: usize) -> [u8; OUT_HEADER_LEN] {
    let mut header = [0; OUT_HEADER_LEN];
    let mut out = &mut header[..];
    out.put_u32_ne((OUT_HEADER_LEN + len) as u32);
    out.put_i32_ne(-error);
    out.put_u64_ne(unique);
    header
}

pub(super) fn init_reply(minor: u32, max_readahead: u32, offered: u32, max_write: u32) -> Vec<u8> {
    use init_flag::{ASYNC_DIO, ASYNC_READ, BIG_WRITES, MAX_PAGES};
    let mut out = Vec::with_capacity(64);
    out.put_u32_ne(MAJOR);
    out.put_u32_ne(minor.min(MINOR));
    out.put_u32_ne(max_readahead);
    out.put_u32_ne(offered & (ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES));
    // Requests of a block device count as background ones; as many as we have room for may come.
    out.put_u16_ne(crate::in_flight::CAPACITY as u16);
    out.put_u16_ne((crate::in_flight::CAPACITY * 3 / 4) as u16);
    out.put_u32_ne(max_write);
    out.put_u32_ne(1);
    out.put_u16_ne((max_write / 4096) as u16);
    out.resize(64, 0);
    out
}

/// What of a node its users see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    pub node: u64,
    pub size: u64,
    /// Seconds since 1970, for all three times.
    pub time: u64,
}

impl Attributes {
    pub fn put(&self, out: &mut Vec<u8>) {
        let directory = self.node == ROOT;
        out.put_u64_ne(self.node);
        out.put_u64_ne(self.size);
        out.put_u64_ne(self.size.div_ceil(512));
        for _ in 0..3 {
            out.put_u64_ne(self.time);
        }
        out.put_bytes(0, 12);
        out.put_u32_ne(if directory { 0o040_700 } else { 0o100_600 });
        out.put_u32_ne(if directory { 2 } else { 1 });
        out.put_u32_ne(0);
        out.put_u32_ne(0);
        out.put_u32_ne(0);
        out.put_u32_ne(4096);
        out.put_u32_ne(0);
    }

    /// Not to be remembered by the kernel: the size can change.
    pub fn reply(&self) -> Vec<u8> {
        let mut out = vec![0; 16];
        self.put(&mut out);
        out
    }

    pub fn entry_reply(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.put_u64_ne(self.node);
        out.put_u64_ne(0);
        // The name never goes away; the attributes may change at any time.
        out.put_u64_ne(3600);
        out.put_u64_ne(0);
        out.put_bytes(0, 8);
        self.put(&mut out);
        out
    }
}

pub(super) fn put_directory_entry(out: &mut Vec<u8>, node: u64, next: u64, kind: u32, name: &str) {
    out.put_u64_ne(node);
    out.put_u64_ne(next);
    out.put_u32_ne(name.len() as u32);
    out.put_u32_ne(kind);
    out.put_slice(name.as_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(opcode: u32, body: &[u8]) -> Bytes {
        let mut message = Vec::new();
        message.put_u32_ne((IN_HEADER_LEN + body.len()) as u32);
        message.put_u32_ne(opcode);
        message.put_u64_ne(42);
        message.put_u64_ne(FILE);
        message.put_bytes(0, 16);
        message.put_slice(body);
        message.into()
    }

    #[test]
    fn a_write_carries_its_data_without_a_copy() {
        let mut body = Vec::new();
        body.put_u64_ne(0);
        body.put_u64_ne(4096);
        body.put_u32_ne(4);
        body.put_bytes(0, 20);
        body.put_slice(b"data");
        let message = message(16, &body);
        let end = message.as_ptr_range().end;
        let request = Request::decode(message).unwrap();
        let Operation::Write { offset: 4096, data } = request.operation else { panic!("{request:?}") };
        assert_eq!((&data[..], data.as_ptr_range().end), (&b"data"[..], end));
    }

    #[test]
    fn layouts_have_the_kernels_sizes() {
        let attributes = Attributes { node: FILE, size: 1, time: 0 };
        assert_eq!((attributes.reply().len(), attributes.entry_reply().len()), (104, 128));
        assert_eq!(init_reply(40, 0, 0, 1 << 20).len(), 64);
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(opcode in 0_u32..60, body: Vec<u8>, cut in 0_usize..100) {
            let message = message(opcode, &body);
            let _whole = Request::decode(message.clone());
            let _cut = Request::decode(message.slice(..cut.min(message.len())));
        }
    }
}
