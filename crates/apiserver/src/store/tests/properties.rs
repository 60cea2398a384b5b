//! Random histories: whatever is written, compacted and reopened, the store answers like the model.

use proptest::prelude::*;

use super::disk::Disk;
use super::model::{self, Model};
use super::{config, key, object, open_on, prefixes, runtime};
use crate::store::{Action, Expect, Key, Snapshot, Store, StoreError, Write};

/// What a writer believes about the key.
#[derive(Debug, Clone, Copy)]
enum Belief {
    Right,
    Absent,
    Stale,
    Future,
}

#[derive(Debug, Clone)]
enum Step {
    Put {
        key: u64,
        belief: Belief,
        owners: Vec<u64>,
    },
    Delete {
        key: u64,
        belief: Belief,
    },
    /// Ends history this many revisions before the newest.
    Compact {
        keep: u64,
    },
    /// A list begins this many revisions before the newest, or the one that runs ends.
    Pin {
        back: u64,
    },
    Unpin,
    Reopen,
    /// Watchers find nothing in memory.
    ForgetRing,
    Check {
        back: u64,
        prefix: usize,
        limit: usize,
    },
}

fn belief() -> impl Strategy<Value = Belief> {
    prop_oneof![
        6 => Just(Belief::Right),
        1 => Just(Belief::Absent),
        1 => Just(Belief::Stale),
        1 => Just(Belief::Future),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let owners = proptest::collection::btree_set(0..3u64, 0..3);
    prop_oneof![
        12 => (0..12u64, belief(), owners)
            .prop_map(|(key, belief, owners)| Step::Put { key, belief, owners: owners.into_iter().collect() }),
        6 => (0..12u64, belief()).prop_map(|(key, belief)| Step::Delete { key, belief }),
        2 => (0..12u64).prop_map(|keep| Step::Compact { keep }),
        1 => (0..8u64).prop_map(|back| Step::Pin { back }),
        1 => Just(Step::Unpin),
        1 => Just(Step::Reopen),
        1 => Just(Step::ForgetRing),
        4 => (0..20u64, 0..prefixes().len(), 1..7usize)
            .prop_map(|(back, prefix, limit)| Step::Check { back, prefix, limit }),
    ]
}

struct World {
    disk: Disk,
    store: Store,
    model: Model,
    pinned: Option<Snapshot>,
    contents: u64,
}

impl World {
    fn new() -> Self {
        let disk = Disk::formatted();
        let store = open_on(&disk).unwrap();
        Self { disk, store, model: Model::default(), pinned: None, contents: 0 }
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Put { key: number, belief, owners } => {
                self.contents += 1;
                let key = key(*number);
                let action = Action::Put(object(&key, self.contents, owners));
                self.write(&key, *belief, action).await;
            }
            Step::Delete { key: number, belief } => {
                let key = key(*number);
                let last =
                    self.model.live_bytes(&key).map_or_else(|| object(&key, 0, &[]), |b| model::parse(&b));
                self.write(&key, *belief, Action::Delete(last)).await;
            }
            Step::Compact { keep } => self.compact(self.model.revision.saturating_sub(*keep)),
            Step::Pin { back } => {
                let at = self.model.revision.saturating_sub(*back).max(self.store.compacted());
                self.pinned = Some(self.store.snapshot(Some(at)).unwrap());
            }
            Step::Unpin => self.pinned = None,
            Step::Reopen => self.reopen().await,
            Step::ForgetRing => self.store.shared.ring.restart(self.model.revision, || ()),
            Step::Check { back, prefix, limit } => {
                self.check(self.model.revision.saturating_sub(*back), *prefix, *limit);
            }
        }
    }

    async fn write(&mut self, key: &Key, belief: Belief, action: Action) {
        let live = self.model.live_revision(key);
        let expect = match (belief, live) {
            (Belief::Absent, _) => Expect::Absent,
            (Belief::Right, None) if matches!(action, Action::Put(_)) => Expect::Absent,
            (Belief::Right, _) => Expect::Revision(live.unwrap_or(1)),
            (Belief::Stale, _) => Expect::Revision(live.unwrap_or(self.model.revision) / 2),
            (Belief::Future, _) => Expect::Revision(self.model.revision + 7),
        };
        // A deletion of nothing is never asked for.
        if expect == Expect::Absent && matches!(action, Action::Delete(_)) {
            return;
        }
        let write = Write { key: key.clone(), expect, action, previous: self.model.live_bytes(key) };
        let wanted = self.model.apply(&write);
        let got = self.store.commit(write).await;
        match (wanted, got) {
            (Ok(revision), Ok(stored)) => {
                assert_eq!(stored.revision, revision);
                let object = model::parse(&stored.json);
                assert_eq!(object["metadata"]["resourceVersion"], revision.to_string());
            }
            (Err(wanted), Err(got)) => assert_eq!(wanted.to_string(), got.to_string()),
            (wanted, got) => panic!("the model says {wanted:?}, the store {got:?}"),
        }
        assert_eq!(self.store.revision(), self.model.revision);
        let live = self.model.live_revision(key);
        assert_eq!(self.store.get(key).unwrap().map(|s| s.revision), live);
    }

    fn compact(&mut self, target: u64) {
        let before = self.store.compacted();
        while self.store.shared.compact(target).unwrap() {}
        let free = self.pinned.as_ref().map_or(u64::MAX, Snapshot::revision);
        assert_eq!(
            self.store.compacted(),
            target.min(free).max(before),
            "pins hold the horizon, nothing else"
        );
    }

    async fn reopen(&mut self) {
        let compacted = self.store.compacted();
        self.pinned = None;
        self.store.close().await;
        self.store = open_on(&self.disk).unwrap();
        assert_eq!((self.store.revision(), self.store.compacted()), (self.model.revision, compacted));
    }

    fn check(&self, at: u64, prefix: usize, limit: usize) {
        let prefix = &prefixes()[prefix];
        let listed = model::list(&self.store, at, prefix, limit);
        let told = model::events(&self.store, at, prefix, limit);
        if at >= self.store.compacted() {
            assert_eq!(listed.unwrap(), self.model.list(at, prefix), "at revision {at} under {prefix:?}");
            assert_eq!(told.unwrap(), self.model.events_after(at, prefix), "after {at} under {prefix:?}");
            return;
        }
        let oldest = self.store.compacted();
        assert!(
            matches!(listed, Err(StoreError::Compacted { requested, oldest: o }) if requested == at && o == oldest)
        );
        // Memory may reach back further than the database promises; then it must be complete.
        match told {
            Ok(told) => assert_eq!(told, self.model.events_after(at, prefix)),
            Err(error) => assert!(matches!(error, StoreError::Compacted { .. }), "{error}"),
        }
    }

    fn check_everything(&self) {
        for at in self.store.compacted()..=self.model.revision {
            for prefix in 0..prefixes().len() {
                self.check(at, prefix, 1 + (at as usize % 5));
            }
        }
        self.check_owners();
        let live = self.model.list(self.model.revision, &prefixes()[1]);
        assert_eq!(self.store.count(&prefixes()[1]).unwrap(), live.len() as u64);
    }

    fn check_owners(&self) {
        let wanted = self.model.owned();
        assert_eq!(model::owned(&self.store), wanted);
        for owner in ["owner-0", "owner-1", "owner-2", "owner"] {
            let mut found = self.store.owned_by(owner).unwrap();
            found.sort();
            let dependents: Vec<_> =
                wanted.iter().filter(|(uid, _)| uid == owner).map(|(_, key)| key.clone()).collect();
            assert_eq!(found, dependents);
        }
    }
}

proptest! {
    #![proptest_config(config(32))]

    #[test]
    fn the_store_answers_like_the_model(steps in proptest::collection::vec(step(), 1..80)) {
        runtime().block_on(async {
            let mut world = World::new();
            for step in &steps {
                world.take(step).await;
            }
            world.check_everything();
            world.reopen().await;
            world.check_everything();
            // Even the last of history can go; what lives must stay.
            world.compact(world.model.revision);
            world.store.shared.ring.restart(world.model.revision, || ());
            world.check_everything();
            world.reopen().await;
            world.check_everything();
        });
    }
}

#[test]
fn a_filter_skips_objects_without_losing_the_place() {
    runtime().block_on(async {
        let mut world = World::new();
        for number in 0..12 {
            world.take(&Step::Put { key: number, belief: Belief::Right, owners: vec![] }).await;
        }
        let snapshot = world.store.snapshot(None).unwrap();
        let everything = &prefixes()[0];
        let (mut start, mut found) = (None::<String>, Vec::new());
        loop {
            let page = snapshot.page(everything, start.as_deref(), 2, |key, _| key.name() == "n1").unwrap();
            found.extend(page.items.into_iter().map(|s| s.key));
            match page.next {
                Some(next) => start = Some(next),
                None => break,
            }
        }
        let mut wanted: Vec<_> = (0..12).map(key).filter(|k| k.name() == "n1").collect();
        wanted.sort();
        assert_eq!(found, wanted);
    });
}

#[test]
fn a_revision_that_is_not_there_yet_is_refused() {
    let world = World::new();
    let refused = world.store.snapshot(Some(1)).err().unwrap();
    assert!(matches!(refused, StoreError::Ahead { requested: 1, current: 0 }), "{refused}");
}

/// Superseded and deleted versions must really go, or the file would grow for ever.
#[test]
fn compaction_leaves_one_record_for_each_live_object() {
    runtime().block_on(async {
        let mut world = World::new();
        for round in 0..20u64 {
            for number in 0..12 {
                let belief = Belief::Right;
                if number < 6 && round % 3 == 2 {
                    world.take(&Step::Delete { key: number, belief }).await;
                } else {
                    world.take(&Step::Put { key: number, belief, owners: vec![round % 3] }).await;
                }
            }
        }
        world.compact(world.model.revision);
        let live = world.model.list(world.model.revision, &prefixes()[0]).len() as u64;
        let (records, keys) = world
            .store
            .shared
            .read(|txn| {
                use redb::ReadableTableMetadata;
                let records = txn.open_table(crate::store::database::REVISIONS)?.len()?;
                Ok((records, txn.open_table(crate::store::database::INDEX)?.len()?))
            })
            .unwrap();
        assert_eq!((records, keys), (live, live));
    });
}
