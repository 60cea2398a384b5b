//! Who waits, who gives up and what a lock that was lost means.

use std::sync::Arc;
use std::time::Duration;

use granary_backup::{Error, Job, Layout, Lease, LockKind, LockTimings, Store};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::disk::Disk;
use crate::memory::{Crash, MemoryStore};
use crate::setup::{name, repository, request, volume};

async fn lock(store: &MemoryStore, kind: LockKind) -> Result<Lease, Error> {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    Lease::acquire(&store, &Layout::new(&volume()), kind, LockTimings::default(), &CancellationToken::new())
        .await
}

#[tokio::test(start_paused = true)]
async fn a_deletion_gives_up_and_names_who_is_in_the_way() {
    let store = MemoryStore::new();
    let repository = repository(Arc::new(store.clone()));
    let holder = lock(&store, LockKind::Shared).await.unwrap();
    let began = Instant::now();
    let refused =
        repository.delete_backup(&volume(), &name("backup-1"), &CancellationToken::new()).await.unwrap_err();
    assert!(began.elapsed() >= Duration::from_mins(5), "it has waited");
    let Error::Locked { holder: named, kind, .. } = &refused else { panic!("{refused:?}") };
    assert!(store.keys().iter().any(|key| key.ends_with(&format!("/{named}.lck"))), "{named}");
    assert_eq!(*kind, LockKind::Shared);
    assert!(holder.check().is_ok(), "a lock that is refreshed is kept");
    holder.release().await;
    assert!(store.keys().is_empty(), "{:?}", store.keys());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_goes_on_when_the_backup_has_ended() {
    let store = MemoryStore::new();
    let holder = lock(&store, LockKind::Shared).await.unwrap();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { lock(&store, LockKind::Exclusive).await }
    });
    sleep(Duration::from_secs(100)).await;
    assert!(!waiting.is_finished());
    holder.release().await;
    waiting.await.unwrap().unwrap().release().await;
}

#[tokio::test(start_paused = true)]
async fn backups_go_side_by_side() {
    let store = MemoryStore::new();
    let first = lock(&store, LockKind::Shared).await.unwrap();
    let second = lock(&store, LockKind::Shared).await.unwrap();
    first.release().await;
    second.release().await;
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_a_dead_process_expires_and_is_cleared_away() {
    let store = MemoryStore::new();
    drop(lock(&store, LockKind::Shared).await.unwrap());
    let began = Instant::now();
    let alone = lock(&store, LockKind::Exclusive).await.unwrap();
    assert!(began.elapsed() > Duration::from_secs(140), "it might have come back");
    sleep(Duration::from_mins(10)).await;
    alone.remove_expired().await.unwrap();
    assert_eq!(store.keys().len(), 1, "only the living one is left: {:?}", store.keys());
    alone.release().await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_could_not_be_refreshed_is_never_trusted_again() {
    let store = MemoryStore::new();
    let lease = lock(&store, LockKind::Shared).await.unwrap();
    store.set_crash(Some(Crash { after: 0, applied: false }));
    sleep(Duration::from_secs(100)).await;
    assert!(lease.check().is_ok(), "an outage of the target is survived");
    sleep(Duration::from_secs(100)).await;
    store.set_crash(None);
    sleep(Duration::from_mins(5)).await;
    assert!(matches!(lease.check(), Err(Error::LockLost { .. })));
    lease.release().await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_can_be_called_off() {
    let store = MemoryStore::new();
    let holder = lock(&store, LockKind::Exclusive).await.unwrap();
    let repository = repository(Arc::new(store.clone()));
    let cancel = CancellationToken::new();
    let job = Job::default().with_cancel(cancel.clone());
    let waiting = tokio::spawn(async move {
        let source = Disk::new(4096).snapshot("snapshot");
        repository.backup(&request("backup-1"), &source, &job).await
    });
    sleep(Duration::from_secs(30)).await;
    cancel.cancel();
    assert!(matches!(waiting.await.unwrap(), Err(Error::Cancelled)));
    assert_eq!(store.keys().len(), 1, "its place in the queue is given up");
    holder.release().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_nobody_understands_counts_as_a_lock_until_it_is_old() {
    let store = MemoryStore::new();
    store.put(&Layout::new(&volume()).lock("lock-from-the-future"), "?".into()).await.unwrap();
    let began = Instant::now();
    lock(&store, LockKind::Shared).await.unwrap().release().await;
    assert!(began.elapsed() > Duration::from_secs(140));
}
