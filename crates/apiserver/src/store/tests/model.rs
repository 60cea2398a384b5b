//! What the store should hold, in the plainest way: every version of every key, in a map.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::Value;

use crate::store::{Action, Change, Event, Expect, Key, Prefix, Store, StoreError, Write};

#[derive(Debug, Clone)]
struct Version {
    revision: u64,
    change: Change,
    object: Value,
}

#[derive(Debug, Default, Clone)]
pub struct Model {
    pub revision: u64,
    histories: BTreeMap<Key, Vec<Version>>,
}

/// One change as plain values, for comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub revision: u64,
    pub change: Change,
    pub key: Key,
    pub object: Value,
    pub previous: Option<Value>,
}

impl Told {
    pub fn of(event: &Event) -> Self {
        Self {
            revision: event.revision,
            change: event.change,
            key: event.key.clone(),
            object: parse(&event.json),
            previous: event.previous.as_ref().map(parse),
        }
    }
}

pub fn parse(json: &Bytes) -> Value {
    serde_json::from_slice(json).unwrap()
}

impl Model {
    /// The newest version, unless it is a deletion.
    fn live(&self, key: &Key) -> Option<&Version> {
        self.histories.get(key)?.last().filter(|v| v.change != Change::Deleted)
    }

    pub fn live_revision(&self, key: &Key) -> Option<u64> {
        self.live(key).map(|v| v.revision)
    }

    pub fn live_bytes(&self, key: &Key) -> Option<Bytes> {
        self.live(key).map(|v| v.object.to_string().into())
    }

    /// Does what the store should do with this write.
    pub fn apply(&mut self, write: &Write) -> Result<u64, StoreError> {
        let current = self.live_revision(&write.key);
        match (write.expect, current) {
            (Expect::Absent, Some(_)) => return Err(StoreError::Exists),
            (Expect::Revision(_), None) => return Err(StoreError::Missing),
            (Expect::Revision(seen), Some(current)) if seen != current => {
                return Err(StoreError::Moved { current });
            }
            _ => {}
        }
        self.revision += 1;
        let revision = self.revision;
        let (change, mut object) = match (&write.action, current) {
            (Action::Put(object), None) => (Change::Created, object.clone()),
            (Action::Put(object), Some(_)) => (Change::Updated, object.clone()),
            (Action::Delete(object), _) => (Change::Deleted, object.clone()),
        };
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        self.histories.entry(write.key.clone()).or_default().push(Version { revision, change, object });
        Ok(revision)
    }

    /// What is there at `revision`, in key order.
    pub fn list(&self, revision: u64, prefix: &Prefix) -> Vec<(Key, u64, Value)> {
        let at = |versions: &Vec<Version>| versions.iter().rev().find(|v| v.revision <= revision).cloned();
        let covered = self.histories.iter().filter(|(key, _)| prefix.covers(key));
        covered
            .filter_map(|(key, versions)| Some((key, at(versions)?)))
            .filter(|(_, version)| version.change != Change::Deleted)
            .map(|(key, version)| (key.clone(), version.revision, version.object))
            .collect()
    }

    pub fn events_after(&self, after: u64, prefix: &Prefix) -> Vec<Told> {
        let mut events = Vec::new();
        for (key, versions) in self.histories.iter().filter(|(key, _)| prefix.covers(key)) {
            for (i, version) in versions.iter().enumerate().filter(|(_, v)| v.revision > after) {
                let before = i.checked_sub(1).map(|before| versions[before].object.clone());
                events.push(Told {
                    revision: version.revision,
                    change: version.change,
                    key: key.clone(),
                    object: version.object.clone(),
                    previous: before.filter(|_| version.change != Change::Created),
                });
            }
        }
        events.sort_by_key(|event| event.revision);
        events
    }

    /// Owner and dependent of every owner reference of a live object.
    pub fn owned(&self) -> BTreeSet<(String, Key)> {
        let live = self.list(self.revision, &Prefix::everything());
        let references = |object: &Value| object["metadata"]["ownerReferences"].as_array().cloned();
        live.into_iter()
            .flat_map(|(key, _, object)| {
                let owners = references(&object).unwrap_or_default();
                owners.into_iter().map(move |r| (r["uid"].as_str().unwrap().to_string(), key.clone()))
            })
            .collect()
    }
}

/// A whole list, read in pages.
pub fn list(
    store: &Store,
    revision: u64,
    prefix: &Prefix,
    limit: usize,
) -> Result<Vec<(Key, u64, Value)>, StoreError> {
    let snapshot = store.snapshot(Some(revision))?;
    let mut start: Option<String> = None;
    let mut found = Vec::new();
    loop {
        let page = snapshot.page(prefix, start.as_deref(), limit, |_, _| true)?;
        assert!(page.items.len() <= limit, "a page is longer than asked for");
        assert!(start.is_none() || !page.items.is_empty(), "the page before promised more");
        found.extend(page.items.into_iter().map(|s| (s.key, s.revision, parse(&s.json))));
        match page.next {
            Some(next) => start = Some(next),
            None => return Ok(found),
        }
    }
}

/// All events after a revision, asked for `limit` at a time, as a watcher does.
pub fn events(store: &Store, after: u64, prefix: &Prefix, limit: usize) -> Result<Vec<Told>, StoreError> {
    let mut cursor = after;
    let mut told = Vec::new();
    loop {
        let (events, next) = store.events_after(cursor, prefix, limit)?;
        assert!(events.len() <= limit && next >= cursor);
        told.extend(events.iter().map(|e| Told::of(e)));
        if next == cursor {
            return Ok(told);
        }
        cursor = next;
    }
}

pub fn owned(store: &Store) -> BTreeSet<(String, Key)> {
    store.owned().unwrap().into_iter().collect()
}
