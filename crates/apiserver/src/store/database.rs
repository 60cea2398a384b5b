//! The database file: opening it, its tables, and opening it again after an I/O error.
//!
//! Owns the redb handle. Must never decide what is written.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use redb::{Database, DatabaseError, ReadableDatabase, TableDefinition};

use super::{Options, Result, StoreError};

/// revision → record
pub(super) const REVISIONS: TableDefinition<u64, &[u8]> = TableDefinition::new("revisions");
/// key → newest revision; `TOMBSTONE` is set when that revision deleted the key
pub(super) const INDEX: TableDefinition<&str, u64> = TableDefinition::new("index");
/// `<owner uid>/<key of the dependent>`
pub(super) const OWNED: TableDefinition<&str, ()> = TableDefinition::new("owned");
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

pub(super) const TOMBSTONE: u64 = 1 << 63;

pub(super) const CURRENT: &str = "revision";
pub(super) const COMPACTED: &str = "compacted";
const FORMAT: &str = "format";
const FORMAT_VERSION: u64 = 1;

/// Opens the file. The flag tells whether it may be made: a file that vanished under a running store must not
/// come back empty.
pub(super) type Opener = Box<dyn Fn(MayCreate) -> std::result::Result<Database, DatabaseError> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MayCreate {
    Yes,
    No,
}

/// A database that can be opened anew in place: after an I/O error redb refuses all further work, and the
/// last commit that reached the disk is the truth.
pub(super) struct Handle {
    slot: RwLock<Slot>,
    /// Set by an I/O error; cleared when the file has been opened anew.
    failed: AtomicBool,
    opener: Opener,
    path: String,
}

enum Slot {
    Open(Database),
    /// Opening anew has failed, for this reason; the next use tries once more.
    Down(StoreError),
    Closed,
}

impl Slot {
    fn database(&self) -> Result<&Database> {
        match self {
            Self::Open(database) => Ok(database),
            Self::Down(why) => Err(why.clone()),
            Self::Closed => Err(StoreError::Closed),
        }
    }
}

/// Opens the file at the configured path, readable by its owner only: it holds secrets.
pub(super) fn file_opener(options: &Options) -> Opener {
    let path = options.path.clone();
    let cache = options.cache_bytes;
    Box::new(move |create| {
        if create == MayCreate::Yes && !path.exists() {
            make(&path)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        if create == MayCreate::No {
            // After a failed sync the kernel may show pages that never reached the disk.
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                .map_err(std::io::Error::from)?;
        }
        Database::builder().set_cache_size(cache).create_file(file)
    })
}

/// Makes an empty database under another name first: one that is half made could not be opened.
fn make(path: &Path) -> std::result::Result<(), DatabaseError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    drop(Database::builder().create_file(file)?);
    std::fs::rename(&unfinished, path)?;
    // The name of a new file is durable only when its directory is.
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(File::open(parent)?.sync_all()?)
}

impl Handle {
    pub fn open(path: String, opener: Opener) -> Result<Self> {
        let database = opener(MayCreate::Yes).map_err(|e| open_error(&path, &e))?;
        let slot = RwLock::new(Slot::Open(database));
        let handle = Self { slot, failed: AtomicBool::new(false), opener, path };
        handle.prepare()?;
        Ok(handle)
    }

    /// Makes the tables of a new database and refuses one of a later format.
    fn prepare(&self) -> Result<()> {
        let found = self.read(|txn| match txn.open_table(META) {
            Ok(meta) => Ok(meta.get(FORMAT)?.map(|v| v.value())),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            Err(e) => Err(e.into()),
        })?;
        match found {
            Some(FORMAT_VERSION) => Ok(()),
            Some(other) => Err(StoreError::Broken {
                path: self.path.clone(),
                detail: format!(
                    "its format is {other}, this program reads {FORMAT_VERSION}; use the version of granary that wrote it"
                ),
            }),
            None => self
                .write(|txn| {
                    txn.open_table(REVISIONS)?;
                    txn.open_table(INDEX)?;
                    txn.open_table(OWNED)?;
                    txn.open_table(META)?.insert(FORMAT, FORMAT_VERSION)?;
                    Ok(Some(()))
                })
                .map(|_| ()),
        }
    }

    /// The newest and the compacted revision.
    pub fn positions(&self) -> Result<(u64, u64)> {
        self.read(|txn| {
            let meta = txn.open_table(META)?;
            let get = |name| -> std::result::Result<u64, redb::Error> {
                Ok(meta.get(name)?.map_or(0, |v| v.value()))
            };
            Ok((get(CURRENT)?, get(COMPACTED)?))
        })
    }

    /// Runs `body` in a read transaction. `body` must not keep the transaction: an open reader would keep the
    /// file from being opened anew.
    pub fn read<T>(
        &self,
        body: impl FnOnce(&redb::ReadTransaction) -> std::result::Result<T, redb::Error>,
    ) -> Result<T> {
        let slot = self.slot.read();
        let database = slot.database()?;
        let attempt = || {
            let txn = database.begin_read()?;
            body(&txn)
        };
        attempt().map_err(|e| self.explain(&e))
    }

    /// Runs `body` in a write transaction and commits it durably; changes nothing when `body` gives `None`.
    pub fn write<T>(
        &self,
        body: impl FnOnce(&redb::WriteTransaction) -> std::result::Result<Option<T>, redb::Error>,
    ) -> Result<Option<T>> {
        let slot = self.slot.read();
        let database = slot.database()?;
        let attempt = || {
            let txn = database.begin_write()?;
            match body(&txn)? {
                Some(out) => {
                    txn.commit()?;
                    Ok(Some(out))
                }
                None => {
                    txn.abort()?;
                    Ok(None)
                }
            }
        };
        attempt().map_err(|e: redb::Error| self.explain(&e))
    }

    /// Whether the file has to be opened anew before it can be used.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Closes and opens the file, so that the next transaction sees what is really on disk. It must not hold
    /// less than `acknowledged`.
    pub fn reopen(&self, acknowledged: u64) -> Result<u64> {
        let mut slot = self.slot.write();
        if matches!(*slot, Slot::Closed) {
            return Err(StoreError::Closed);
        }
        // The lock on the file goes with the old database, so it has to go first.
        *slot = Slot::Down(StoreError::Closed);
        let opened = (self.opener)(MayCreate::No).map_err(|e| open_error(&self.path, &e));
        let checked = opened.and_then(|database| match newest_revision(&database) {
            Ok(revision) if revision >= acknowledged => Ok((database, revision)),
            Ok(revision) => Err(StoreError::Broken {
                path: self.path.clone(),
                detail: format!("it ends at revision {revision}, but {acknowledged} was written to it"),
            }),
            Err(error) => Err(self.explain(&error)),
        });
        match checked {
            Ok((database, revision)) => {
                *slot = Slot::Open(database);
                self.failed.store(false, Ordering::Release);
                Ok(revision)
            }
            Err(error) => {
                *slot = Slot::Down(error.clone());
                Err(error)
            }
        }
    }

    /// Gives unused space of the file back to the file system. Everybody waits meanwhile.
    pub fn shrink(&self) -> Result<()> {
        let mut slot = self.slot.write();
        let Slot::Open(database) = &mut *slot else { return Ok(()) };
        match database.compact() {
            Ok(_) => Ok(()),
            Err(redb::CompactionError::Storage(error)) => Err(self.explain(&error.into())),
            Err(other) => Err(StoreError::Broken { path: self.path.clone(), detail: other.to_string() }),
        }
    }

    /// Ends all use of the file; a closed file needs no repair at the next start.
    pub fn close(&self) {
        *self.slot.write() = Slot::Closed;
    }

    fn explain(&self, error: &redb::Error) -> StoreError {
        if matches!(error, redb::Error::Io(_) | redb::Error::PreviousIo) {
            self.failed.store(true, Ordering::Release);
        }
        match error {
            redb::Error::Io(io) if is_full(io) => {
                StoreError::Full { path: self.path.clone(), detail: io.to_string() }
            }
            other => StoreError::Broken { path: self.path.clone(), detail: other.to_string() },
        }
    }
}

fn newest_revision(database: &Database) -> std::result::Result<u64, redb::Error> {
    let meta = database.begin_read()?.open_table(META)?;
    Ok(meta.get(CURRENT)?.map_or(0, |v| v.value()))
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

fn open_error(path: &str, error: &DatabaseError) -> StoreError {
    let path = path.to_string();
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { path },
        DatabaseError::Storage(redb::StorageError::Io(io)) if is_full(io) => {
            StoreError::Full { path, detail: io.to_string() }
        }
        other => StoreError::Broken { path, detail: other.to_string() },
    }
}
