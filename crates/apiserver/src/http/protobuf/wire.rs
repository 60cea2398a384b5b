//! The protobuf wire format: tags, variable-length integers, and lengths that must fit.
//!
//! Owns the bytes. Must never know what a field means, nor trust a length that was sent.

use super::Fault;

/// Groups inside groups that are skipped before giving up.
const MAX_GROUPS: usize = 64;

/// One field's content as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// The old nested form; nothing we know uses it, so only its extent matters.
    Group,
    Fixed32(u32),
}

impl<'a> Content<'a> {
    pub fn varint(self) -> Result<u64, Fault> {
        match self {
            Self::Varint(value) => Ok(value),
            other => Err(other.instead_of("a varint")),
        }
    }

    pub fn double(self) -> Result<f64, Fault> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_bits(bits)),
            other => Err(other.instead_of("64 fixed bits")),
        }
    }

    pub fn bytes(self) -> Result<&'a [u8], Fault> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.instead_of("a length and bytes")),
        }
    }

    pub fn text(self) -> Result<&'a str, Fault> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Fault::Utf8)
    }

    fn instead_of(self, wanted: &'static str) -> Fault {
        let got = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Group => 3,
            Self::Fixed32(_) => 5,
        };
        Fault::WireType { got, wanted }
    }
}

/// The fields of one message, in the order they were sent; ends after the first fault.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Fault::Truncated)?;
            self.rest = rest;
            // The tenth byte has room for one bit only; what does not fit is dropped, as everywhere.
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::LongVarint)
    }

    pub fn fixed64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (&head, rest) = self.rest.split_first_chunk().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = usize::try_from(self.varint()?).map_err(|_| Fault::Truncated)?;
        let (head, rest) = self.rest.split_at_checked(length).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// A field number with its wire type.
    fn tag(&mut self) -> Result<(u32, u8), Fault> {
        let tag = u32::try_from(self.varint()?).map_err(|_| Fault::Tag)?;
        if tag >> 3 == 0 {
            return Err(Fault::Tag);
        }
        Ok((tag >> 3, (tag & 7) as u8))
    }

    fn content(&mut self, wire_type: u8) -> Result<Content<'a>, Fault> {
        match wire_type {
            0 => self.varint().map(Content::Varint),
            1 => self.fixed64().map(Content::Fixed64),
            2 => self.bytes().map(Content::Bytes),
            3 => self.skip_group().map(|()| Content::Group),
            5 => self.array().map(u32::from_le_bytes).map(Content::Fixed32),
            _ => Err(Fault::Tag),
        }
    }

    fn skip_group(&mut self) -> Result<(), Fault> {
        let mut open = 1;
        while open > 0 {
            match self.tag()?.1 {
                3 => open += 1,
                4 => open -= 1,
                other => {
                    self.content(other)?;
                }
            }
            if open > MAX_GROUPS {
                return Err(Fault::TooDeep);
            }
        }
        Ok(())
    }

    fn field(&mut self) -> Result<(u32, Content<'a>), Fault> {
        let (number, wire_type) = self.tag()?;
        Ok((number, self.content(wire_type)?))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Content<'a>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::{Content, Fault, Reader};

    fn read(bytes: &[u8]) -> Result<Vec<(u32, Content<'_>)>, Fault> {
        Reader::new(bytes).collect()
    }

    #[test]
    fn every_wire_type_is_read_with_its_number() {
        let fields = read(&[
            0x08, 0xac, 0x02, // 1: 300
            0x11, 1, 0, 0, 0, 0, 0, 0, 0x80, // 2: 64 bits
            0x1a, 2, b'h', b'i', // 3: bytes
            0x23, 0x08, 7, 0x2b, 0x2c, 0x24, // 4: a group with a number and an empty group
            0x2d, 4, 3, 2, 1, // 5: 32 bits
        ])
        .unwrap();
        assert_eq!(
            fields,
            [
                (1, Content::Varint(300)),
                (2, Content::Fixed64(0x8000_0000_0000_0001)),
                (3, Content::Bytes(b"hi")),
                (4, Content::Group),
                (5, Content::Fixed32(0x0102_0304)),
            ]
        );
        assert_eq!(
            read(&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).unwrap()[0].1,
            Content::Varint(u64::MAX)
        );
    }

    #[test]
    fn a_message_that_ends_early_is_refused_at_every_cut() {
        let whole: &[u8] = &[0x1a, 3, 1, 2, 3];
        assert!((1..whole.len()).all(|cut| read(&whole[..cut]) == Err(Fault::Truncated)));
        assert_eq!(
            read(&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
            Err(Fault::Truncated)
        );
        assert_eq!(read(&[0x0d, 1, 2, 3]), Err(Fault::Truncated));
        assert_eq!(read(&[0x23, 0x08, 7]), Err(Fault::Truncated));
    }

    #[test]
    fn tags_that_mean_nothing_are_refused() {
        for bytes in [&[0x00, 1][..], &[0x0e, 1], &[0x0f, 1], &[0x0c], &[0x80, 0x80, 0x80, 0x80, 0x10, 1]] {
            assert_eq!(read(bytes), Err(Fault::Tag), "{bytes:?}");
        }
        assert_eq!(
            read(&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
            Err(Fault::LongVarint)
        );
        assert_eq!(read(&[0x0b; 100]), Err(Fault::TooDeep));
    }
}
