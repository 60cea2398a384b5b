//! Power cuts, full disks and I/O errors at any moment: what was acknowledged stays, what was not is there
//! completely or not at all, and history never changes.

use std::collections::BTreeMap;

use futures::future::join_all;
use proptest::prelude::*;
use serde_json::Value;

use super::disk::{Disk, Trouble};
use super::model::{self, Model, Told};
use super::{Dice, config, key, object, open_on, runtime};
use crate::store::{Action, Change, Expect, Key, Prefix, Store, StoreError, Stored, Write};

/// Everything that was ever asked of the store and what it said.
#[derive(Default)]
struct Witness {
    /// Acknowledged changes by revision.
    acknowledged: BTreeMap<u64, (Key, Value)>,
    /// Content numbers of writes whose fate is unknown.
    unknown: Vec<(Key, u64)>,
    /// The history that was read after an earlier start; it may only grow.
    history: Vec<Told>,
    contents: u64,
}

impl Witness {
    /// Writes `many` random changes at once, with right expectations; tells whether all succeeded.
    async fn write(&mut self, store: &Store, dice: &mut Dice, many: u64) -> bool {
        let mut writes = Vec::new();
        for _ in 0..many {
            self.contents += 1;
            let key = key(dice.below(12));
            let Ok(live) = store.get(&key) else { return false };
            writes.push((self.contents, random_write(&key, live, self.contents, dice)));
        }
        let asked: Vec<_> = writes.iter().map(|(content, w)| (*content, w.key.clone())).collect();
        let answers = join_all(writes.into_iter().map(|(_, write)| store.commit(write))).await;
        let mut fine = true;
        for ((content, key), answer) in asked.into_iter().zip(answers) {
            match answer {
                Ok(stored) => {
                    let before = self.acknowledged.insert(stored.revision, (key, model::parse(&stored.json)));
                    assert!(before.is_none(), "revision {} was acknowledged twice", stored.revision);
                }
                // Another write of the same batch was first.
                Err(StoreError::Exists | StoreError::Missing | StoreError::Moved { .. }) => {}
                Err(_) => {
                    fine = false;
                    self.unknown.push((key, content));
                }
            }
        }
        fine
    }

    /// Compares what the store holds now with everything that is known.
    fn check(&mut self, store: &Store) {
        let newest = self.acknowledged.keys().next_back().copied().unwrap_or(0);
        assert!(store.revision() >= newest, "{} is older than acknowledged {newest}", store.revision());
        let told = model::events(store, 0, &Prefix::everything(), 16).unwrap();
        assert!(
            told.iter().map(|t| t.revision).eq(1..=store.revision()),
            "every revision is there exactly once"
        );
        assert_eq!(told[..self.history.len()], self.history[..], "history changed");
        for event in &told {
            match self.acknowledged.get(&event.revision) {
                Some((key, object)) => assert_eq!((key, object), (&event.key, &event.object)),
                None => self.recognise(event),
            }
        }
        self.check_derived(store, &told);
        self.history = told;
    }

    /// A change that was not acknowledged must at least have been asked for, and be complete.
    fn recognise(&self, event: &Told) {
        let content = event.object["data"]["content"].as_u64().unwrap();
        if event.change != Change::Deleted {
            let asked = self.unknown.iter().any(|(key, c)| *key == event.key && *c == content);
            assert!(asked, "nobody asked for {event:?}");
        }
        assert_eq!(event.object["metadata"]["resourceVersion"], event.revision.to_string());
        assert_eq!(event.object["metadata"]["name"], event.key.name());
    }

    /// Index, owners and old lists must agree with the history.
    fn check_derived(&self, store: &Store, told: &[Told]) {
        let mut model = Model::default();
        for event in told {
            let expect = model.live_revision(&event.key).map_or(Expect::Absent, Expect::Revision);
            let action = match event.change {
                Change::Deleted => Action::Delete(event.object.clone()),
                _ => Action::Put(event.object.clone()),
            };
            model.apply(&Write { key: event.key.clone(), expect, action, previous: None }).unwrap();
        }
        assert_eq!(model.events_after(0, &Prefix::everything()), told);
        for at in [store.revision(), store.revision() / 2] {
            let listed = model::list(store, at, &Prefix::everything(), 5).unwrap();
            assert_eq!(listed, model.list(at, &Prefix::everything()));
        }
        assert_eq!(model::owned(store), model.owned());
    }
}

fn random_write(key: &Key, live: Option<Stored>, content: u64, dice: &mut Dice) -> Write {
    let Some(live) = live else {
        let action = Action::Put(object(key, content, &[dice.below(3)]));
        return Write { key: key.clone(), expect: Expect::Absent, action, previous: None };
    };
    let action = match dice.below(4) {
        0 => Action::Delete(model::parse(&live.json)),
        // Some are large, so that the file grows and commits are of many pages.
        1 => {
            let mut object = object(key, content, &[]);
            object["data"]["filler"] = "x".repeat(dice.below(40_000) as usize).into();
            Action::Put(object)
        }
        _ => Action::Put(object(key, content, &[dice.below(3)])),
    };
    let expect = Expect::Revision(live.revision);
    Write { key: key.clone(), expect, action, previous: Some(live.json) }
}

/// Opening may itself meet the next power cut.
fn start(disk: &Disk, dice: &mut Dice) -> Store {
    for _ in 0..20 {
        match open_on(disk) {
            Ok(store) => return store,
            Err(_) if disk.is_off() => disk.power_cycle(dice),
            Err(error) => panic!("the store does not open: {error}"),
        }
    }
    panic!("twenty power cuts in a row");
}

async fn power_cuts(seed: u64) {
    let mut dice = Dice::new(seed);
    let disk = Disk::formatted();
    let mut witness = Witness::default();
    for _life in 0..6 {
        // Some cuts come while the store opens.
        disk.arm(Trouble::PowerCut { after: dice.below(150) });
        let store = start(&disk, &mut dice);
        if !disk.is_off() {
            disk.arm(Trouble::PowerCut { after: dice.below(300) });
        }
        for _ in 0..200 {
            let many = 1 + dice.below(8);
            if !witness.write(&store, &mut dice, many).await {
                break;
            }
        }
        // A power cut does not close anything in an orderly way.
        disk.arm(Trouble::PowerCut { after: 0 });
        store.close().await;
        disk.power_cycle(&mut dice);
        let store = start(&disk, &mut dice);
        witness.check(&store);
        store.close().await;
    }
}

async fn errors(seed: u64) {
    let mut dice = Dice::new(seed);
    let disk = Disk::formatted();
    let store = open_on(&disk).unwrap();
    let mut witness = Witness::default();
    let (mut cursor, mut followed) = (0, Vec::new());
    for _round in 0..6 {
        witness.write(&store, &mut dice, 4).await;
        let trouble = match dice.below(4) {
            0 => Trouble::Full { bytes: dice.below(200_000) },
            1 => Trouble::BadReads { after: dice.below(20) },
            _ => Trouble::Errors { after: dice.below(60), seed: dice.next() },
        };
        disk.arm(trouble);
        for _ in 0..12 {
            witness.write(&store, &mut dice, 6).await;
        }
        disk.repair();
        // No restart: the next use finds its way.
        assert!(witness.write(&store, &mut dice, 3).await, "the disk works again after {trouble:?}");
        loop {
            let (events, next) = store.events_after(cursor, &Prefix::everything(), 5).unwrap();
            followed.extend(events.iter().map(|e| Told::of(e)));
            if next == cursor {
                break;
            }
            cursor = next;
        }
        witness.check(&store);
        assert_eq!(followed, witness.history, "a watcher saw something else than what happened");
    }
    store.close().await;
    disk.power_cycle(&mut dice);
    witness.check(&open_on(&disk).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..config(12) })]

    #[test]
    fn after_a_power_cut_everything_acknowledged_is_there(seed: u64) {
        runtime().block_on(power_cuts(seed));
    }

    #[test]
    fn after_disk_errors_the_store_goes_on_by_itself(seed: u64) {
        runtime().block_on(errors(seed));
    }
}

/// The disk takes the commit, but the answer gets lost: the writer must find out and say so.
#[test]
fn a_commit_that_reached_the_disk_in_spite_of_an_error_is_acknowledged() {
    runtime().block_on(async {
        let mut acknowledged_late = 0;
        for after in 0..40 {
            let disk = Disk::formatted();
            let store = open_on(&disk).unwrap();
            disk.fail_once_done(after);
            let key = key(0);
            let write = || Write {
                key: key.clone(),
                expect: Expect::Absent,
                action: Action::Put(object(&key, 1, &[])),
                previous: None,
            };
            let answer = store.commit(write()).await;
            let there = store.get(&key).unwrap().is_some();
            assert_eq!(answer.is_ok(), there, "after {after} changes: {answer:?}");
            acknowledged_late += u32::from(disk.failed_once() && there);
            let revision = store.revision();
            if !there {
                assert_eq!(store.commit(write()).await.unwrap().revision, revision + 1);
            }
            let told = model::events(&store, 0, &Prefix::everything(), 10).unwrap();
            assert_eq!(told.len(), 1, "after {after} changes");
        }
        assert!(acknowledged_late > 0, "no case of a commit that failed and was there");
    });
}

#[test]
fn compaction_that_failed_is_made_up_for() {
    runtime().block_on(async {
        let disk = Disk::formatted();
        let store = open_on(&disk).unwrap();
        let mut witness = Witness::default();
        let mut dice = Dice::new(7);
        while store.revision() < 40 {
            witness.write(&store, &mut dice, 3).await;
        }
        disk.arm(Trouble::Errors { after: 0, seed: 1 });
        assert!(store.shared.compact(20).is_err());
        disk.repair();
        while store.shared.compact(40).unwrap() {}
        assert_eq!(store.compacted(), 40);
        let live = store.count(&Prefix::everything()).unwrap();
        let recent = store.revision() - 40;
        let records = store
            .shared
            .read(|txn| {
                use redb::ReadableTableMetadata;
                Ok(txn.open_table(crate::store::database::REVISIONS)?.len()?)
            })
            .unwrap();
        assert!(records <= live + 2 * recent, "{records} records for {live} objects");
    });
}

/// A file that is replaced by an older one under a running store must not be served.
#[test]
fn a_store_does_not_go_back_in_time() {
    runtime().block_on(async {
        let disk = Disk::formatted();
        let store = open_on(&disk).unwrap();
        let mut witness = Witness::default();
        let mut dice = Dice::new(3);
        witness.write(&store, &mut dice, 3).await;
        let old = disk.image();
        while !witness.write(&store, &mut dice, 3).await || store.revision() < 6 {}
        disk.replace(old);
        disk.arm(Trouble::Errors { after: 0, seed: 1 });
        assert!(!witness.write(&store, &mut dice, 1).await);
        disk.repair();
        let refused = store.get(&key(0)).unwrap_err();
        assert!(matches!(refused, StoreError::Broken { .. }), "{refused}");
    });
}
