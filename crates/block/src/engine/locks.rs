//! Orders what overlaps: a write waits for everything before it that touches its range, a read for writes.
//! First come, first served, so that nobody starves. Knows nothing of what the holders do.

use crate::geometry::Range;

/// Names a holder; the engine uses its table's keys.
pub type Holder = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads: together with other reads.
    Shared,
    /// Writes and copies: alone.
    Exclusive,
}

#[derive(Debug, Clone, Copy)]
struct Claim {
    holder: Holder,
    range: Range,
    mode: Mode,
}

impl Claim {
    fn conflicts(&self, other: &Self) -> bool {
        (self.mode == Mode::Exclusive || other.mode == Mode::Exclusive) && self.range.overlaps(other.range)
    }
}

/// Depths are tens to hundreds, so a scan of a flat list beats any tree.
#[derive(Debug, Default)]
pub struct Locks {
    held: Vec<Claim>,
    waiting: Vec<Claim>,
}

impl Locks {
    /// True: the range is held. False: the holder waits and [`Locks::release`] will name it.
    pub fn acquire(&mut self, holder: Holder, range: Range, mode: Mode) -> bool {
        let claim = Claim { holder, range, mode };
        let free = !self.held.iter().chain(&self.waiting).any(|other| other.conflicts(&claim));
        if free {
            self.held.push(claim);
        } else {
            self.waiting.push(claim);
        }
        free
    }

    /// Gives up a range that is held; appends to `ready` whoever holds one now because of it.
    pub fn release(&mut self, holder: Holder, ready: &mut Vec<Holder>) {
        let Some(at) = self.held.iter().position(|claim| claim.holder == holder) else { return };
        let gone = self.held.swap_remove(at);
        let mut at = 0;
        while at < self.waiting.len() {
            let claim = self.waiting[at];
            let blocked = !claim.conflicts(&gone)
                || self.held.iter().chain(&self.waiting[..at]).any(|other| other.conflicts(&claim));
            if blocked {
                at += 1;
            } else {
                self.waiting.remove(at);
                self.held.push(claim);
                ready.push(claim.holder);
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

    #[derive(Clone, Debug)]
    enum Step {
        Acquire(Range, Mode),
        Release(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u64..12, 1u64..4, prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive)])
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
                        claims.push(Claim { holder, range, mode });
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
                        assert!(a == b || !claims[*a].conflicts(&claims[*b]));
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
