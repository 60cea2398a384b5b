//! Sets of block numbers, small when the blocks lie together: the memory of a layer's presence.
//! Pure bookkeeping; never touches a disk.

use std::ops::Range;

use roaring::RoaringBitmap;

/// A roaring bitmap counts to 2^32; one of them covers 16 TiB of blocks.
const PART: u64 = 1 << 32;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BlockSet {
    parts: Vec<RoaringBitmap>,
}

impl BlockSet {
    pub fn insert(&mut self, blocks: Range<u64>) {
        for (part, low) in split(blocks) {
            if self.parts.len() <= part {
                self.parts.resize_with(part + 1, RoaringBitmap::new);
            }
            self.parts[part].insert_range(low);
        }
    }

    pub fn remove(&mut self, blocks: Range<u64>) {
        for (part, low) in split(self.clamp(blocks)) {
            self.parts[part].remove_range(low);
        }
    }

    pub fn contains(&self, block: u64) -> bool {
        self.parts.get((block / PART) as usize).is_some_and(|part| part.contains((block % PART) as u32))
    }

    /// How many of these blocks are in the set.
    pub fn count(&self, blocks: Range<u64>) -> u64 {
        if blocks.end - blocks.start == 1 {
            return u64::from(self.contains(blocks.start));
        }
        split(self.clamp(blocks)).map(|(part, low)| self.parts[part].range_cardinality(low)).sum()
    }

    /// The first run of blocks in the set within that range.
    pub fn next(&self, blocks: Range<u64>) -> Option<Range<u64>> {
        split(self.clamp(blocks)).find_map(|(part, low)| {
            let run = self.parts[part].range(low).next_range()?;
            let base = part as u64 * PART;
            Some(base + u64::from(*run.start())..base + u64::from(*run.end()) + 1)
        })
    }

    /// Whether the first block is in the set, and up to where that answer is the same.
    pub fn run(&self, blocks: Range<u64>) -> (bool, u64) {
        if blocks.end - blocks.start == 1 {
            return (self.contains(blocks.start), blocks.end);
        }
        match self.next(blocks.clone()) {
            Some(run) if run.start == blocks.start => (true, run.end),
            Some(run) => (false, run.start),
            None => (false, blocks.end),
        }
    }

    fn clamp(&self, blocks: Range<u64>) -> Range<u64> {
        blocks.start..blocks.end.min(self.parts.len() as u64 * PART)
    }

    pub fn len(&self) -> u64 {
        self.parts.iter().map(RoaringBitmap::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(RoaringBitmap::is_empty)
    }

    /// Finds the smallest form; worth it after loading and when a layer is frozen.
    pub fn optimise(&mut self) {
        for part in &mut self.parts {
            part.optimize();
        }
    }

    /// Bytes of memory, as near as the library tells.
    pub fn memory(&self) -> u64 {
        self.parts
            .iter()
            .map(|part| {
                let kinds = part.statistics();
                kinds.n_bytes_array_containers
                    + kinds.n_bytes_bitset_containers
                    + kinds.n_bytes_run_containers
                    + u64::from(kinds.n_containers) * 40
            })
            .sum()
    }
}

/// The parts of a range, each within one bitmap.
fn split(blocks: Range<u64>) -> impl Iterator<Item = (usize, std::ops::RangeInclusive<u32>)> {
    let mut at = blocks.start;
    std::iter::from_fn(move || {
        if at >= blocks.end {
            return None;
        }
        let part = at / PART;
        let end = blocks.end.min((part + 1) * PART);
        let low = (at % PART) as u32..=((end - 1) % PART) as u32;
        at = end;
        Some((part as usize, low))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_plain_set(ops in prop::collection::vec((any::<bool>(), 0u64..3000, 1u64..400), 1..40)) {
            // Straddles the border between two bitmaps.
            let base = PART - 1500;
            let (mut set, mut model) = (BlockSet::default(), BTreeSet::new());
            for (insert, start, len) in ops {
                let blocks = base + start..base + start + len;
                if insert {
                    set.insert(blocks.clone());
                    model.extend(blocks.clone());
                } else {
                    set.remove(blocks.clone());
                    model.retain(|block| !blocks.contains(block));
                }
                prop_assert_eq!(set.len(), model.len() as u64);
                prop_assert_eq!(set.count(blocks.clone()), model.range(blocks.clone()).count() as u64);
                let mut at = blocks.start;
                while at < blocks.end {
                    let (present, end) = set.run(at..blocks.end);
                    prop_assert!(end > at && end <= blocks.end);
                    prop_assert!((at..end).all(|block| model.contains(&block) == present));
                    at = end;
                }
            }
            let mut small = set.clone();
            small.optimise();
            prop_assert!(small == set && small.memory() <= set.memory());
        }
    }

    #[test]
    fn a_full_tebibyte_takes_next_to_nothing_and_a_scattered_one_little() {
        const TIB: u64 = (1 << 40) / 4096;
        let mut full = BlockSet::default();
        full.insert(0..TIB);
        full.optimise();
        assert!(full.memory() < 1 << 20, "{}", full.memory());

        // Half of the blocks of two tebibytes, in the pattern that compresses worst.
        let mut scattered = BlockSet::default();
        for block in (0..TIB / 8).map(|n| n * 2) {
            scattered.insert(block..block + 1);
        }
        scattered.optimise();
        assert!(scattered.memory() * 8 < 64 << 20, "{}", scattered.memory() * 8);
    }
}
