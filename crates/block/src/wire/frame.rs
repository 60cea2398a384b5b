//! The envelope of everything on a connection: a header of fixed size, JSON if the message is rare, bytes if it has
//! any. Lengths are judged before anything is kept for them; what the fields mean is the codec's.

use bytes::{Buf, Bytes, BytesMut};

use super::checksum::crc32c;
use crate::geometry::MAX_IO;

/// Three letters and the version of this layout. What the messages mean has a version of its own, agreed at the
/// handshake.
const MAGIC: u32 = u32::from_le_bytes(*b"GRN\x01");

/// Bytes of a header.
pub const HEADER: usize = 48;

/// How large a message may be. A peer that has not proved the key is listened to for a few hundred bytes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub meta: u32,
    pub payload: u32,
}

impl Limits {
    pub const HANDSHAKE: Self = Self { meta: 0, payload: 512 };
    /// The largest meta is the description of a replica: 250 layers with labels and a fragmented intent map.
    pub const SESSION: Self = Self { meta: 4 << 20, payload: MAX_IO };
}

/// The fixed part. `offset` and `length` belong to the data requests and are zero elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub kind: u8,
    pub flags: u8,
    pub id: u64,
    pub offset: u64,
    pub length: u64,
    pub meta_len: u32,
    pub payload_len: u32,
    /// CRC-32C of meta and payload.
    pub body_crc: u32,
}

/// One whole message. `meta` and `payload` are slices of what was read, not copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub header: Header,
    pub meta: Bytes,
    pub payload: Bytes,
}

/// Why the bytes on a connection are not ours. There is no way to find the next message after any of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("the peer does not speak this protocol, or another layout of it (it began with {0:#010x})")]
    Magic(u32),
    #[error("a message header is damaged")]
    HeaderChecksum,
    #[error("the content of message {0} is damaged")]
    BodyChecksum(u64),
    #[error("a message of {meta} + {payload} bytes is larger than this connection allows")]
    TooLarge { meta: u32, payload: u32 },
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4] = self.kind;
        out[5] = self.flags;
        out[8..16].copy_from_slice(&self.id.to_le_bytes());
        out[16..24].copy_from_slice(&self.offset.to_le_bytes());
        out[24..32].copy_from_slice(&self.length.to_le_bytes());
        out[32..36].copy_from_slice(&self.meta_len.to_le_bytes());
        out[36..40].copy_from_slice(&self.payload_len.to_le_bytes());
        out[40..44].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = crc32c(&out[..HEADER - 4]);
        out[44..48].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// After the magic was seen to be right.
    fn decode(bytes: &[u8; HEADER]) -> Result<Self, FrameError> {
        let mut fields = &bytes[..];
        fields.advance(4);
        if crc32c(&bytes[..HEADER - 4]) != (&bytes[HEADER - 4..]).get_u32_le() {
            return Err(FrameError::HeaderChecksum);
        }
        let (kind, flags) = (fields.get_u8(), fields.get_u8());
        fields.advance(2); // Two spare bytes keep the numbers aligned.
        Ok(Self {
            kind,
            flags,
            id: fields.get_u64_le(),
            offset: fields.get_u64_le(),
            length: fields.get_u64_le(),
            meta_len: fields.get_u32_le(),
            payload_len: fields.get_u32_le(),
            body_crc: fields.get_u32_le(),
        })
    }

    fn body_len(&self) -> usize {
        self.meta_len as usize + self.payload_len as usize
    }
}

/// What the front of a buffer is.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Frame(Frame),
    /// So many bytes, counted from the start of the buffer, make the next step possible.
    NeedBytes(usize),
}

/// Takes one message off the front of the buffer, or says how much must be there first.
pub fn parse(buffer: &mut BytesMut, limits: Limits) -> Result<Parsed, FrameError> {
    // A peer that speaks something else may never say enough for a whole header.
    if let Some(magic) = buffer.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
        && magic != MAGIC
    {
        return Err(FrameError::Magic(magic));
    }
    let Some(bytes) = buffer.first_chunk::<HEADER>() else { return Ok(Parsed::NeedBytes(HEADER)) };
    let header = Header::decode(bytes)?;
    if header.meta_len > limits.meta || header.payload_len > limits.payload {
        return Err(FrameError::TooLarge { meta: header.meta_len, payload: header.payload_len });
    }
    let total = HEADER + header.body_len();
    if buffer.len() < total {
        return Ok(Parsed::NeedBytes(total));
    }
    let mut meta = buffer.split_to(total).freeze();
    meta.advance(HEADER);
    if crc32c(&meta) != header.body_crc {
        return Err(FrameError::BodyChecksum(header.id));
    }
    let payload = meta.split_off(header.meta_len as usize);
    Ok(Parsed::Frame(Frame { header, meta, payload }))
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;
    use proptest::prelude::*;

    use super::super::checksum::body_crc;
    use super::*;

    fn bytes_of(frame: &Frame) -> BytesMut {
        let mut out = BytesMut::new();
        out.put_slice(&frame.header.encode());
        out.put_slice(&frame.meta);
        out.put_slice(&frame.payload);
        out
    }

    fn any_frame() -> impl Strategy<Value = Frame> {
        let body = || proptest::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from);
        (any::<(u8, u8, u64, u64, u64)>(), body(), body()).prop_map(
            |((kind, flags, id, offset, length), meta, payload)| Frame {
                header: Header {
                    kind,
                    flags,
                    id,
                    offset,
                    length,
                    meta_len: meta.len() as u32,
                    payload_len: payload.len() as u32,
                    body_crc: body_crc(&meta, &payload),
                },
                meta,
                payload,
            },
        )
    }

    fn parse_all(buffer: &mut BytesMut) -> Result<Vec<Frame>, FrameError> {
        let mut frames = Vec::new();
        while let Parsed::Frame(frame) = parse(buffer, Limits::SESSION)? {
            frames.push(frame);
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_survive_any_split_of_the_stream(
            frames in proptest::collection::vec(any_frame(), 1..6),
            cuts in proptest::collection::vec(1usize..300, 0..20),
        ) {
            let stream: Vec<u8> = frames.iter().flat_map(|frame| bytes_of(frame).to_vec()).collect();
            let (mut rest, mut buffer, mut seen) = (&stream[..], BytesMut::new(), Vec::new());
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                buffer.extend_from_slice(now);
                rest = later;
                seen.extend(parse_all(&mut buffer).unwrap());
            }
            prop_assert_eq!(seen, frames);
            prop_assert!(buffer.is_empty());
        }

        #[test]
        fn a_flipped_bit_never_passes(frame in any_frame(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = bytes_of(&frame);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(parse_all(&mut bytes).is_err(), "bit {} of byte {} went unnoticed", bit, at);
        }

        #[test]
        fn a_cut_message_waits_for_the_rest(frame in any_frame(), at in any::<prop::sample::Index>()) {
            let mut bytes = bytes_of(&frame);
            let at = at.index(bytes.len());
            bytes.truncate(at);
            match parse(&mut bytes, Limits::SESSION).unwrap() {
                Parsed::NeedBytes(total) => prop_assert!(total > at),
                Parsed::Frame(_) => prop_assert!(false, "half a message was taken for a whole one"),
            }
        }

        #[test]
        fn arbitrary_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), HEADER..300)) {
            prop_assert!(parse_all(&mut BytesMut::from(&bytes[..])).is_err());
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_the_body_arrives() {
        for (meta_len, payload_len) in [(Limits::SESSION.meta + 1, 0), (0, MAX_IO + 1), (u32::MAX, u32::MAX)]
        {
            let header = Header { meta_len, payload_len, ..Header::default() };
            let mut bytes = BytesMut::from(&header.encode()[..]);
            let refused = parse(&mut bytes, Limits::SESSION);
            assert_eq!(refused, Err(FrameError::TooLarge { meta: meta_len, payload: payload_len }));
        }
    }

    #[test]
    fn payloads_are_slices_of_what_was_read() {
        let payload = Bytes::from(vec![7; 4096]);
        let header = Header { payload_len: 4096, body_crc: body_crc(&[], &payload), ..Header::default() };
        let mut buffer = BytesMut::new();
        buffer.put_slice(&header.encode());
        buffer.put_slice(&payload);
        let within = buffer.as_ptr_range();
        let Parsed::Frame(frame) = parse(&mut buffer, Limits::SESSION).unwrap() else { panic!("cut short") };
        assert!(within.contains(&frame.payload.as_ptr()));
    }
}
