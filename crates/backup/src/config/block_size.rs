//! How large a backup block is: 2 MiB unless the backup's parameters say otherwise.
//! Must never admit a size that a job could not hold in memory several times.

use std::collections::BTreeMap;
use std::fmt;

/// The parameter of a backup that holds its block size, as a Kubernetes quantity.
pub const BLOCK_SIZE_PARAMETER: &str = "backup-block-size";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "backup block size {0:?} is not usable: give a multiple of 4096 bytes up to 64 MiB, such as 2Mi or 16Mi"
)]
pub struct InvalidBlockSize(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSize(u32);

impl BlockSize {
    pub const DEFAULT: Self = Self(2 << 20);
    const UNIT: u64 = 4096;
    const MAX: u64 = 64 << 20;

    pub fn new(bytes: u64) -> Result<Self, InvalidBlockSize> {
        match u32::try_from(bytes) {
            Ok(size) if bytes > 0 && bytes.is_multiple_of(Self::UNIT) && bytes <= Self::MAX => Ok(Self(size)),
            _ => Err(InvalidBlockSize(bytes.to_string())),
        }
    }

    pub fn from_parameters(parameters: &BTreeMap<String, String>) -> Result<Self, InvalidBlockSize> {
        let Some(text) = parameters.get(BLOCK_SIZE_PARAMETER).filter(|text| !text.is_empty()) else {
            return Ok(Self::DEFAULT);
        };
        match quantity(text) {
            Some(0) => Ok(Self::DEFAULT),
            Some(bytes) => Self::new(bytes),
            None => Err(InvalidBlockSize(text.chars().take(32).collect())),
        }
    }

    pub fn bytes(self) -> u64 {
        self.0.into()
    }

    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

impl Default for BlockSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for BlockSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

fn quantity(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" => 1,
        "k" => 1000,
        "M" => 1_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_SIZE_PARAMETER, BlockSize};

    fn parsed(text: &str) -> Option<u64> {
        let parameters = [(BLOCK_SIZE_PARAMETER.to_owned(), text.to_owned())].into();
        BlockSize::from_parameters(&parameters).ok().map(BlockSize::bytes)
    }

    #[test]
    fn quantities_as_they_are_stored() {
        assert_eq!(BlockSize::from_parameters(&Default::default()), Ok(BlockSize::DEFAULT));
        for (text, bytes) in
            [("", 2 << 20), ("0", 2 << 20), ("2097152", 2 << 20), ("2Mi", 2 << 20), ("16Mi", 16 << 20)]
        {
            assert_eq!(parsed(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_that_no_job_could_use() {
        for text in
            ["1", "4095", "-2Mi", "2MB", "1.5Mi", "1Gi", "99999999999999999999", "18446744073709551615Gi"]
        {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
