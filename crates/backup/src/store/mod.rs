//! What a backup needs of a place to keep objects, and the two places there are: a directory and an S3 bucket.
//! Everything above this module is the same for both.

mod directory;
mod open;
mod s3;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use jiff::Timestamp;

pub use directory::DirectoryStore;
pub use open::{OpenError, open};
pub use s3::S3Store;

/// How many deletions of one call are under way at a time.
const PARALLEL_DELETES: usize = 16;

/// An object as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub size: u64,
    /// By the clock of whoever keeps the object.
    pub modified: Timestamp,
    /// Differs when the object has been replaced.
    pub version: String,
}

/// One level of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    pub objects: Vec<Entry>,
    /// Their last part only, without slashes.
    pub directories: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {key} in the backup target")]
pub struct StoreError {
    operation: &'static str,
    key: String,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl StoreError {
    pub fn new(
        operation: &'static str,
        key: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { operation, key: key.into(), source: source.into() }
    }
}

/// A flat space of objects with keys of parts joined by slashes.
///
/// A write is visible at once and as a whole, and survives a crash of either side when it returns.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// `None` if there is no such object.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError>;

    async fn head(&self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// Creates or replaces.
    async fn put(&self, key: &str, data: Bytes) -> Result<(), StoreError>;

    /// `false` if there is one already. Not atomic on servers that know no conditional writes.
    async fn put_if_absent(&self, key: &str, data: Bytes) -> Result<bool, StoreError>;

    /// Objects and directories right below; empty if there is nothing.
    async fn list(&self, directory: &str) -> Result<Listing, StoreError>;

    /// All objects below, however deep, in no particular order.
    fn walk(&self, directory: &str) -> BoxStream<'_, Result<Entry, StoreError>>;

    /// Durably, and successfully also if there is no such object.
    async fn delete(&self, key: &str) -> Result<(), StoreError>;

    /// Many at once. Some may come back after a crash.
    async fn delete_many(&self, keys: Vec<String>) -> Result<(), StoreError> {
        // An array of futures that all borrow self; the stream keeps a few of them under way.
        let deletes = keys.iter().map(|key| self.delete(key)).collect::<Vec<_>>();
        stream::iter(deletes).buffer_unordered(PARALLEL_DELETES).try_collect().await
    }

    /// Removes what interrupted writes below a directory left behind, if there can be such a thing.
    async fn remove_leftovers(&self, _directory: &str) -> Result<u64, StoreError> {
        Ok(0)
    }
}
