//! What watchers read: the newest changes in memory, older ones from the database, and how history ends.
//!
//! Owns the order of events and the compaction horizon. Must never drop a change a watcher may still ask for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use redb::ReadableTable;

use super::database::{COMPACTED, INDEX, META, REVISIONS, TOMBSTONE};
use super::key::{Key, Prefix};
use super::record::{Change, Header, Record};
use super::{Result, Shared, Store, StoreError};

/// One change as a watcher sees it.
#[derive(Debug, Clone)]
pub struct Event {
    pub revision: u64,
    pub change: Change,
    pub key: Key,
    pub json: Bytes,
    /// The object before the change; absent for a creation.
    pub previous: Option<Bytes>,
}

impl Event {
    fn weight(&self) -> usize {
        self.json.len() + self.previous.as_ref().map_or(0, Bytes::len) + 128
    }
}

/// The newest events. A watcher that keeps up never touches the database.
pub(super) struct Ring(Mutex<RingState>);

struct RingState {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// Every event after this revision is in the ring.
    complete_after: u64,
}

/// Enough for a burst of a few thousand small objects while a watcher is busy; beyond it the database serves.
const RING_BYTES: usize = 8 << 20;

impl Ring {
    pub fn new(revision: u64) -> Self {
        Self(Mutex::new(RingState { events: VecDeque::new(), bytes: 0, complete_after: revision }))
    }

    /// Adds the events of a commit. `announce` runs before anybody can see them, so that whoever has seen a
    /// change also finds the store at its revision.
    pub fn push<T>(&self, events: impl IntoIterator<Item = Event>, announce: impl FnOnce() -> T) {
        let mut ring = self.0.lock();
        let complete_after = ring.complete_after;
        for event in events.into_iter().filter(|e| e.revision > complete_after) {
            ring.bytes += event.weight();
            ring.events.push_back(Arc::new(event));
        }
        while ring.bytes > RING_BYTES {
            let Some(old) = ring.events.pop_front() else { break };
            ring.bytes -= old.weight();
            ring.complete_after = old.revision;
        }
        announce();
    }

    /// Forgets everything: events up to `revision` are in the database only.
    pub fn restart<T>(&self, revision: u64, announce: impl FnOnce() -> T) {
        let mut ring = self.0.lock();
        *ring = RingState { events: VecDeque::new(), bytes: 0, complete_after: revision };
        announce();
    }

    /// `None` when the ring does not reach back to `after`.
    fn after(&self, after: u64, prefix: &Prefix, limit: usize) -> Option<(Vec<Arc<Event>>, u64)> {
        let ring = self.0.lock();
        if after < ring.complete_after {
            return None;
        }
        let start = ring.events.partition_point(|e| e.revision <= after);
        let mut cursor = after;
        let mut found = Vec::new();
        for event in ring.events.range(start..) {
            if found.len() == limit {
                break;
            }
            cursor = event.revision;
            if prefix.covers(&event.key) {
                found.push(event.clone());
            }
        }
        Some((found, cursor))
    }

    /// Frees memory that only a burst needed.
    pub fn shrink(&self) {
        let mut ring = self.0.lock();
        let capacity = ring.events.len() * 2;
        ring.events.shrink_to(capacity);
    }
}

/// The line between what is gone and what can still be read, and the lists that hold it back.
pub(super) struct Horizon {
    /// Revisions up to this one may be missing.
    compacted: AtomicU64,
    /// Revisions up to this one have been cleaned up, durably. It trails `compacted` while that goes on.
    cleaned: AtomicU64,
    /// Revisions that a running list still reads at.
    pinned: Mutex<BTreeMap<u64, usize>>,
}

impl Horizon {
    pub fn new(compacted: u64) -> Self {
        let at = || AtomicU64::new(compacted);
        Self { compacted: at(), cleaned: at(), pinned: Mutex::default() }
    }

    pub fn compacted(&self) -> u64 {
        self.compacted.load(Ordering::Acquire)
    }

    /// Holds the horizon at `revision` until [`Horizon::unpin`].
    pub fn pin(&self, revision: u64) -> Result<()> {
        let mut pinned = self.pinned.lock();
        let oldest = self.compacted();
        if revision < oldest {
            return Err(StoreError::Compacted { requested: revision, oldest });
        }
        *pinned.entry(revision).or_default() += 1;
        Ok(())
    }

    pub fn unpin(&self, revision: u64) {
        let mut pinned = self.pinned.lock();
        if let Some(count) = pinned.get_mut(&revision) {
            *count -= 1;
            if *count == 0 {
                pinned.remove(&revision);
            }
        }
    }

    /// Moves on towards `target` by at most `step`, as far as the pins allow; gives what is to be cleaned up,
    /// which includes what an earlier attempt did not manage.
    fn advance(&self, target: u64, step: u64) -> Option<(u64, u64)> {
        let pinned = self.pinned.lock();
        let from = self.cleaned.load(Ordering::Acquire);
        let free = pinned.keys().next().copied().unwrap_or(u64::MAX);
        let to = target.min(from + step).min(free).max(self.compacted());
        (to > from).then(|| {
            self.compacted.store(to, Ordering::Release);
            (from, to)
        })
    }

    fn clean_up_to(&self, revision: u64) {
        self.cleaned.store(revision, Ordering::Release);
    }
}

/// Events read from the database in one go.
const SCAN: usize = 512;

impl Store {
    /// The changes under `prefix` after `after`, oldest first, at most `limit`, and the revision to ask from next.
    /// An answer without events but with a cursor short of [`Store::revision`] means: ask again.
    pub fn events_after(&self, after: u64, prefix: &Prefix, limit: usize) -> Result<(Vec<Arc<Event>>, u64)> {
        if let Some(found) = self.shared.ring.after(after, prefix, limit) {
            return Ok(found);
        }
        let oldest = self.compacted();
        if after < oldest {
            return Err(StoreError::Compacted { requested: after, oldest });
        }
        self.scan_events(after, prefix, limit.min(SCAN))
    }

    fn scan_events(&self, after: u64, prefix: &Prefix, limit: usize) -> Result<(Vec<Arc<Event>>, u64)> {
        let durable = self.revision();
        let found = self.shared.read(|txn| {
            let revisions = txn.open_table(REVISIONS)?;
            let mut cursor = after;
            let mut found = Vec::new();
            for entry in revisions.range(after + 1..=durable)?.take(SCAN * 8) {
                let (revision, bytes) = entry?;
                if found.len() == limit {
                    return Ok((found, cursor));
                }
                cursor = revision.value();
                let Some(record) = Record::decode(bytes.value()) else { continue };
                if !prefix.covers(&record.key) {
                    continue;
                }
                let previous = match (record.change, record.previous) {
                    (Change::Created, _) | (_, 0) => None,
                    (_, at) => revisions
                        .get(at)?
                        .and_then(|b| Header::decode(b.value()).map(|h| Bytes::copy_from_slice(h.json))),
                };
                found.push(Arc::new(Event {
                    revision: cursor,
                    change: record.change,
                    key: record.key,
                    json: record.json,
                    previous,
                }));
            }
            Ok((found, cursor))
        })?;
        // A compaction may have run between the check and the read.
        let oldest = self.compacted();
        if after < oldest {
            return Err(StoreError::Compacted { requested: after, oldest });
        }
        Ok(found)
    }
}

/// Superseded revisions dropped in one transaction, so that writers wait only briefly.
const STEP: u64 = 2_000;

impl Store {
    /// Lets history end: keeps what is younger than the configured age and within the configured number of
    /// revisions. Runs until the store's owner drops the future.
    pub async fn maintain(&self) {
        let options = &self.shared.options;
        let mut marks: VecDeque<(tokio::time::Instant, u64)> = VecDeque::new();
        let mut tick = tokio::time::interval(options.history.div_f64(5.0).max(Duration::from_millis(100)));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let now = tick.tick().await;
            let current = self.revision();
            marks.push_back((now, current));
            let mut target = current.saturating_sub(options.history_limit);
            while let Some((since, revision)) = marks.front().copied()
                && now.duration_since(since) >= options.history
            {
                target = target.max(revision);
                marks.pop_front();
            }
            let shared = self.shared.clone();
            let work = tokio::task::spawn_blocking(move || {
                shared.ring.shrink();
                let mut freed = false;
                while shared.compact(target)? {
                    freed = true;
                }
                if freed && super::writer::Room::of(&shared).is_short() {
                    shared.handle.shrink()?;
                }
                Ok::<_, StoreError>(())
            });
            match work.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "history could not be compacted; trying again later")
                }
                Err(error) => tracing::error!(%error, "compaction ended unexpectedly"),
            }
        }
    }
}

impl Shared {
    /// Drops what is superseded at or before `target`, a step at a time; tells whether there was anything to do.
    pub(super) fn compact(&self, target: u64) -> Result<bool> {
        // Watchers are turned away before anything is gone.
        let Some((from, to)) = self.horizon.advance(target, STEP) else { return Ok(false) };
        self.heal()?;
        self.handle.write(|txn| {
            let mut revisions = txn.open_table(REVISIONS)?;
            let mut index = txn.open_table(INDEX)?;
            let mut doomed = Vec::new();
            for entry in revisions.range(from + 1..=to)? {
                let (revision, bytes) = entry?;
                let Some(head) = Header::decode(bytes.value()) else { continue };
                if head.previous != 0 {
                    doomed.push((head.previous, None));
                }
                if head.change == Change::Deleted {
                    doomed.push((revision.value(), Some(head.key.to_string())));
                }
            }
            for (revision, deleted_key) in doomed {
                revisions.remove(revision)?;
                if let Some(key) = deleted_key {
                    let still_deleted =
                        index.get(key.as_str())?.is_some_and(|r| r.value() == revision | TOMBSTONE);
                    if still_deleted {
                        index.remove(key.as_str())?;
                    }
                }
            }
            txn.open_table(META)?.insert(COMPACTED, to)?;
            Ok(Some(()))
        })?;
        self.horizon.clean_up_to(to);
        Ok(true)
    }
}
