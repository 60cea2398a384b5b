//! The database file: opening it, its tables, and opening it again after an I/O error.
//!
//! Owns the redb handle. Must never decide what is written.

use std::fs::File;

use parking_lot::{RwLock, RwLockReadGuard};
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

type Opener = Box<dyn Fn() -> std::result::Result<Database, DatabaseError> + Send + Sync>;

/// A database that can be opened anew in place: after an I/O error redb refuses all further work, and the
/// last commit that reached the disk is the truth.
pub(super) struct Handle {
    /// Empty only while opening anew has failed; the next use tries once more.
    database: RwLock<Option<Database>>,
    opener: Opener,
    path: String,
}

impl Handle {
    pub fn open(options: &Options) -> Result<Self> {
        let path = options.path.clone();
        let cache = options.cache_bytes;
        let handle = Self::with_opener(
            options.path.display().to_string(),
            Box::new(move || {
                let fresh = !path.exists();
                let database = Database::builder().set_cache_size(cache).create(&path)?;
                if fresh && let Some(parent) = path.parent() {
                    // The name of a new file is durable only when its directory is.
                    File::open(parent)?.sync_all()?;
                }
                Ok(database)
            }),
        )?;
        Ok(handle)
    }

    pub fn with_opener(path: String, opener: Opener) -> Result<Self> {
        let database = opener().map_err(|e| open_error(&path, &e))?;
        let handle = Self { database: RwLock::new(Some(database)), opener, path };
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
            None => self.write(|txn| {
                txn.open_table(REVISIONS)?;
                txn.open_table(INDEX)?;
                txn.open_table(OWNED)?;
                txn.open_table(META)?.insert(FORMAT, FORMAT_VERSION)?;
                Ok(())
            }),
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
        let guard = self.usable()?;
        let database = guard.as_ref().ok_or(StoreError::Closed)?;
        let attempt = || {
            let txn = database.begin_read()?;
            body(&txn)
        };
        attempt().map_err(|e| self.explain(&e))
    }

    /// Runs `body` in a write transaction and commits it durably.
    pub fn write<T>(
        &self,
        body: impl FnOnce(&redb::WriteTransaction) -> std::result::Result<T, redb::Error>,
    ) -> Result<T> {
        let guard = self.usable()?;
        let database = guard.as_ref().ok_or(StoreError::Closed)?;
        let attempt = || {
            let txn = database.begin_write()?;
            let out = body(&txn)?;
            txn.commit()?;
            Ok(out)
        };
        attempt().map_err(|e: redb::Error| self.explain(&e))
    }

    /// Closes and opens the file, so that the next transaction sees what is really on disk.
    pub fn reopen(&self) -> Result<()> {
        let mut slot = self.database.write();
        *slot = None;
        *slot = Some((self.opener)().map_err(|e| open_error(&self.path, &e))?);
        Ok(())
    }

    fn usable(&self) -> Result<RwLockReadGuard<'_, Option<Database>>> {
        let guard = self.database.read();
        if guard.is_some() {
            return Ok(guard);
        }
        drop(guard);
        self.reopen()?;
        Ok(self.database.read())
    }

    fn explain(&self, error: &redb::Error) -> StoreError {
        match error {
            redb::Error::Io(io) if is_full(io) => {
                StoreError::Full { path: self.path.clone(), detail: io.to_string() }
            }
            other => StoreError::Broken { path: self.path.clone(), detail: other.to_string() },
        }
    }
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
