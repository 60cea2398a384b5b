//! Byte ranges of a volume and the backup blocks that they touch.
//! Must never leave a touched block out: a range that covers one byte of a block covers the block.

use std::collections::BTreeSet;

/// A range of bytes of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    pub offset: u64,
    pub length: u64,
}

impl Extent {
    pub fn new(offset: u64, length: u64) -> Self {
        Self { offset, length }
    }
}

/// The numbers of the blocks that these extents touch, in a volume of `size` bytes. What lies beyond its end is ignored.
pub fn touched_blocks(extents: &[Extent], size: u64, block_size: u64) -> BTreeSet<u64> {
    let mut blocks = BTreeSet::new();
    for extent in extents {
        let end = extent.offset.saturating_add(extent.length).min(size);
        if extent.offset < end {
            blocks.extend(extent.offset / block_size..end.div_ceil(block_size));
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::{Extent, touched_blocks};

    fn touched(extents: &[(u64, u64)]) -> Vec<u64> {
        let extents: Vec<_> = extents.iter().map(|(offset, length)| Extent::new(*offset, *length)).collect();
        touched_blocks(&extents, 95, 10).into_iter().collect()
    }

    #[test]
    fn one_byte_touches_its_block() {
        assert_eq!(touched(&[(9, 1)]), [0]);
        assert_eq!(touched(&[(9, 2)]), [0, 1]);
        assert_eq!(touched(&[(10, 0)]), Vec::<u64>::new());
        assert_eq!(touched(&[(0, 30), (25, 1), (94, 1)]), [0, 1, 2, 9]);
    }

    #[test]
    fn nothing_lies_beyond_the_end() {
        assert_eq!(touched(&[(90, u64::MAX), (95, 5), (u64::MAX, 1)]), [9]);
    }
}
