//! The one thread that writes: it takes what has queued up, checks each expectation, and commits all at once.
//!
//! Owns the assignment of revisions. Must never acknowledge a write before its commit is on disk.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use redb::{ReadableTable, Table, WriteTransaction};
use tokio::sync::mpsc;

use super::database::{CURRENT, INDEX, META, OWNED, REVISIONS, TOMBSTONE};
use super::document::owner_uids;
use super::history::Event;
use super::record::{Change, Header, Record};
use super::{Answer, Expect, Job, Key, Prepared, Result, Shared, StoreError, Stored};

/// Writes in one commit: enough that the cost of a sync is shared, few enough that nobody waits long.
const BATCH: usize = 256;

pub(super) fn run(shared: &Shared, mut queue: mpsc::Receiver<Job>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut closing = None;
    while closing.is_none()
        && let Some(first) = queue.blocking_recv()
    {
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Job::Write(write, answer) => batch.push((write, answer)),
                Job::Close(done) => closing = Some(done),
            }
            next = if closing.is_none() && batch.len() < BATCH { queue.try_recv().ok() } else { None };
        }
        if !batch.is_empty() {
            commit(shared, &mut batch);
        }
    }
    shared.handle.close();
    if let Some(done) = closing {
        done.send(()).ok();
    }
}

/// What became of one write of a batch.
struct Outcome {
    stored: Stored,
    change: Change,
    previous: Option<Bytes>,
}

type Verdict = std::result::Result<Outcome, StoreError>;

fn commit(shared: &Shared, batch: &mut Vec<(Prepared, Answer)>) {
    let (writes, answers): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
    let result = match shared.heal() {
        Ok(()) => try_commit(shared, writes),
        Err(error) => Err(error),
    };
    match result {
        Ok(verdicts) => {
            for (verdict, answer) in verdicts.into_iter().zip(answers) {
                // A caller that went away does not need its answer.
                answer.send(verdict.map(|done| done.stored)).ok();
            }
        }
        Err(error) => {
            for answer in answers {
                answer.send(Err(error.clone())).ok();
            }
        }
    }
}

/// Applies the writes that may be applied and makes them durable, or none of them.
fn try_commit(shared: &Shared, writes: Vec<Prepared>) -> Result<Vec<Verdict>> {
    let before = *shared.revision.borrow();
    let mut room = Room::of(shared);
    let mut verdicts = Vec::with_capacity(writes.len());
    let result = shared.handle.write(|txn| {
        let mut tables = Tables::open(txn)?;
        let mut revision = before;
        for write in writes {
            let verdict = match room.admit(&write) {
                Ok(()) => tables.apply(write, revision + 1)?,
                Err(full) => Err(full),
            };
            if let Ok(outcome) = &verdict {
                revision += 1;
                room.take(outcome.stored.json.len());
            }
            verdicts.push(verdict);
        }
        tables.finish(txn, revision)?;
        Ok((revision > before).then_some(revision))
    });
    match result {
        Ok(Some(revision)) => publish(shared, &verdicts, revision),
        Ok(None) => {}
        Err(error) => settle(shared, error, before, &verdicts)?,
    }
    Ok(verdicts)
}

/// After a failed commit only the file knows whether it took place.
fn settle(shared: &Shared, error: StoreError, before: u64, verdicts: &[Verdict]) -> Result<()> {
    tracing::error!(%error, "a commit failed");
    if let Err(reopen) = shared.heal() {
        tracing::error!(error = %reopen, "the database cannot be opened; the next request tries again");
        return Err(error);
    }
    let wanted = before + verdicts.iter().filter(|v| v.is_ok()).count() as u64;
    let on_disk = *shared.revision.borrow();
    if on_disk == wanted && wanted > before { Ok(()) } else { Err(error) }
}

fn publish(shared: &Shared, verdicts: &[Verdict], revision: u64) {
    shared.commits.fetch_add(1, Ordering::Relaxed);
    let events = verdicts.iter().flatten().map(|done| Event {
        revision: done.stored.revision,
        change: done.change,
        key: done.stored.key.clone(),
        json: done.stored.json.clone(),
        previous: done.previous.clone(),
    });
    shared.ring.push(events, || shared.revision.send_replace(revision));
}

/// Refuses before the disk is full: a database needs some room even to delete.
pub(super) struct Room<'a> {
    shared: &'a Shared,
    /// Bytes that the file system still has; absent where it does not tell.
    free: Option<u64>,
}

impl<'a> Room<'a> {
    pub fn of(shared: &'a Shared) -> Self {
        let free = rustix::fs::statvfs(&shared.options.path).ok().map(|s| s.f_bavail * s.f_frsize);
        Self { shared, free }
    }

    /// Whether new objects are refused.
    pub fn is_short(&self) -> bool {
        self.free.is_some_and(|free| free < self.shared.options.reserve_bytes)
    }

    /// Deletions may use half of what is kept in reserve, or nothing could ever be freed.
    fn admit(&self, write: &Prepared) -> Result<()> {
        let Some(free) = self.free else { return Ok(()) };
        let reserve = self.shared.options.reserve_bytes / if write.deletes { 2 } else { 1 };
        if free >= reserve {
            return Ok(());
        }
        self.shared.pressure.notify_one();
        Err(StoreError::Full {
            path: self.shared.path(),
            detail: format!("{free} bytes are free, {reserve} are kept in reserve"),
        })
    }

    /// Accounts for what a write of this batch will use: its pages and the copies on the way to them.
    fn take(&mut self, bytes: usize) {
        self.free = self.free.map(|free| free.saturating_sub(2 * bytes as u64));
    }
}

struct Tables<'txn> {
    revisions: Table<'txn, u64, &'static [u8]>,
    index: Table<'txn, &'static str, u64>,
    owned: Table<'txn, &'static str, ()>,
}

impl<'txn> Tables<'txn> {
    fn open(txn: &'txn WriteTransaction) -> std::result::Result<Self, redb::Error> {
        Ok(Self {
            revisions: txn.open_table(REVISIONS)?,
            index: txn.open_table(INDEX)?,
            owned: txn.open_table(OWNED)?,
        })
    }

    /// The outer error ends the transaction, the inner one refuses this write only.
    fn apply(&mut self, write: Prepared, revision: u64) -> std::result::Result<Verdict, redb::Error> {
        let Prepared { key, expect, document, deletes, previous } = write;
        let newest = self.index.get(key.as_str())?.map(|v| v.value());
        let current = newest.filter(|r| r & TOMBSTONE == 0);
        match (expect, current) {
            (Expect::Absent, Some(_)) => return Ok(Err(StoreError::Exists)),
            (Expect::Revision(_), None) => return Ok(Err(StoreError::Missing)),
            (Expect::Revision(seen), Some(current)) if seen != current => {
                return Ok(Err(StoreError::Moved { current }));
            }
            _ => {}
        }
        let change = match current {
            _ if deletes => Change::Deleted,
            None => Change::Created,
            Some(_) => Change::Updated,
        };
        let owners: &[String] = if deletes { &[] } else { &document.owners };
        self.reindex_owners(&key, current, owners)?;
        let follows = newest.map_or(0, |r| r & !TOMBSTONE);
        let (bytes, json) = Record::encode(change, follows, &key, &document, revision);
        self.revisions.insert(revision, &*bytes)?;
        let mark = if change == Change::Deleted { TOMBSTONE } else { 0 };
        self.index.insert(key.as_str(), revision | mark)?;
        let previous = if change == Change::Created { None } else { previous };
        Ok(Ok(Outcome { stored: Stored { key, revision, json }, change, previous }))
    }

    /// Keeps `owned` equal to the owner references of live objects.
    fn reindex_owners(
        &mut self,
        key: &Key,
        current: Option<u64>,
        owners: &[String],
    ) -> std::result::Result<(), redb::Error> {
        let before = match current {
            Some(at) => match self.revisions.get(at)?.as_ref().and_then(|b| Header::decode(b.value())) {
                Some(head) if head.owned => {
                    serde_json::from_slice(head.json).map(|object| owner_uids(&object)).unwrap_or_default()
                }
                _ => Vec::new(),
            },
            None => Vec::new(),
        };
        for gone in before.iter().filter(|uid| !owners.contains(uid)) {
            self.owned.remove(format!("{gone}/{key}").as_str())?;
        }
        for new in owners.iter().filter(|uid| !before.contains(uid)) {
            self.owned.insert(format!("{new}/{key}").as_str(), ())?;
        }
        Ok(())
    }

    fn finish(self, txn: &WriteTransaction, revision: u64) -> std::result::Result<(), redb::Error> {
        drop(self);
        txn.open_table(META)?.insert(CURRENT, revision)?;
        Ok(())
    }
}
