//! A machine that stands still in the very moment in which it makes a backup visible, for longer than its lock is
//! good for. Meanwhile another one deletes what that backup builds on.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use granary_backup::{Entry, Error, Job, Listing, Store, StoreError};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::disk::Disk;
use crate::memory::MemoryStore;
use crate::setup::{name, repository, request, restore_and_compare, volume};

const SIZE: u64 = 8 * 4096;

/// Once a backup is to become visible, nothing of this machine gets through until it goes on.
struct StallingStore {
    inner: MemoryStore,
    stalls: watch::Sender<bool>,
    goes_on: watch::Receiver<bool>,
}

impl StallingStore {
    async fn stall_if_told(&self) {
        if *self.stalls.borrow() {
            self.goes_on.clone().wait_for(|goes_on| *goes_on).await.unwrap();
        }
    }
}

#[async_trait]
impl Store for StallingStore {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.stall_if_told().await;
        self.inner.get(key).await
    }

    async fn head(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.stall_if_told().await;
        self.inner.head(key).await
    }

    async fn put(&self, key: &str, data: Bytes) -> Result<(), StoreError> {
        self.stall_if_told().await;
        self.inner.put(key, data).await
    }

    async fn put_if_absent(&self, key: &str, data: Bytes) -> Result<bool, StoreError> {
        if key.contains("/backups/") {
            self.stalls.send_replace(true);
        }
        self.stall_if_told().await;
        self.inner.put_if_absent(key, data).await
    }

    async fn list(&self, directory: &str) -> Result<Listing, StoreError> {
        self.stall_if_told().await;
        self.inner.list(directory).await
    }

    fn walk(&self, directory: &str) -> BoxStream<'_, Result<Entry, StoreError>> {
        self.inner.walk(directory)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.stall_if_told().await;
        self.inner.delete(key).await
    }
}

/// Stalls a second backup, lets another machine do something meanwhile, and tells how the backup ended.
async fn stalled(
    store: &MemoryStore,
    disk: &mut Disk,
    meanwhile: impl AsyncFnOnce(&granary_backup::Repository),
) -> granary_backup::Result<granary_backup::BackupSummary> {
    let other = repository(Arc::new(store.clone()));
    for chunk in 0..16 {
        disk.write(chunk, chunk as u8 + 1);
    }
    let source = disk.snapshot("snapshot-of-backup-1");
    other.backup(&request("backup-1"), &source, &Job::default()).await.unwrap();
    disk.write(20, 20);
    let source = disk.snapshot("snapshot-of-backup-2");
    let (stalls, mut has_stalled) = watch::channel(false);
    let (go_on, goes_on) = watch::channel(false);
    let slow = repository(Arc::new(StallingStore { inner: store.clone(), stalls, goes_on }));
    let backup =
        tokio::spawn(async move { slow.backup(&request("backup-2"), &source, &Job::default()).await });
    has_stalled.wait_for(|stalled| *stalled).await.unwrap();
    sleep(Duration::from_secs(200)).await;
    meanwhile(&other).await;
    go_on.send_replace(true);
    backup.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_backup_whose_blocks_were_deleted_meanwhile_is_withdrawn() {
    let store = MemoryStore::new();
    let delete = async |other: &granary_backup::Repository| {
        other.delete_backup(&volume(), &name("backup-1"), &CancellationToken::new()).await.unwrap();
    };
    let result = stalled(&store, &mut Disk::new(SIZE), delete).await;
    assert!(matches!(result, Err(Error::LockLost { .. })), "{result:?}");
    assert_eq!(repository(Arc::new(store)).list_backups(&volume()).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_backup_that_nobody_has_harmed_stays() {
    let store = MemoryStore::new();
    let mut disk = Disk::new(SIZE);
    stalled(&store, &mut disk, async |_| {}).await.unwrap();
    restore_and_compare(&repository(Arc::new(store)), "backup-2", &disk.content, SIZE).await;
}
