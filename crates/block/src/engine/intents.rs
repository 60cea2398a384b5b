//! The write-intent map: before a region is written, every replica has recorded that it may be. After a crash only
//! those regions are compared. Decides which marks to set and which to clear; sends nothing itself.

use std::collections::HashMap;

use crate::geometry::{INTENT_REGION, Range};
use crate::wire::message::Regions;

/// Marks stay at least this long after the last write, so that a busy region is marked once.
const LINGER_MICROS: u64 = 10_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Wanted,
    Requested,
    Durable,
}

#[derive(Debug)]
struct Region {
    mark: Mark,
    last_write: u64,
    writing: u32,
}

#[derive(Debug, Default)]
pub struct Intents {
    regions: HashMap<u64, Region>,
    wanted: Vec<u64>,
    requested: Vec<u64>,
}

impl Intents {
    /// Marks that the replicas hold already.
    pub fn restore(&mut self, runs: &[Regions], now: u64) {
        for number in runs.iter().flat_map(|run| run.0..run.0 + run.1) {
            self.regions.insert(number, Region { mark: Mark::Durable, last_write: now, writing: 0 });
        }
    }

    /// Notes a write that is about to begin. True: all its regions are marked and it may. False: [`Intents::request`]
    /// has to be answered first. Also asks ahead for the region behind when writes walk through the volume.
    pub fn enter(&mut self, range: Range, size: u64, now: u64) -> bool {
        let mut ready = true;
        for number in range.regions() {
            let region = self.regions.entry(number).or_insert_with(|| {
                self.wanted.push(number);
                Region { mark: Mark::Wanted, last_write: now, writing: 0 }
            });
            region.last_write = now;
            region.writing += 1;
            ready &= region.mark == Mark::Durable;
        }
        let last = *range.regions().end();
        let walking = last > 0 && self.regions.contains_key(&(last - 1));
        let next = last + 1;
        if walking && next * INTENT_REGION < size && !self.regions.contains_key(&next) {
            self.wanted.push(next);
            self.regions.insert(next, Region { mark: Mark::Wanted, last_write: now, writing: 0 });
        }
        ready
    }

    pub fn ready(&self, range: Range) -> bool {
        range
            .regions()
            .all(|number| self.regions.get(&number).is_some_and(|region| region.mark == Mark::Durable))
    }

    /// The write ended, well or not.
    pub fn leave(&mut self, range: Range, now: u64) {
        for number in range.regions() {
            if let Some(region) = self.regions.get_mut(&number) {
                region.writing = region.writing.saturating_sub(1);
                region.last_write = now;
            }
        }
    }

    /// What to ask the replicas to record now; `None` while a request runs or nothing is wanted.
    pub fn request(&mut self) -> Option<Vec<Regions>> {
        if !self.requested.is_empty() || self.wanted.is_empty() {
            return None;
        }
        self.requested = std::mem::take(&mut self.wanted);
        for number in &self.requested {
            if let Some(region) = self.regions.get_mut(number) {
                region.mark = Mark::Requested;
            }
        }
        Some(runs(self.requested.clone()))
    }

    /// The request was answered by everybody who is still in.
    pub fn recorded(&mut self) {
        for number in std::mem::take(&mut self.requested) {
            if let Some(region) = self.regions.get_mut(&number) {
                region.mark = Mark::Durable;
            }
        }
    }

    /// The request got lost with everybody who had it; ask again.
    pub fn request_lost(&mut self) {
        for number in std::mem::take(&mut self.requested) {
            if let Some(region) = self.regions.get_mut(&number) {
                region.mark = Mark::Wanted;
                self.wanted.push(number);
            }
        }
    }

    /// Takes out marks that nobody needs: not written since `flushed` (when the last good flush was sent) and idle.
    pub fn clearable(&mut self, flushed: u64, now: u64) -> Vec<Regions> {
        let mut cleared = Vec::new();
        self.regions.retain(|number, region| {
            let keep = region.mark != Mark::Durable
                || region.writing > 0
                || region.last_write >= flushed
                || now < region.last_write + LINGER_MICROS;
            if !keep {
                cleared.push(*number);
            }
            keep
        });
        runs(cleared)
    }

    /// Everything marked or being marked.
    pub fn all(&self) -> Vec<Regions> {
        runs(self.regions.keys().copied().collect())
    }
}

/// Sorted numbers as runs.
fn runs(mut numbers: Vec<u64>) -> Vec<Regions> {
    numbers.sort_unstable();
    let mut runs: Vec<Regions> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(Regions(first, count)) if *first + *count == number => *count += 1,
            _ => runs.push(Regions(number, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 100 * INTENT_REGION;

    fn region(n: u64) -> Range {
        Range::new(n * INTENT_REGION, 4096)
    }

    #[test]
    fn the_first_write_to_a_region_waits_for_its_mark_and_later_ones_do_not() {
        let mut intents = Intents::default();
        assert!(!intents.enter(region(3), SIZE, 0));
        assert_eq!(intents.request(), Some(vec![Regions(3, 1)]));
        assert!(!intents.enter(region(3), SIZE, 1));
        assert_eq!(intents.request(), None, "one request at a time");
        intents.recorded();
        assert!(intents.ready(region(3)));
        assert!(intents.enter(region(3), SIZE, 2));
    }

    #[test]
    fn walking_through_the_volume_asks_ahead() {
        let mut intents = Intents::default();
        intents.enter(region(3), SIZE, 0);
        intents.enter(region(4), SIZE, 0);
        assert_eq!(intents.request(), Some(vec![Regions(3, 3)]));
        intents.recorded();
        assert!(intents.enter(region(5), SIZE, 0));
    }

    #[test]
    fn a_mark_is_cleared_when_flushed_idle_and_old() {
        let mut intents = Intents::default();
        intents.enter(region(3), SIZE, 0);
        intents.request();
        intents.recorded();
        let late = LINGER_MICROS + 10;
        assert_eq!(intents.clearable(late, late), [], "still writing");
        intents.leave(region(3), 5);
        assert_eq!(intents.clearable(5, late), [], "not flushed since");
        assert_eq!(intents.clearable(6, LINGER_MICROS), [], "too fresh");
        assert_eq!(intents.clearable(6, late), [Regions(3, 1)]);
        assert_eq!(intents.all(), []);
    }

    #[test]
    fn a_lost_request_is_asked_again() {
        let mut intents = Intents::default();
        intents.enter(region(1), SIZE, 0);
        intents.request();
        intents.request_lost();
        assert_eq!(intents.request(), Some(vec![Regions(1, 1)]));
    }
}
