//! The store: every object of the API in one crash-safe file, with one global revision.
//!
//! Owns durability, ordering and history. Must never know a kind, a schema or HTTP.
//!
//! Layout, after etcd's idea: `revisions` holds every change under its revision, `index` names the newest
//! revision of each key. A value is written once, at the end of an ordered table; a list reads the index; a
//! watch reads `revisions` from where it left off. Old revisions go when they are superseded and no longer
//! within the history that watchers may resume from.

mod database;
mod document;
mod error;
mod history;
mod key;
mod read;
mod record;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use database::{Handle, Opener};
use document::Document;
pub use error::StoreError;
pub use history::Event;
use history::{Horizon, Ring};
pub use key::{Key, Prefix};
pub use read::{Page, Snapshot};
pub use record::Change;

type Result<T> = std::result::Result<T, StoreError>;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    pub path: PathBuf,
    /// How long a superseded revision can still be watched from.
    pub history: Duration,
    /// The most superseded revisions that are kept, whatever their age.
    pub history_limit: u64,
    /// Memory for pages of the database.
    pub cache_bytes: usize,
    /// Space that must remain free on the disk for a write to be accepted, so that the database itself never
    /// meets a full disk in the middle of a commit.
    pub reserve_bytes: u64,
}

impl Options {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            history: Duration::from_secs(5 * 60),
            history_limit: 100_000,
            cache_bytes: 16 << 20,
            reserve_bytes: 8 << 20,
        }
    }
}

/// An object as it lies in the store.
#[derive(Debug, Clone)]
pub struct Stored {
    pub key: Key,
    pub revision: u64,
    /// The object, with `metadata.resourceVersion` set to `revision`.
    pub json: Bytes,
}

/// One change to make, if the key is as the writer saw it.
#[derive(Debug)]
pub struct Write {
    pub key: Key,
    pub expect: Expect,
    pub action: Action,
    /// The object that this write replaces or deletes, for watchers whose selector it leaves.
    pub previous: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Revision(u64),
}

#[derive(Debug)]
pub enum Action {
    Put(Value),
    /// Carries the last state of the object, which watchers see in the deletion event.
    Delete(Value),
}

/// The open store. Clones share it. [`Store::close`] closes the file in an orderly way; without it the next
/// start has to look through the whole file.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    jobs: mpsc::Sender<Job>,
}

struct Shared {
    handle: Handle,
    ring: Ring,
    horizon: Horizon,
    /// The newest revision that is on disk.
    revision: watch::Sender<u64>,
    options: Options,
    commits: AtomicU64,
    /// Held by the one who opens the file anew.
    healing: Mutex<()>,
    /// Told when a write was refused for want of space.
    pressure: Notify,
    /// Whether something was dropped since the file was last shrunk.
    shrinkable: AtomicBool,
}

/// A write as the writer takes it: nothing left to work out.
struct Prepared {
    key: Key,
    expect: Expect,
    document: Document,
    deletes: bool,
    previous: Option<Bytes>,
}

impl Prepared {
    fn of(write: Write) -> Result<Self> {
        let Write { key, expect, action, previous } = write;
        let (object, deletes) = match action {
            Action::Put(object) => (object, false),
            Action::Delete(object) => (object, true),
        };
        let document = Document::of(&object);
        // What is there already can always be deleted.
        if !deletes && document.len() > MAX_OBJECT {
            return Err(StoreError::TooLarge { bytes: document.len(), limit: MAX_OBJECT });
        }
        Ok(Self { key, expect, document, deletes, previous })
    }
}

enum Job {
    Write(Prepared, Answer),
    /// Everything queued before it is done, nothing after it.
    Close(oneshot::Sender<()>),
}

type Answer = oneshot::Sender<Result<Stored>>;

/// The largest object that is kept: etcd's limit, so that what fits here fits a cluster.
pub const MAX_OBJECT: usize = 3 << 19;

/// Writes that may wait for the commit in front of them; more callers than this wait their turn.
const QUEUE: usize = 1024;

impl Store {
    /// Opens or creates the database and starts its writer thread.
    pub fn open(options: Options) -> Result<Self> {
        let opener = database::file_opener(&options);
        Self::open_with(options, opener)
    }

    fn open_with(options: Options, opener: Opener) -> Result<Self> {
        let handle = Handle::open(options.path.display().to_string(), opener)?;
        let (revision, compacted) = handle.positions()?;
        let shared = Arc::new(Shared {
            handle,
            ring: Ring::new(revision),
            horizon: Horizon::new(compacted),
            revision: watch::Sender::new(revision),
            options,
            commits: AtomicU64::new(0),
            healing: Mutex::new(()),
            pressure: Notify::new(),
            shrinkable: AtomicBool::new(false),
        });
        let (jobs, queue) = mpsc::channel(QUEUE);
        let for_writer = shared.clone();
        std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || or_end(|| writer::run(&for_writer, queue), || std::process::abort()))
            .map_err(|e| StoreError::Broken { path: shared.path(), detail: e.to_string() })?;
        Ok(Self { shared, jobs })
    }

    /// Makes one change durable. When this returns `Ok` the change is on disk.
    pub async fn commit(&self, write: Write) -> Result<Stored> {
        let write = Prepared::of(write)?;
        let (done, answer) = oneshot::channel();
        self.jobs.send(Job::Write(write, done)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Finishes the writes that are queued and closes the file; whatever comes later gets
    /// [`StoreError::Closed`].
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.jobs.send(Job::Close(done)).await.is_ok() {
            closed.await.ok();
        }
    }

    /// The newest durable revision.
    pub fn revision(&self) -> u64 {
        *self.shared.revision.borrow()
    }

    /// Tells when the revision moves on.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.revision.subscribe()
    }

    /// Revisions up to this one can no longer be watched from.
    pub fn compacted(&self) -> u64 {
        self.shared.horizon.compacted()
    }

    /// Commits made since the store was opened; with the number of writes it tells how well they group.
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// Bytes of the database file.
    pub fn file_bytes(&self) -> u64 {
        self.shared.file_bytes()
    }
}

/// Runs the writer. Without it the process could only refuse every write until somebody notices; ended, it is
/// started again and goes on from the last commit.
fn or_end(run: impl FnOnce(), end: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
        tracing::error!(
            "the store's writer panicked and the process ends; nothing that was acknowledged is lost, start it again"
        );
        end();
    }
}

impl Shared {
    fn path(&self) -> String {
        self.options.path.display().to_string()
    }

    fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.options.path).map_or(0, |m| m.len())
    }

    fn read<T>(
        &self,
        body: impl FnOnce(&redb::ReadTransaction) -> std::result::Result<T, redb::Error>,
    ) -> Result<T> {
        self.heal()?;
        self.handle.read(body)
    }

    /// After an I/O error only the file knows which commit was the last: opens it anew and goes on from there.
    fn heal(&self) -> Result<()> {
        if !self.handle.failed() {
            return Ok(());
        }
        let _one_at_a_time = self.healing.lock();
        if !self.handle.failed() {
            return Ok(());
        }
        let known = *self.revision.borrow();
        let found = self.handle.reopen(known)?;
        tracing::warn!(revision = found, "the database was opened anew after an I/O error");
        if found > known {
            // A commit that nobody was told about; watchers find its changes in the database.
            self.ring.restart(found, || self.revision.send_replace(found));
        }
        Ok(())
    }
}
