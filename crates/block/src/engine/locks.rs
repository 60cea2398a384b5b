//! Orders what overlaps: a write waits for everything before it that touches its range, a read for writes.
//! First come, first served, so that nobody starves. Knows nothing of what the holders do.

use crate::geometry::Range;

/// Names a holder; the engine uses its table's keys.
pub type Holder = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads: together with other reads.
    Shared,
    /// Writes: alone.
    Exclusive,
    /// Copies from one replica to another: alone, but they need not wait for a write that is settled, nor for one that
    /// has not begun.
    Copy,
}

#[derive(Debug, Clone, Copy)]
struct Claim {
    holder: Holder,
    range: Range,
    mode: Mode,
    /// A write that is the same on every replica and only waits to be acknowledged.
    settled: bool,
}

impl Claim {
    /// Whether this one has to wait for the other, which holds its range or came before.
    fn waits_for(&self, other: &Self, held: bool) -> bool {
        let compatible = match (self.mode, other.mode) {
            (Mode::Shared, Mode::Shared) => true,
            (Mode::Copy, Mode::Exclusive) => other.settled || !held,
            (Mode::Copy, Mode::Shared) => !held,
            _ => false,
        };
        !compatible && self.range.overlaps(other.range)
    }
}

/// Depths are tens to hundreds, so a scan of a flat list beats any tree.
#[derive(Debug, Default)]
pub struct Locks {
    held: Vec<Claim>,
    waiting: Vec<Claim>,
}

impl Locks {
    /// True: the range is held. False: the holder waits and a later call will name it.
    pub fn acquire(&mut self, holder: Holder, range: Range, mode: Mode) -> bool {
        let claim = Claim { holder, range, mode, settled: false };
        let free = self.is_free(&claim, self.waiting.len());
        if free {
            self.held.push(claim);
        } else {
            self.waiting.push(claim);
        }
        free
    }

    fn is_free(&self, claim: &Claim, before: usize) -> bool {
        !self.held.iter().any(|other| claim.waits_for(other, true))
            && !self.waiting[..before].iter().any(|other| claim.waits_for(other, false))
    }

    /// Gives up a range, or the wait for it; appends to `ready` whoever holds one now because of it.
    pub fn release(&mut self, holder: Holder, ready: &mut Vec<Holder>) {
        if let Some(at) = self.held.iter().position(|claim| claim.holder == holder) {
            self.held.swap_remove(at);
        } else if let Some(at) = self.waiting.iter().position(|claim| claim.holder == holder) {
            self.waiting.remove(at);
        } else {
            return;
        }
        self.grant(ready);
    }

    /// The write is the same everywhere: copies may pass it.
    pub fn settle(&mut self, holder: Holder, ready: &mut Vec<Holder>) {
        if let Some(claim) = self.held.iter_mut().find(|claim| claim.holder == holder) {
            claim.settled = true;
            if self.waiting.iter().any(|waiting| waiting.mode == Mode::Copy) {
                self.grant(ready);
            }
        }
    }

    /// The write is sent again: no longer settled.
    pub fn unsettle(&mut self, holder: Holder) {
        if let Some(claim) = self.held.iter_mut().find(|claim| claim.holder == holder) {
            claim.settled = false;
        }
    }

    fn grant(&mut self, ready: &mut Vec<Holder>) {
        let mut at = 0;
        while at < self.waiting.len() {
            let claim = self.waiting[at];
            if self.is_free(&claim, at) {
                self.waiting.remove(at);
                self.held.push(claim);
                ready.push(claim.holder);
            } else {
                at += 1;
            }
        }
    }

    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::*;
    use crate::geometry::BLOCK;

    fn blocks(first: u64, count: u64) -> Range {
        Range::new(first * BLOCK, count * BLOCK)
    }

    #[test]
    fn writes_to_one_place_go_one_after_the_other_in_order() {
        let mut locks = Locks::default();
        let mut ready = Vec::new();
        assert!(locks.acquire(1, blocks(0, 2), Mode::Exclusive));
        assert!(!locks.acquire(2, blocks(1, 2), Mode::Exclusive));
        assert!(!locks.acquire(3, blocks(2, 1), Mode::Shared), "behind the second, which came first");
        assert!(locks.acquire(4, blocks(9, 1), Mode::Exclusive));
        locks.release(1, &mut ready);
        assert_eq!(ready, [2]);
        ready.clear();
        locks.release(2, &mut ready);
        assert_eq!(ready, [3]);
    }

    #[test]
    fn reads_share() {
        let mut locks = Locks::default();
        assert!(locks.acquire(1, blocks(0, 4), Mode::Shared));
        assert!(locks.acquire(2, blocks(2, 4), Mode::Shared));
        assert!(!locks.acquire(3, blocks(3, 1), Mode::Exclusive));
        let mut ready = Vec::new();
        locks.release(1, &mut ready);
        assert!(ready.is_empty());
        locks.release(2, &mut ready);
        assert_eq!(ready, [3]);
    }

    #[test]
    fn a_copy_passes_what_is_settled_or_has_not_begun() {
        let mut locks = Locks::default();
        let mut ready = Vec::new();
        assert!(locks.acquire(1, blocks(0, 4), Mode::Exclusive));
        assert!(!locks.acquire(2, blocks(0, 1), Mode::Exclusive));
        assert!(!locks.acquire(3, blocks(0, 2), Mode::Copy), "the first is still being written");
        locks.settle(1, &mut ready);
        assert_eq!(ready, [3]);
        ready.clear();
        locks.release(1, &mut ready);
        assert!(ready.is_empty(), "the second waits for the copy now");
        locks.release(3, &mut ready);
        assert_eq!(ready, [2]);
    }

    #[test]
    fn whoever_stops_waiting_lets_the_others_pass() {
        let mut locks = Locks::default();
        let mut ready = Vec::new();
        assert!(locks.acquire(1, blocks(0, 1), Mode::Shared));
        assert!(!locks.acquire(2, blocks(0, 1), Mode::Exclusive));
        assert!(!locks.acquire(3, blocks(0, 1), Mode::Shared));
        locks.release(2, &mut ready);
        assert_eq!(ready, [3]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Acquire(Range, Mode),
        Release(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u64..12, 1u64..4, prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive), Just(Mode::Copy)])
                .prop_map(|(first, count, mode)| Step::Acquire(blocks(first, count), mode)),
            any::<usize>().prop_map(Step::Release),
        ]
    }

    proptest! {
        #[test]
        fn holders_never_conflict_and_nobody_is_forgotten(steps in proptest::collection::vec(step(), 1..80)) {
            let mut locks = Locks::default();
            let (mut claims, mut held) = (Vec::new(), BTreeSet::new());
            let mut released = 0;
            for step in steps {
                match step {
                    Step::Acquire(range, mode) => {
                        let holder = claims.len();
                        claims.push(Claim { holder, range, mode, settled: false });
                        if locks.acquire(holder, range, mode) {
                            held.insert(holder);
                        }
                    }
                    Step::Release(pick) => {
                        let Some(&holder) = held.iter().nth(pick % held.len().max(1)) else { continue };
                        let mut ready = Vec::new();
                        locks.release(holder, &mut ready);
                        held.remove(&holder);
                        held.extend(ready);
                        released += 1;
                    }
                }
                for a in &held {
                    for b in &held {
                        assert!(a == b || !claims[*a].waits_for(&claims[*b], true));
                    }
                }
            }
            while let Some(&holder) = held.iter().next() {
                let mut ready = Vec::new();
                locks.release(holder, &mut ready);
                held.remove(&holder);
                held.extend(ready);
                released += 1;
            }
            assert_eq!(released, claims.len(), "everybody got a turn");
            assert!(locks.is_idle());
        }
    }
}
