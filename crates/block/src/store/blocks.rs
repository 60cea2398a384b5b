//! Sets of block numbers, small when the blocks lie together: the memory of a layer's presence.
//! Pure bookkeeping; never touches a disk.

use std::ops::Range;

use roaring::RoaringBitmap;

/// Blocks in one bitmap: 64 GiB of volume. Small enough that finding its smallest form holds nobody up.
const PART: u64 = 1 << 24;

/// After this many changes of a part its form may be far from the smallest: a bitmap that was one run and is
/// changed here and there becomes a list of short runs, which the library never turns into bits by itself.
const OPTIMISE_AFTER: u32 = 16 << 10;

#[derive(Clone, Debug, Default)]
pub(super) struct BlockSet {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    blocks: RoaringBitmap,
    changes: u32,
}

impl Part {
    fn changed(&mut self) {
        self.changes += 1;
        if self.changes >= OPTIMISE_AFTER {
            self.optimise();
        }
    }

    fn optimise(&mut self) {
        self.changes = 0;
        self.blocks.optimize();
    }
}

impl BlockSet {
    pub fn insert(&mut self, blocks: Range<u64>) {
        for (part, low) in split(blocks) {
            if self.parts.len() <= part {
                self.parts.resize_with(part + 1, Part::default);
            }
            self.parts[part].blocks.insert_range(low);
            self.parts[part].changed();
        }
    }

    pub fn remove(&mut self, blocks: Range<u64>) {
        for (part, low) in split(self.clamp(blocks)) {
            self.parts[part].blocks.remove_range(low);
            self.parts[part].changed();
        }
    }

    pub fn contains(&self, block: u64) -> bool {
        self.parts
            .get((block / PART) as usize)
            .is_some_and(|part| part.blocks.contains((block % PART) as u32))
    }

    /// How many of these blocks are in the set.
    pub fn count(&self, blocks: Range<u64>) -> u64 {
        if blocks.end - blocks.start == 1 {
            return u64::from(self.contains(blocks.start));
        }
        split(self.clamp(blocks)).map(|(part, low)| self.parts[part].blocks.range_cardinality(low)).sum()
    }

    /// The first run of blocks in the set within that range.
    pub fn next(&self, blocks: Range<u64>) -> Option<Range<u64>> {
        split(self.clamp(blocks)).find_map(|(part, low)| {
            let run = self.parts[part].blocks.range(low).next_range()?;
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
        self.parts.iter().map(|part| part.blocks.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.blocks.is_empty())
    }

    /// Finds the smallest form; worth it after loading and when a layer is frozen.
    pub fn optimise(&mut self) {
        for part in &mut self.parts {
            part.optimise();
        }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> u64 {
        /// What a container takes beside its content.
        const CONTAINER: u64 = 40;
        const BITS: u64 = 8 << 10;
        let of = |part: &Part| {
            let kinds = part.blocks.statistics();
            // The library counts four bytes for each place of an array where there are two.
            let lists = kinds.n_bytes_array_containers / 2 + kinds.n_bytes_run_containers;
            lists + u64::from(kinds.n_bitset_containers) * BITS + u64::from(kinds.n_containers) * CONTAINER
        };
        self.parts.iter().map(|part| of(part) + size_of::<Part>() as u64).sum()
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
            let base = 3 * PART - 1500;
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
            prop_assert_eq!(small.len(), set.len());
        }
    }

    #[test]
    fn a_full_tebibyte_takes_next_to_nothing_and_a_scattered_one_little() {
        const TIB: u64 = (1 << 40) / 4096;
        let mut full = BlockSet::default();
        full.insert(0..TIB);
        full.optimise();
        assert!(full.memory() < 1 << 20, "{}", full.memory());

        // Half of all blocks, in the pattern that compresses worst; in one layer out of a single run, in the other
        // out of nothing. A part of a tebibyte shows it.
        let (mut holes, mut islands) = (BlockSet::default(), BlockSet::default());
        holes.insert(0..TIB / 64);
        holes.optimise();
        for block in (0..TIB / 64).step_by(2) {
            holes.remove(block..block + 1);
            islands.insert(block..block + 1);
        }
        for set in [holes, islands] {
            assert_eq!(set.len(), TIB / 128);
            assert!(set.memory() * 128 <= 65 << 20, "{}", set.memory() * 128);
        }
    }
}
