//! How a block is packed: LZ4 frame, gzip or not at all, and how it is unpacked and verified.
//! Must never hand out data whose checksum was not compared.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use crate::checksum::Checksum;

const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Fixed for a volume by its first backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    Lz4,
    Gzip,
    None,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a compression method; known are lz4, gzip and none")]
pub struct UnknownCompression(String);

/// Why stored bytes are not the block that their name promises.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    #[error("it cannot be unpacked")]
    Unpack(#[source] io::Error),
    #[error("it holds {actual} bytes or more instead of {expected}")]
    Length { expected: usize, actual: usize },
    #[error("its data has the checksum {actual}")]
    Checksum { actual: Checksum },
}

impl Compression {
    /// What stores from before the method was recorded used.
    pub const LEGACY: Self = Self::Gzip;

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Gzip => "gzip",
            Self::None => "none",
        }
    }

    pub fn pack(self, data: Bytes) -> io::Result<Bytes> {
        match self {
            Self::None => Ok(data),
            Self::Gzip => {
                let mut encoder =
                    GzEncoder::new(Vec::with_capacity(data.len() / 2), flate2::Compression::default());
                encoder.write_all(&data)?;
                encoder.finish().map(Bytes::from)
            }
            Self::Lz4 => {
                let frame = FrameInfo::new().block_size(frame_block(data.len())).content_checksum(true);
                let mut encoder = FrameEncoder::with_frame_info(frame, Vec::with_capacity(data.len() / 2));
                encoder.write_all(&data)?;
                Ok(encoder.finish().map_err(io::Error::other)?.into())
            }
        }
    }

    /// Unpacks a block of `length` bytes and compares its checksum. A volume's method may have been changed by
    /// hand, so gzip and LZ4 are told apart by what is there.
    pub fn unpack(self, packed: Bytes, length: usize, expected: Checksum) -> Result<Bytes, Damage> {
        let data = match self {
            Self::None => packed,
            Self::Lz4 if packed.starts_with(&GZIP_MAGIC) => {
                bounded(MultiGzDecoder::new(&packed[..]), length)?
            }
            Self::Gzip if packed.starts_with(&LZ4_MAGIC) => bounded(FrameDecoder::new(&packed[..]), length)?,
            Self::Lz4 => bounded(FrameDecoder::new(&packed[..]), length)?,
            Self::Gzip => bounded(MultiGzDecoder::new(&packed[..]), length)?,
        };
        if data.len() != length {
            return Err(Damage::Length { expected: length, actual: data.len() });
        }
        match Checksum::of(&data) {
            actual if actual == expected => Ok(data),
            actual => Err(Damage::Checksum { actual }),
        }
    }
}

/// The encoder and every decoder make buffers of this size, so it should not be larger than it has to.
fn frame_block(length: usize) -> BlockSize {
    if length <= 64 << 10 { BlockSize::Max64KB } else { BlockSize::Max1MB }
}

/// Reads one byte more than expected at most: a small object must not unpack into all memory.
fn bounded(reader: impl Read, length: usize) -> Result<Bytes, Damage> {
    let mut data = Vec::with_capacity(length + 1);
    reader.take(length as u64 + 1).read_to_end(&mut data).map_err(Damage::Unpack)?;
    Ok(data.into())
}

impl fmt::Display for Compression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for Compression {
    type Err = UnknownCompression;

    /// The empty string is how old stores say gzip.
    fn from_str(name: &str) -> Result<Self, UnknownCompression> {
        match name {
            "lz4" => Ok(Self::Lz4),
            "gzip" => Ok(Self::Gzip),
            "none" => Ok(Self::None),
            "" => Ok(Self::LEGACY),
            _ => Err(UnknownCompression(name.chars().take(32).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Compression, Damage, LZ4_MAGIC};
    use crate::checksum::Checksum;

    const METHODS: [Compression; 3] = [Compression::Lz4, Compression::Gzip, Compression::None];

    fn block() -> Bytes {
        (0..1u32 << 16).flat_map(|number| (number / 7).to_le_bytes()).collect()
    }

    #[test]
    fn what_is_packed_comes_back() {
        let data = block();
        for method in METHODS {
            let packed = method.pack(data.clone()).unwrap();
            let unpacked = method.unpack(packed, data.len(), Checksum::of(&data)).unwrap();
            assert_eq!(unpacked, data, "{method}");
        }
        assert!(Compression::Lz4.pack(data.clone()).unwrap().starts_with(&LZ4_MAGIC));
    }

    #[test]
    fn a_mislabelled_block_is_read_all_the_same() {
        let data = block();
        for (written, labelled) in
            [(Compression::Gzip, Compression::Lz4), (Compression::Lz4, Compression::Gzip)]
        {
            let packed = written.pack(data.clone()).unwrap();
            assert_eq!(labelled.unpack(packed, data.len(), Checksum::of(&data)).unwrap(), data);
        }
    }

    #[test]
    fn damage_is_noticed() {
        let data = block();
        let sum = Checksum::of(&data);
        for method in METHODS {
            let packed = method.pack(data.clone()).unwrap();
            for position in (0..packed.len()).step_by(packed.len() / 40) {
                let mut damaged = packed.to_vec();
                damaged[position] ^= 0x10;
                // A bit of a header that carries no data may flip unnoticed; the data never.
                if let Ok(unpacked) = method.unpack(damaged.into(), data.len(), sum) {
                    assert_eq!(unpacked, data, "{method} {position}");
                }
            }
            assert!(method.unpack(packed.slice(..packed.len() / 2), data.len(), sum).is_err());
            assert!(method.unpack(Bytes::new(), data.len(), sum).is_err());
        }
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let packed = Compression::Gzip.pack(vec![0; 64 << 20].into()).unwrap();
        let refused = Compression::Gzip.unpack(packed, 4096, Checksum::of(&[]));
        assert!(matches!(refused, Err(Damage::Length { expected: 4096, actual: 4097 })));
    }
}
