//! Reading objects: one, a page of many as of one revision, and the dependents of an owner.
//!
//! Must never hold a database transaction beyond one call.

use bytes::Bytes;
use redb::{ReadOnlyTable, ReadableTable};

use super::database::{INDEX, OWNED, REVISIONS, TOMBSTONE};
use super::key::{Key, Prefix};
use super::record::{Change, Header};
use super::{Result, Store, StoreError, Stored};

type Revisions = ReadOnlyTable<u64, &'static [u8]>;

/// Keys looked at in one call.
pub const SCAN: usize = 1024;

/// Some objects of a list, in key order.
#[derive(Debug, Default)]
pub struct Page {
    pub items: Vec<Stored>,
    /// Where the next page starts; absent at the end.
    pub next: Option<String>,
}

/// A revision that stays readable until this is dropped.
pub struct Snapshot {
    store: Store,
    revision: u64,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.store.shared.horizon.unpin(self.revision);
    }
}

impl Store {
    pub fn get(&self, key: &Key) -> Result<Option<Stored>> {
        self.shared.read(|txn| {
            let Some(entry) = txn.open_table(INDEX)?.get(key.as_str())?.map(|v| v.value()) else {
                return Ok(None);
            };
            if entry & TOMBSTONE != 0 {
                return Ok(None);
            }
            let revisions = txn.open_table(REVISIONS)?;
            let Some(bytes) = revisions.get(entry)? else { return Ok(None) };
            Ok(Header::decode(bytes.value()).map(|head| Stored {
                key: key.clone(),
                revision: entry,
                json: Bytes::copy_from_slice(head.json),
            }))
        })
    }

    /// Pins a revision, the newest when none is named, so that a list of many pages is of one instant.
    pub fn snapshot(&self, revision: Option<u64>) -> Result<Snapshot> {
        let current = self.revision();
        let revision = revision.unwrap_or(current);
        if revision > current {
            return Err(StoreError::Ahead { requested: revision, current });
        }
        self.shared.horizon.pin(revision)?;
        Ok(Snapshot { store: self.clone(), revision })
    }

    /// How many objects there are now under `prefix`.
    pub fn count(&self, prefix: &Prefix) -> Result<u64> {
        self.shared.read(|txn| {
            let index = txn.open_table(INDEX)?;
            let mut count = 0;
            for entry in index.range(prefix.start()..prefix.end().as_str())? {
                count += u64::from(entry?.1.value() & TOMBSTONE == 0);
            }
            Ok(count)
        })
    }

    /// The dependents of the object with this uid.
    pub fn owned_by(&self, uid: &str) -> Result<Vec<Key>> {
        self.owned_range(&format!("{uid}/"))
    }

    /// Every (owner uid, dependent) pair there is.
    pub fn owned(&self) -> Result<Vec<(String, Key)>> {
        self.shared.read(|txn| {
            let owned = txn.open_table(OWNED)?;
            let mut pairs = Vec::new();
            for entry in owned.iter()? {
                let (pair, ()) = (entry?.0, ());
                if let Some((uid, key)) = pair.value().split_once('/') {
                    pairs.push((uid.to_string(), Key::from_stored(key)));
                }
            }
            Ok(pairs)
        })
    }

    fn owned_range(&self, start: &str) -> Result<Vec<Key>> {
        self.shared.read(|txn| {
            let owned = txn.open_table(OWNED)?;
            let mut keys = Vec::new();
            for entry in owned.range(start..)? {
                let pair = entry?.0;
                let Some(key) = pair.value().strip_prefix(start) else { break };
                keys.push(Key::from_stored(key));
            }
            Ok(keys)
        })
    }
}

impl Snapshot {
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// At most `limit` objects from `start` on that `keep` accepts. Ends early, with a `next`, after looking at
    /// `SCAN` keys, so that one call never holds its thread for long.
    pub fn page(
        &self,
        prefix: &Prefix,
        start: Option<&str>,
        limit: usize,
        mut keep: impl FnMut(&Key, &[u8]) -> bool,
    ) -> Result<Page> {
        let end = prefix.end();
        let start = start.filter(|s| *s > prefix.start()).unwrap_or(prefix.start());
        self.store.shared.read(|txn| {
            let index = txn.open_table(INDEX)?;
            let revisions = txn.open_table(REVISIONS)?;
            let mut page = Page::default();
            for (seen, entry) in index.range(start..end.as_str())?.enumerate() {
                let (key, newest) = entry?;
                if seen == SCAN {
                    page.next = Some(key.value().to_string());
                    break;
                }
                let Some((revision, bytes)) = as_of(&revisions, newest.value(), self.revision)? else {
                    continue;
                };
                // Only an object that is there is a reason to ask for more.
                if page.items.len() == limit {
                    page.next = Some(key.value().to_string());
                    break;
                }
                let bytes = bytes.value();
                let Some(head) = Header::decode(bytes) else { continue };
                let key = Key::from_stored(key.value());
                if keep(&key, head.json) {
                    page.items.push(Stored { key, revision, json: Bytes::copy_from_slice(head.json) });
                }
            }
            Ok(page)
        })
    }
}

type Found<'a> = Option<(u64, redb::AccessGuard<'a, &'static [u8]>)>;

/// The record of a key as it was at `revision`: walks back from its newest one.
fn as_of(revisions: &Revisions, newest: u64, revision: u64) -> std::result::Result<Found<'_>, redb::Error> {
    let mut at = newest & !TOMBSTONE;
    while at != 0 {
        let Some(bytes) = revisions.get(at)? else { return Ok(None) };
        let Some((change, previous)) = Header::decode(bytes.value()).map(|h| (h.change, h.previous)) else {
            return Ok(None);
        };
        if at <= revision {
            return Ok((change != Change::Deleted).then_some((at, bytes)));
        }
        at = previous;
    }
    Ok(None)
}
