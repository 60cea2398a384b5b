//! Which blocks a backup has to read, and which it takes over from the backup before.
//! Must never take over a block that may have changed.

use crate::config::{BlockMapping, BlockSize};
use crate::extents::{Extent, touched_blocks};

/// What is known about a snapshot before its data is read.
pub struct Knowledge<'a> {
    pub size: u64,
    pub block_size: BlockSize,
    pub allocated: &'a [Extent],
    /// With a backing image below, what is not allocated does not read as zeroes.
    pub has_backing_image: bool,
}

/// The backup before, and everything that may differ from it.
pub struct Before<'a> {
    pub blocks: &'a [BlockMapping],
    pub changed: &'a [Extent],
}

#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// Offsets of blocks to read, ascending.
    pub read: Vec<u64>,
    /// Blocks to list as they were, ascending.
    pub kept: Vec<BlockMapping>,
}

impl Plan {
    pub fn new(snapshot: &Knowledge<'_>, before: Option<Before<'_>>) -> Self {
        let unit = snapshot.block_size.bytes();
        let offset = |number: u64| number * unit;
        let allocated = touched_blocks(snapshot.allocated, snapshot.size, unit);
        let Some(before) = before else {
            return Self { read: allocated.into_iter().map(offset).collect(), kept: Vec::new() };
        };
        let changed = touched_blocks(before.changed, snapshot.size, unit);
        let is_kept =
            |block: &&BlockMapping| block.offset < snapshot.size && !changed.contains(&(block.offset / unit));
        let kept = before.blocks.iter().filter(is_kept).copied().collect();
        // Changed and no longer allocated: discarded, so it is simply not listed any more.
        let is_read = |number: &u64| snapshot.has_backing_image || allocated.contains(number);
        Self { read: changed.iter().copied().filter(is_read).map(offset).collect(), kept }
    }
}

/// The complete list of a backup.
pub fn merge(mut kept: Vec<BlockMapping>, read: Vec<BlockMapping>) -> Vec<BlockMapping> {
    kept.extend(read);
    kept.sort_unstable_by_key(|block| block.offset);
    kept
}

#[cfg(test)]
mod tests {
    use super::{Before, BlockMapping, BlockSize, Extent, Knowledge, Plan};
    use crate::checksum::Checksum;

    const UNIT: u64 = 4096;

    fn extents(numbers: &[u64]) -> Vec<Extent> {
        numbers.iter().map(|number| Extent::new(number * UNIT + 17, 1)).collect()
    }

    fn listed(numbers: &[u64]) -> Vec<BlockMapping> {
        let block = |number: &u64| BlockMapping {
            offset: number * UNIT,
            block_checksum: Checksum::of(&[*number as u8]),
        };
        numbers.iter().map(block).collect()
    }

    fn plan(
        allocated: &[u64],
        before: Option<(&[u64], &[u64])>,
        has_backing_image: bool,
    ) -> (Vec<u64>, Vec<u64>) {
        let knowledge = Knowledge {
            size: 8 * UNIT,
            block_size: BlockSize::new(UNIT).unwrap(),
            allocated: &extents(allocated),
            has_backing_image,
        };
        let before = before.map(|(blocks, changed)| (listed(blocks), extents(changed)));
        let before = before.as_ref().map(|(blocks, changed)| Before { blocks, changed });
        let plan = Plan::new(&knowledge, before);
        (
            plan.read.iter().map(|offset| offset / UNIT).collect(),
            plan.kept.iter().map(|block| block.offset / UNIT).collect(),
        )
    }

    #[test]
    fn without_a_backup_before_all_that_is_allocated_is_read() {
        assert_eq!(plan(&[1, 3, 7, 9], None, false), (vec![1, 3, 7], vec![]));
    }

    #[test]
    fn with_one_only_what_changed() {
        assert_eq!(plan(&[1, 3, 5], Some((&[1, 3], &[3, 5])), false), (vec![3, 5], vec![1]));
    }

    #[test]
    fn what_was_discarded_is_dropped_without_a_read() {
        assert_eq!(plan(&[1], Some((&[1, 3], &[3])), false), (vec![], vec![1]));
        assert_eq!(
            plan(&[1], Some((&[1, 3], &[3])), true),
            (vec![3], vec![1]),
            "below may be a backing image"
        );
    }

    #[test]
    fn what_lies_beyond_the_end_is_dropped() {
        assert_eq!(plan(&[1], Some((&[1, 8, 9], &[])), false), (vec![], vec![1]));
    }
}
