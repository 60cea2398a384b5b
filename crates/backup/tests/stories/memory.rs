//! A store in memory on tokio's clock, whose machine can be made to crash after a number of operations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use granary_backup::{Entry, Listing, Store, StoreError};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// A crash that is to come.
#[derive(Debug, Clone, Copy)]
pub struct Crash {
    /// Operations that still succeed.
    pub after: usize,
    /// Whether the one that fails has taken effect all the same.
    pub applied: bool,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, (Bytes, Timestamp, u64)>,
    versions: u64,
    crash: Option<Crash>,
    /// Drives the pauses before operations, if there are any.
    random: Option<u64>,
}

#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    start: Instant,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self { state: Arc::default(), start: Instant::now() }
    }

    /// Every operation takes a while, each another one.
    pub fn with_pauses(seed: u64) -> Self {
        let store = Self::new();
        store.state.lock().random = Some(seed | 1);
        store
    }

    /// `None` after a crash means that the machine is up again.
    pub fn set_crash(&self, crash: Option<Crash>) {
        self.state.lock().crash = crash;
    }

    pub fn keys(&self) -> Vec<String> {
        self.state.lock().objects.keys().cloned().collect()
    }

    fn now(&self) -> Timestamp {
        // Whole seconds, as S3 tells them.
        let elapsed = Duration::from_secs(self.start.elapsed().as_secs());
        Timestamp::from_second(1_800_000_000).unwrap() + elapsed
    }

    async fn operate<T>(
        &self,
        key: &str,
        work: impl FnOnce(&mut State) -> T + Send,
    ) -> Result<T, StoreError> {
        let pause = self.state.lock().random.as_mut().map(|state| {
            // xorshift64
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            Duration::from_millis(*state % 700)
        });
        match pause {
            Some(pause) => sleep(pause).await,
            None => tokio::task::yield_now().await,
        }
        let mut state = self.state.lock();
        let failed = || StoreError::new("reach", key, "the machine is down");
        match &mut state.crash {
            None => Ok(work(&mut state)),
            Some(crash) if crash.after > 0 => {
                crash.after -= 1;
                Ok(work(&mut state))
            }
            Some(crash) => {
                if std::mem::take(&mut crash.applied) {
                    work(&mut state);
                }
                Err(failed())
            }
        }
    }
}

fn entry(key: &str, (data, modified, version): &(Bytes, Timestamp, u64)) -> Entry {
    Entry { key: key.to_owned(), size: data.len() as u64, modified: *modified, version: version.to_string() }
}

impl State {
    fn put(&mut self, key: &str, data: Bytes, now: Timestamp) {
        self.versions += 1;
        self.objects.insert(key.to_owned(), (data, now, self.versions));
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.operate(key, |state| state.objects.get(key).map(|object| object.0.clone())).await
    }

    async fn head(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.operate(key, |state| state.objects.get(key).map(|object| entry(key, object))).await
    }

    async fn put(&self, key: &str, data: Bytes) -> Result<(), StoreError> {
        self.operate(key, |state| state.put(key, data, self.now())).await
    }

    async fn put_if_absent(&self, key: &str, data: Bytes) -> Result<bool, StoreError> {
        let create = |state: &mut State| {
            let is_new = !state.objects.contains_key(key);
            if is_new {
                state.put(key, data, self.now());
            }
            is_new
        };
        self.operate(key, create).await
    }

    async fn list(&self, directory: &str) -> Result<Listing, StoreError> {
        let prefix = format!("{directory}/");
        let look = |state: &mut State| {
            let mut listing = Listing::default();
            for (key, object) in &state.objects {
                let Some(rest) = key.strip_prefix(&prefix) else { continue };
                match rest.split_once('/') {
                    None => listing.objects.push(entry(key, object)),
                    Some((child, _)) if listing.directories.last().is_some_and(|last| last == child) => {}
                    Some((child, _)) => listing.directories.push(child.to_owned()),
                }
            }
            listing
        };
        self.operate(directory, look).await
    }

    fn walk(&self, directory: &str) -> BoxStream<'_, Result<Entry, StoreError>> {
        let prefix = format!("{directory}/");
        let key = directory.to_owned();
        let look = async move {
            let found = |state: &mut State| {
                let inside = state.objects.iter().filter(|(key, _)| key.starts_with(&prefix));
                inside.map(|(key, object)| entry(key, object)).collect::<Vec<_>>()
            };
            match self.operate(&key, found).await {
                Ok(entries) => stream::iter(entries).map(Ok).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(look).flatten().boxed()
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.operate(key, |state| drop(state.objects.remove(key))).await
    }
}
