//! A store that counts what is asked of another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use granary_backup::{Entry, Listing, Store, StoreError};

#[derive(Clone)]
pub struct CountingStore {
    inner: Arc<dyn Store>,
    pub counts: Arc<Counts>,
}

#[derive(Debug, Default)]
pub struct Counts {
    pub block_reads: AtomicU64,
    pub block_looks: AtomicU64,
    pub block_writes: AtomicU64,
    pub block_deletes: AtomicU64,
    pub backup_reads: AtomicU64,
    pub walks: AtomicU64,
}

impl CountingStore {
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, counts: Arc::default() }
    }

    /// Reads, looks, writes and deletions of blocks since the last call.
    pub fn take_blocks(&self) -> [u64; 4] {
        let counts = &self.counts;
        [&counts.block_reads, &counts.block_looks, &counts.block_writes, &counts.block_deletes]
            .map(|count| count.swap(0, Ordering::Relaxed))
    }

    /// Backup documents read, and listings of all blocks, since the last call.
    pub fn take_scans(&self) -> [u64; 2] {
        [&self.counts.backup_reads, &self.counts.walks].map(|count| count.swap(0, Ordering::Relaxed))
    }
}

fn count(counter: &AtomicU64, key: &str, part: &str) {
    if key.contains(part) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Store for CountingStore {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        count(&self.counts.block_reads, key, "/blocks/");
        count(&self.counts.backup_reads, key, "/backups/");
        self.inner.get(key).await
    }

    async fn head(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        count(&self.counts.block_looks, key, "/blocks/");
        self.inner.head(key).await
    }

    async fn put(&self, key: &str, data: Bytes) -> Result<(), StoreError> {
        count(&self.counts.block_writes, key, "/blocks/");
        self.inner.put(key, data).await
    }

    async fn put_if_absent(&self, key: &str, data: Bytes) -> Result<bool, StoreError> {
        count(&self.counts.block_writes, key, "/blocks/");
        self.inner.put_if_absent(key, data).await
    }

    async fn list(&self, directory: &str) -> Result<Listing, StoreError> {
        self.inner.list(directory).await
    }

    fn walk(&self, directory: &str) -> BoxStream<'_, Result<Entry, StoreError>> {
        self.counts.walks.fetch_add(1, Ordering::Relaxed);
        self.inner.walk(directory)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        count(&self.counts.block_deletes, key, "/blocks/");
        self.inner.delete(key).await
    }
}
