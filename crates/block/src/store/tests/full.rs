//! A disk without room, whatever the file system said before: a write that does not fit changes nothing, or leaves each
//! of its blocks old or new, and the replica can be taken again without a new start.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{as_disk, block, blocks, no_reserve};
use crate::disk::simulated::{Operation, Simulated};
use crate::geometry::BLOCK;
use crate::ids::LayerId;
use crate::store::stripes::STRIPE;
use crate::store::{CreateOptions, OpenOptions, Store, StoreError};
use crate::wire::message::FailureKind;

/// The volume as the tests see it: the blocks around the border of two stripes.
const FIRST: u64 = STRIPE / BLOCK - 8;
const WINDOW: u64 = 16;

#[derive(Clone, Debug)]
enum Step {
    Write {
        at: u64,
        count: u64,
    },
    Zero {
        at: u64,
        count: u64,
        allocate: bool,
    },
    Snapshot,
    RemoveAndPurge,
    /// All the room but this many blocks is taken.
    Fill {
        left: u64,
    },
    /// A write finds no room even where it replaces something.
    NoRoom {
        after: u64,
    },
    MakeRoom,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = (0..WINDOW, 1..=WINDOW).prop_map(|(at, count)| (at, count.min(WINDOW - at)));
    let step = prop_oneof![
        8 => range.clone().prop_map(|(at, count)| Step::Write { at, count }),
        3 => (range, any::<bool>()).prop_map(|((at, count), allocate)| Step::Zero { at, count, allocate }),
        2 => Just(Step::Snapshot),
        1 => Just(Step::RemoveAndPurge),
        3 => (0..WINDOW).prop_map(|left| Step::Fill { left }),
        1 => (0..3_u64).prop_map(|after| Step::NoRoom { after }),
        2 => Just(Step::MakeRoom),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..40)
}

struct Game {
    disk: Simulated,
    store: Option<Store>,
    allowed: Vec<BTreeSet<u64>>,
    stamp: u64,
    snapshots: Vec<String>,
}

impl Game {
    fn new() -> Self {
        let disk = Simulated::new();
        let options = CreateOptions { limits: no_reserve(), ..CreateOptions::new(2 * STRIPE) };
        let store = Some(Store::create(as_disk(&disk), options).unwrap());
        let allowed = vec![[0].into(); WINDOW as usize];
        Self { disk, store, allowed, stamp: 0, snapshots: Vec::new() }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    /// One change of content, and what it may have come to.
    fn changed(&mut self, at: u64, stamps: &[u64], outcome: Result<(), StoreError>) {
        let blocks = self.allowed[at as usize..].iter_mut().zip(stamps);
        match outcome {
            Ok(()) => blocks.for_each(|(block, stamp)| *block = [*stamp].into()),
            Err(error) if error.kind() == FailureKind::NoSpace => {}
            Err(StoreError::Io { .. }) => {
                blocks.for_each(|(block, stamp)| {
                    block.insert(*stamp);
                });
                assert!(matches!(self.store().flush(), Err(StoreError::Poisoned { .. })));
                self.store().forgive_full_disk();
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn look(&mut self) {
        let seen = self.store().read_stamps(blocks(FIRST, WINDOW));
        for (at, (allowed, seen)) in self.allowed.iter_mut().zip(seen).enumerate() {
            assert!(allowed.contains(&seen), "block {at} reads {seen}, allowed are {allowed:?}");
            *allowed = [seen].into();
        }
    }

    fn play(&mut self, step: &Step) {
        match *step {
            Step::Write { at, count } => {
                let stamps: Vec<u64> = (1..=count).map(|it| self.stamp + it).collect();
                self.stamp += count;
                let bytes = stamps.iter().flat_map(|stamp| block(*stamp)).collect::<Vec<u8>>();
                let outcome = self.store().write((FIRST + at) * BLOCK, &bytes);
                self.changed(at, &stamps, outcome);
            }
            Step::Zero { at, count, allocate } => {
                let outcome = self.store().zero(blocks(FIRST + at, count), allocate);
                self.changed(at, &vec![0; count as usize], outcome);
            }
            Step::Snapshot => {
                let name = format!("s{}-{}", self.snapshots.len(), self.stamp);
                if self.store().snapshot(super::spec(&name), LayerId::random()).is_ok() {
                    self.snapshots.push(name);
                }
            }
            Step::RemoveAndPurge => {
                if let Some(name) = self.snapshots.pop()
                    && let Err(error) =
                        self.store().remove_snapshot(&name).and_then(|()| self.store().purge())
                {
                    assert_eq!(error.kind(), FailureKind::NoSpace, "{error}");
                }
            }
            Step::Fill { left } => self.disk.fill_up(left * BLOCK),
            Step::NoRoom { after } => self.disk.fail(Operation::Room, after),
            Step::MakeRoom => self.make_room(),
            Step::Reopen => {
                self.disk.clear_faults();
                self.store = None;
                let options = OpenOptions { limits: no_reserve() };
                self.store = Some(Store::open(as_disk(&self.disk), options).unwrap());
            }
        }
    }

    fn make_room(&self) {
        self.disk.clear_faults();
        self.disk.make_room();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is read never depends on a new start, so the file says what memory says.
    #[test]
    fn what_does_not_fit_leaves_each_block_old_or_new_and_nothing_lost(steps in steps()) {
        let mut game = Game::new();
        let boot = game.store().info().unwrap().boot;
        for step in &steps {
            game.play(step);
            game.look();
        }
        game.make_room();
        game.play(&Step::Reopen);
        game.look();
        game.play(&Step::Write { at: 0, count: WINDOW });
        game.look();
        prop_assert_eq!(game.store().info().unwrap().boot, boot, "no write was lost");
    }
}

#[test]
fn a_write_over_two_stripes_that_does_not_fit_is_taken_back_from_both() {
    let mut game = Game::new();
    game.play(&Step::Write { at: 2, count: 3 });
    game.disk.fill_up(8 * BLOCK);
    let outcome = game.store().write(FIRST * BLOCK, &block(9).repeat(WINDOW as usize));
    assert_eq!(outcome.unwrap_err().kind(), FailureKind::NoSpace);
    game.look();
    game.play(&Step::Reopen);
    game.look();
}
