//! What can go wrong in the store, in terms its callers act on.

/// Why a read or a write did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    #[error("the object exists already")]
    Exists,
    #[error("the object does not exist")]
    Missing,
    /// The object is there, but at another revision than the writer had seen.
    #[error("the object is at revision {current}")]
    Moved { current: u64 },
    #[error("revision {requested} is compacted; the oldest that can be read is {oldest}")]
    Compacted { requested: u64, oldest: u64 },
    #[error("revision {requested} is ahead of the store, which is at {current}")]
    Ahead { requested: u64, current: u64 },
    #[error("the object has {bytes} bytes, {limit} are allowed; keep large data in a volume")]
    TooLarge { bytes: usize, limit: usize },
    #[error("the disk under {path} is full: {detail}; free some space, nothing was lost")]
    Full { path: String, detail: String },
    #[error("the database {path} cannot be used: {detail}")]
    Broken { path: String, detail: String },
    #[error("the database {path} is in use by another process")]
    InUse { path: String },
    #[error("the store is closed")]
    Closed,
}
