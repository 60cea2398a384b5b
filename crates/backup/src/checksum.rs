//! The content address of a block: the first half of its SHA-512, as 64 hex digits in names and lists.
//! Must never be taken over compressed bytes: the same data has one address whatever the compression.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA512, digest};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checksum([u8; Checksum::LENGTH]);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a checksum of 64 hex digits")]
pub struct InvalidChecksum(String);

impl Checksum {
    pub const LENGTH: usize = 32;

    pub fn of(data: &[u8]) -> Self {
        let full = digest(&SHA512, data);
        let mut half = [0; Self::LENGTH];
        half.copy_from_slice(&full.as_ref()[..Self::LENGTH]);
        Self(half)
    }

    pub fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }

    pub fn to_hex(self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
        self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
}

impl FromStr for Checksum {
    type Err = InvalidChecksum;

    fn from_str(text: &str) -> Result<Self, InvalidChecksum> {
        let invalid = || InvalidChecksum(text.chars().take(80).collect());
        // Upper case would be another object key.
        let nibble = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        if text.len() != 2 * Self::LENGTH {
            return Err(invalid());
        }
        let mut bytes = [0; Self::LENGTH];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
            let (Some(high), Some(low)) = (nibble(pair[0]), nibble(pair[1])) else {
                return Err(invalid());
            };
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Serialize for Checksum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checksum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Checksum;

    #[test]
    fn it_is_the_first_half_of_sha_512() {
        // FIPS 180-4, the message "abc".
        let expected = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a";
        assert_eq!(Checksum::of(b"abc").to_hex(), expected);
        assert_eq!(expected.parse(), Ok(Checksum::of(b"abc")));
    }

    #[test]
    fn what_is_no_checksum_is_refused() {
        let good = Checksum::of(b"").to_hex();
        for text in
            ["", "ab", &good[1..], &good.to_uppercase(), &format!("../{}", &good[3..]), &format!("{good}0")]
        {
            assert!(text.parse::<Checksum>().is_err(), "{text}");
        }
    }
}
