//! Random histories of one volume, with crashes at random operations of the store. Whatever happens: each backup
//! that is listed restores to what the disk held, and a sweep leaves nothing that is not needed.
//! `PROPTEST_CASES=5000` plays more of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use granary_backup::{Error, Job, Layout, Repository, RestoreOnto, RestoreRequest, Result, Store};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::disk::{CHUNK, Content, Disk, Volume};
use crate::memory::{Crash, MemoryStore};
use crate::setup::{name, repository, request, restore_and_compare, volume};

/// An odd size, so that the last block is a part of one.
const SIZE: u64 = 10 * 4096 + 1024;
/// Few, so that names come back after their backups were deleted.
const NAMES: usize = 5;

#[derive(Debug, Clone)]
enum Action {
    Write(Vec<(u64, u8)>),
    Discard(u64),
    Backup { which: usize, knows_changes: bool, full: bool, crash: Option<Crash> },
    Delete { which: usize, crash: Option<Crash> },
    RestoreOver { from: usize, to: usize },
    Sweep { crash: Option<Crash> },
    DeleteVolume { crash: Option<Crash> },
    LoseIndex,
}

fn crash() -> impl Strategy<Value = Option<Crash>> {
    let crash = (0..40usize, any::<bool>()).prop_map(|(after, applied)| Crash { after, applied });
    prop::option::of(crash)
}

fn action() -> impl Strategy<Value = Action> {
    let chunk = 0..SIZE.div_ceil(CHUNK);
    // Few values, so that blocks repeat within a disk and over time; zero among them.
    let write = (chunk.clone(), 0..6u8);
    prop_oneof![
        6 => prop::collection::vec(write, 1..8).prop_map(Action::Write),
        2 => chunk.prop_map(Action::Discard),
        6 => (0..NAMES, any::<bool>(), prop::bool::weighted(0.1), crash()).prop_map(
            |(which, knows_changes, full, crash)| Action::Backup { which, knows_changes, full, crash }
        ),
        5 => (any::<usize>(), crash()).prop_map(|(which, crash)| Action::Delete { which, crash }),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Action::RestoreOver { from, to }),
        1 => crash().prop_map(|crash| Action::Sweep { crash }),
        1 => crash().prop_map(|crash| Action::DeleteVolume { crash }),
        1 => Just(Action::LoseIndex),
    ]
}

struct World {
    store: MemoryStore,
    repository: Repository,
    disk: Disk,
    /// Backups that are listed, with what they must restore to.
    backups: BTreeMap<String, Content>,
    snapshots: usize,
}

impl World {
    fn new() -> Self {
        let store = MemoryStore::new();
        let repository = repository(Arc::new(store.clone()));
        Self { store, repository, disk: Disk::new(SIZE), backups: BTreeMap::new(), snapshots: 0 }
    }

    async fn play(&mut self, action: Action) {
        match action {
            Action::Write(writes) => {
                writes.into_iter().for_each(|(chunk, value)| self.disk.write(chunk, value));
            }
            Action::Discard(chunk) => self.disk.discard(chunk),
            Action::Backup { which, knows_changes, full, crash } => {
                let backup = format!("backup-{which}");
                if !self.backups.contains_key(&backup) {
                    self.backup(backup, knows_changes, full, crash).await;
                }
            }
            Action::Delete { which, crash } => self.delete(which, crash).await,
            Action::RestoreOver { from, to } => self.restore_over(from, to).await,
            Action::Sweep { crash } => {
                self.store.set_crash(crash);
                let result = self.repository.sweep(&volume(), &CancellationToken::new()).await;
                self.after(&result).await;
            }
            Action::DeleteVolume { crash } => self.delete_volume(crash).await,
            Action::LoseIndex => {
                self.store.delete(&Layout::new(&volume()).references()).await.unwrap();
            }
        }
        assert_eq!(self.listed().await, self.backups.keys().cloned().collect());
        self.compare().await;
    }

    async fn backup(&mut self, backup: String, knows_changes: bool, full: bool, crash: Option<Crash>) {
        self.snapshots += 1;
        let mut request = request(&backup);
        request.snapshot.name = format!("snapshot-{}", self.snapshots);
        if full {
            request.parameters.insert("backup-mode".into(), "full".into());
        }
        let mut source = self.disk.snapshot(&request.snapshot.name);
        source.knows_changes = knows_changes;
        self.store.set_crash(crash);
        let result = self.repository.backup(&request, &source, &Job::new(3)).await;
        self.after(&result).await;
        let is_listed = self.listed().await.contains(&backup);
        assert!(is_listed || result.is_err(), "a successful backup is listed");
        if is_listed {
            self.backups.insert(backup, self.disk.content.clone());
        }
    }

    async fn delete(&mut self, which: usize, crash: Option<Crash>) {
        let position = which % self.backups.len().max(1);
        let Some(backup) = self.backups.keys().nth(position).cloned() else { return };
        self.store.set_crash(crash);
        let cancel = CancellationToken::new();
        let result = self.repository.delete_backup(&volume(), &name(&backup), &cancel).await;
        self.after(&result).await;
        let is_listed = self.listed().await.contains(&backup);
        assert!(!is_listed || result.is_err(), "a deleted backup is not listed");
        if !is_listed {
            self.backups.remove(&backup);
        }
    }

    async fn delete_volume(&mut self, crash: Option<Crash>) {
        self.store.set_crash(crash);
        let result = self.repository.delete_volume(&volume(), &CancellationToken::new()).await;
        self.after(&result).await;
        let left = self.listed().await;
        assert!(result.is_err() || left.is_empty());
        self.backups.retain(|backup, _| left.contains(backup));
    }

    async fn restore_over(&self, from: usize, to: usize) {
        let nth = |which: usize| self.backups.iter().nth(which % self.backups.len().max(1));
        let (Some((from, before)), Some((to, content))) = (nth(from), nth(to)) else { return };
        let target = Volume::holding(before, SIZE);
        let onto = RestoreOnto::Backup(name(from));
        let request = RestoreRequest { volume: volume(), backup: name(to), onto };
        self.repository.restore(&request, &target, &Job::default()).await.unwrap();
        target.assert_holds(content);
    }

    /// The machine comes up again, later than any lock of before is good for.
    async fn after<T>(&self, result: &Result<T>) {
        match result {
            Ok(_) | Err(Error::Store(_) | Error::NoVolume(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
        self.store.set_crash(None);
        sleep(Duration::from_secs(400)).await;
    }

    async fn listed(&self) -> BTreeSet<String> {
        let listed = self.repository.list_backups(&volume()).await.unwrap();
        listed.iter().map(ToString::to_string).collect()
    }

    async fn compare(&self) {
        for (backup, content) in &self.backups {
            restore_and_compare(&self.repository, backup, content, SIZE).await;
        }
    }

    async fn settle(&self) {
        let swept = self.repository.sweep(&volume(), &CancellationToken::new()).await.unwrap();
        assert_eq!((swept.missing, swept.blocks_kept), (vec![], None));
        let stored = self.store.keys().iter().filter(|key| key.contains("/blocks/")).count();
        assert_eq!(stored as u64, swept.blocks_used, "nothing is left that nobody needs");
        let is_lock = |key: &String| key.contains("/locks/");
        assert!(!self.store.keys().iter().any(is_lock), "no lock is left");
        self.compare().await;
    }
}

proptest! {
    #[test]
    fn what_is_listed_restores_whatever_happened(
        actions in prop::collection::vec(action(), 1..32)
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
            let mut world = World::new();
            for action in actions {
                world.play(action).await;
            }
            world.settle().await;
        });
    }
}
