//! The one thread that writes: it takes what has queued up, checks each expectation, and commits all at once.
//!
//! Owns the assignment of revisions. Must never acknowledge a write before its commit is on disk.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use redb::{ReadableTable, Table, WriteTransaction};
use serde_json::Value;
use tokio::sync::mpsc;

use super::database::{CURRENT, INDEX, META, OWNED, REVISIONS, TOMBSTONE};
use super::history::Event;
use super::record::{Change, Header, Record};
use super::{Action, Expect, Job, Key, Result, Shared, StoreError, Stored, Write};

/// Writes in one commit: enough that the cost of a sync is shared, few enough that nobody waits long.
const BATCH: usize = 256;

pub(super) fn run(shared: &Shared, mut queue: mpsc::Receiver<Job>) {
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(first) = queue.blocking_recv() {
        batch.push(first);
        while batch.len() < BATCH
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        commit(shared, &mut batch);
    }
}

/// What became of one write of a batch.
struct Outcome {
    stored: Stored,
    change: Change,
    previous: Option<Bytes>,
}

fn commit(shared: &Shared, batch: &mut Vec<Job>) {
    let (writes, answers): (Vec<_>, Vec<_>) = batch.drain(..).map(|job| (job.write, job.done)).unzip();
    let before = *shared.revision.borrow();
    let mut outcomes = Vec::with_capacity(writes.len());
    let result = room(shared, &writes).and_then(|()| {
        shared.handle.write(|txn| {
            let mut tables = Tables::open(txn)?;
            let mut revision = before;
            for write in writes {
                let outcome = tables.apply(write, revision + 1)?;
                revision += u64::from(outcome.is_ok());
                outcomes.push(outcome);
            }
            tables.finish(txn, revision)?;
            Ok(revision)
        })
    });
    let after = result.or_else(|error| settle(shared, error, before, &outcomes));
    match after {
        Ok(revision) => publish(shared, outcomes, answers, revision),
        Err(error) => {
            for answer in answers {
                answer.send(Err(error.clone())).ok();
            }
        }
    }
}

/// After a failed commit only the file knows whether it took place: opens it anew and looks.
fn settle(
    shared: &Shared,
    error: StoreError,
    before: u64,
    outcomes: &[std::result::Result<Outcome, StoreError>],
) -> Result<u64> {
    if matches!(error, StoreError::Full { .. }) && outcomes.is_empty() {
        return Err(error);
    }
    tracing::error!(%error, "a commit failed; opening the database anew");
    if let Err(reopen) = shared.handle.reopen() {
        tracing::error!(error = %reopen, "the database cannot be opened; the next request tries again");
        return Err(error);
    }
    let wanted = before + outcomes.iter().filter(|o| o.is_ok()).count() as u64;
    match shared.handle.positions() {
        Ok((current, _)) if current == wanted && wanted > before => Ok(wanted),
        _ => Err(error),
    }
}

/// Refuses before the disk is full: a database needs some room even to delete.
fn room(shared: &Shared, writes: &[Write]) -> Result<()> {
    let Ok(stat) = rustix::fs::statvfs(&shared.options.path) else { return Ok(()) };
    let free = stat.f_bavail * stat.f_frsize;
    let frees_only = writes.iter().all(|w| matches!(w.action, Action::Delete(_)));
    let reserve = if frees_only { shared.options.reserve_bytes / 2 } else { shared.options.reserve_bytes };
    if free < reserve {
        return Err(StoreError::Full {
            path: shared.path(),
            detail: format!("{free} bytes are free, {reserve} are kept in reserve"),
        });
    }
    Ok(())
}

fn publish(
    shared: &Shared,
    outcomes: Vec<std::result::Result<Outcome, StoreError>>,
    answers: Vec<tokio::sync::oneshot::Sender<Result<Stored>>>,
    revision: u64,
) {
    shared.commits.fetch_add(1, Ordering::Relaxed);
    shared.ring.push(outcomes.iter().flatten().map(|done| Event {
        revision: done.stored.revision,
        change: done.change,
        key: done.stored.key.clone(),
        json: done.stored.json.clone(),
        previous: done.previous.clone(),
    }));
    shared.revision.send_replace(revision);
    for (outcome, answer) in outcomes.into_iter().zip(answers) {
        // A caller that went away does not need its answer.
        answer.send(outcome.map(|done| done.stored)).ok();
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
    fn apply(
        &mut self,
        write: Write,
        revision: u64,
    ) -> std::result::Result<std::result::Result<Outcome, StoreError>, redb::Error> {
        let Write { key, expect, action, previous } = write;
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
        let (change, mut object) = match (action, current) {
            (Action::Put(object), None) => (Change::Created, object),
            (Action::Put(object), Some(_)) => (Change::Updated, object),
            (Action::Delete(object), _) => (Change::Deleted, object),
        };
        object["metadata"]["resourceVersion"] = Value::String(revision.to_string());
        let json = Bytes::from(object.to_string());
        let owners = owner_uids(&object);
        self.reindex_owners(&key, current, if change == Change::Deleted { &[] } else { &owners })?;
        let follows = newest.map_or(0, |r| r & !TOMBSTONE);
        let bytes = Record::encode(change, follows, !owners.is_empty(), &key, &json);
        self.revisions.insert(revision, bytes.as_slice())?;
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
                Some(head) if head.owned => serde_json::from_slice::<Value>(head.json)
                    .map(|object| owner_uids(&object))
                    .unwrap_or_default(),
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

fn owner_uids(object: &Value) -> Vec<String> {
    let Some(references) = object.pointer("/metadata/ownerReferences").and_then(Value::as_array) else {
        return Vec::new();
    };
    references.iter().filter_map(|r| r["uid"].as_str()).map(str::to_string).collect()
}
