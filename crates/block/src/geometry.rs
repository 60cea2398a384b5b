//! Sizes and ranges. Everything below the engine's front door is counted in whole blocks.

use serde::{Deserialize, Serialize};

/// The unit of presence, of copy-on-write and of everything on the wire. It is the page size and the block size of
/// the file systems replicas live on, so that a block is either wholly there or not.
pub const BLOCK: u64 = 4096;

/// The largest payload of one request. A larger guest request is split; bounds every buffer.
pub const MAX_IO: u32 = 1 << 20;

/// One bit of the write-intent map covers this much of the volume: small enough that comparing a region after a
/// crash is quick, large enough that sequential writes rarely wait for a mark to reach the disk.
pub const INTENT_REGION: u64 = 16 << 20;

/// The largest volume: what the test of thin volumes opens.
pub const MAX_VOLUME: u64 = 64 << 40;

/// A range of bytes that starts and ends at block boundaries and is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Range {
    pub offset: u64,
    pub len: u64,
}

impl Range {
    pub const fn new(offset: u64, len: u64) -> Self {
        Self { offset, len }
    }

    pub const fn end(self) -> u64 {
        self.offset + self.len
    }

    /// Aligned, not empty, and without overflow.
    pub const fn is_valid(self) -> bool {
        self.len > 0
            && self.offset.is_multiple_of(BLOCK)
            && self.len.is_multiple_of(BLOCK)
            && self.offset.checked_add(self.len).is_some()
    }

    /// Whether it lies within a volume of that size.
    pub const fn fits(self, size: u64) -> bool {
        self.is_valid() && self.end() <= size
    }

    pub const fn overlaps(self, other: Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    /// The numbers of the blocks it covers.
    pub const fn blocks(self) -> std::ops::Range<u64> {
        self.offset / BLOCK..self.end() / BLOCK
    }

    /// The numbers of the intent regions it touches.
    pub const fn regions(self) -> std::ops::RangeInclusive<u64> {
        self.offset / INTENT_REGION..=(self.end() - 1) / INTENT_REGION
    }

    pub const fn of_blocks(blocks: std::ops::Range<u64>) -> Self {
        Self { offset: blocks.start * BLOCK, len: (blocks.end - blocks.start) * BLOCK }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_whole_blocks_within_the_volume() {
        for (offset, len, valid) in [
            (0, BLOCK, true),
            (BLOCK, 3 * BLOCK, true),
            (0, 0, false),
            (1, BLOCK, false),
            (0, 100, false),
            (u64::MAX - BLOCK + 1, BLOCK, false),
        ] {
            assert_eq!(Range::new(offset, len).is_valid(), valid, "{offset}+{len}");
        }
        assert!(Range::new(BLOCK, BLOCK).fits(2 * BLOCK));
        assert!(!Range::new(BLOCK, BLOCK).fits(BLOCK));
    }

    #[test]
    fn ranges_know_their_blocks_and_regions() {
        assert_eq!(Range::new(2 * BLOCK, BLOCK).blocks(), 2..3);
        assert_eq!(Range::new(INTENT_REGION - BLOCK, 2 * BLOCK).regions(), 0..=1);
        assert_eq!(Range::new(0, INTENT_REGION).regions(), 0..=0);
        assert!(!Range::new(0, BLOCK).overlaps(Range::new(BLOCK, BLOCK)));
        assert_eq!(Range::of_blocks(2..5), Range::new(2 * BLOCK, 3 * BLOCK));
    }
}
