//! Which blocks may not be on every disk yet: what was written since the last flush that ended well.
//! A replica that leaves may have lost exactly these, besides what it missed afterwards.

use roaring::RoaringTreemap;

use crate::geometry::Range;

#[derive(Debug, Default)]
pub struct Unflushed {
    /// Written since the running flush began, or since the last one when none runs.
    since: RoaringTreemap,
    /// What the running flush covers, and which one that is.
    covered: Option<(usize, RoaringTreemap)>,
}

impl Unflushed {
    pub fn wrote(&mut self, range: Range) {
        self.since.insert_range(range.blocks());
    }

    /// A flush was sent; everything answered before is covered by it. A second flush while one runs covers more, but
    /// forgetting later is harmless, so only one is followed.
    pub fn flush_begins(&mut self, flush: usize) {
        if self.covered.is_none() {
            self.covered = Some((flush, std::mem::take(&mut self.since)));
        }
    }

    pub fn flush_ends(&mut self, flush: usize, well: bool) {
        if let Some((_, blocks)) = self.covered.take_if(|(running, _)| *running == flush)
            && !well
        {
            self.since |= blocks;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.since.is_empty() && self.covered.as_ref().is_none_or(|(_, blocks)| blocks.is_empty())
    }

    pub fn blocks(&self) -> RoaringTreemap {
        match &self.covered {
            Some((_, blocks)) => &self.since | blocks,
            None => self.since.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::BLOCK;

    fn block(n: u64) -> Range {
        Range::new(n * BLOCK, BLOCK)
    }

    #[test]
    fn a_flush_covers_what_was_written_before_it_was_sent() {
        let mut unflushed = Unflushed::default();
        unflushed.wrote(block(1));
        unflushed.flush_begins(7);
        unflushed.wrote(block(2));
        assert_eq!(unflushed.blocks().iter().collect::<Vec<_>>(), [1, 2]);
        unflushed.flush_begins(8);
        unflushed.flush_ends(8, true);
        assert_eq!(unflushed.blocks().iter().collect::<Vec<_>>(), [1, 2], "only the first one is followed");
        unflushed.flush_ends(7, true);
        assert_eq!(unflushed.blocks().iter().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_flush_that_failed_covers_nothing() {
        let mut unflushed = Unflushed::default();
        unflushed.wrote(block(1));
        unflushed.flush_begins(7);
        unflushed.flush_ends(7, false);
        assert_eq!(unflushed.blocks().iter().collect::<Vec<_>>(), [1]);
    }
}
