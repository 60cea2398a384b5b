//! Many at once on one volume, each step of each taking another while.

use std::sync::Arc;

use granary_backup::{Error, Job, Repository, RestoreOnto, RestoreRequest};
use tokio_util::sync::CancellationToken;

use crate::disk::{Content, Disk, SnapshotSource, Volume};
use crate::memory::MemoryStore;
use crate::setup::{name, repository, request, restore_and_compare, volume};

const SIZE: u64 = 16 * 4096;

async fn backup(repository: Repository, backup: String, source: SnapshotSource) {
    repository.backup(&request(&backup), &source, &Job::new(2)).await.unwrap();
}

async fn delete(repository: Repository, backup: &str) {
    repository.delete_backup(&volume(), &name(backup), &CancellationToken::new()).await.unwrap();
}

/// A disk that changes a little for every snapshot, and back again: later backups use blocks of deleted ones.
fn next(disk: &mut Disk, round: u64) -> Content {
    for chunk in 0..16 {
        disk.write(chunk * 4, ((chunk + round) % 5 + u64::from(chunk == round % 16)) as u8);
    }
    disk.content.clone()
}

async fn play(seed: u64) {
    let store = MemoryStore::with_pauses(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let repository = repository(Arc::new(store.clone()));
    let mut disk = Disk::new(SIZE);
    let mut contents = Vec::new();
    for number in 0..2 {
        contents.push(next(&mut disk, seed + number));
        let source = disk.snapshot(&format!("snapshot-of-backup-{number}"));
        backup(repository.clone(), format!("backup-{number}"), source).await;
    }
    let mut tasks = Vec::new();
    for number in 2..4 {
        contents.push(next(&mut disk, seed + number));
        let source = disk.snapshot(&format!("snapshot-of-backup-{number}"));
        tasks.push(tokio::spawn(backup(repository.clone(), format!("backup-{number}"), source)));
    }
    // The one that both backups build on, and the other one.
    let (first, second) = (repository.clone(), repository.clone());
    tasks.push(tokio::spawn(async move { delete(first, "backup-1").await }));
    tasks.push(tokio::spawn(async move { delete(second, "backup-0").await }));
    // A restore of what is being deleted either sees all of it or none.
    let restorer = repository.clone();
    tasks.push(tokio::spawn(async move {
        let request = RestoreRequest { volume: volume(), backup: name("backup-1"), onto: RestoreOnto::Blank };
        match restorer.restore(&request, &Volume::blank(SIZE), &Job::default()).await {
            Ok(_) | Err(Error::NoBackup { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }));
    for task in tasks {
        task.await.unwrap();
    }
    let listed: Vec<_> =
        repository.list_backups(&volume()).await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["backup-2", "backup-3"]);
    for (number, content) in contents.iter().enumerate().skip(2) {
        restore_and_compare(&repository, &format!("backup-{number}"), content, SIZE).await;
    }
    let swept = repository.sweep(&volume(), &CancellationToken::new()).await.unwrap();
    assert!(swept.missing.is_empty());
    assert_eq!(swept.blocks_deleted, 0, "nothing was left behind");
}

#[test]
fn two_backups_and_two_deletions_at_once() {
    for seed in 1..=200 {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(seed));
    }
}
