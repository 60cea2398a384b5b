//! Taking a lock, keeping it fresh and giving it back.
//! Must never believe in a lock that it could not refresh in time: others may have taken over.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::rules::{LockFile, LockKind, SeenLock, obstacle};
use crate::error::{Error, Result};
use crate::layout::{self, Layout};
use crate::store::{Entry, Store};

/// After this long without an answer the lock is left to expire.
const RELEASE_PATIENCE: Duration = Duration::from_secs(30);

/// The first three are a convention between all who use a target; change them in tests only.
#[derive(Debug, Clone, Copy)]
pub struct LockTimings {
    /// Between writing a lock and looking at the others: longer than two writers' views may differ.
    pub settle: Duration,
    pub refresh: Duration,
    /// After this long without a refresh, by the server's clock, an owner is taken for dead.
    pub expiry: Duration,
    /// How long to wait for others before giving up.
    pub wait: Duration,
}

impl Default for LockTimings {
    fn default() -> Self {
        Self {
            settle: Duration::from_secs(2),
            refresh: Duration::from_mins(1),
            expiry: Duration::from_secs(150),
            wait: Duration::from_mins(5),
        }
    }
}

/// A lock that is held. Dropped without [`Lease::release`] it stays until it expires.
pub struct Lease {
    object: LockObject,
    timings: LockTimings,
    freshness: Arc<Mutex<Freshness>>,
    refresher: JoinHandle<()>,
    stop: CancellationToken,
}

struct Freshness {
    /// When the last successful write began.
    written: Instant,
    /// Once others may have taken over there is no way back.
    lost: bool,
    /// The server's clock at a moment of ours.
    server: (Timestamp, Instant),
}

#[derive(Clone)]
struct LockObject {
    store: Arc<dyn Store>,
    layout: Layout,
    name: String,
    kind: LockKind,
}

/// What one look at the locks gave.
enum Look {
    Free {
        server: (Timestamp, Instant),
    },
    Wait {
        holder: SeenLock,
        now: Timestamp,
    },
    /// Ours is not among them, or so old that others may overlook it.
    Gone,
}

impl Lease {
    /// Waits for those who were first.
    pub async fn acquire(
        store: &Arc<dyn Store>,
        layout: &Layout,
        kind: LockKind,
        timings: LockTimings,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let name = format!("lock-{}", &Uuid::new_v4().simple().to_string()[..16]);
        let object = LockObject { store: store.clone(), layout: layout.clone(), name, kind };
        let result = object.wait_for_turn(timings, cancel).await;
        match result {
            Ok((written, server)) => Ok(Self::keep(object, timings, written, server)),
            Err(error) => {
                object.remove().await;
                Err(error)
            }
        }
    }

    fn keep(
        object: LockObject,
        timings: LockTimings,
        written: Instant,
        server: (Timestamp, Instant),
    ) -> Self {
        let freshness = Arc::new(Mutex::new(Freshness { written, lost: false, server }));
        let stop = CancellationToken::new();
        let refresher = tokio::spawn(refresh(object.clone(), timings, freshness.clone(), stop.clone()));
        Self { object, timings, freshness, refresher, stop }
    }

    /// Fails if others may have taken over since. To be asked before anything that cannot be taken back.
    pub fn check(&self) -> Result<()> {
        let mut freshness = self.freshness.lock();
        freshness.lost |= freshness.written.elapsed() >= self.timings.expiry;
        if freshness.lost {
            let (volume, lock) = (self.object.layout.volume().clone(), self.object.name.clone());
            return Err(Error::LockLost { volume, lock });
        }
        Ok(())
    }

    /// What the server's clock shows now, or a little less.
    pub fn server_now(&self) -> Timestamp {
        let (server, ours) = self.freshness.lock().server;
        later(server, ours.elapsed())
    }

    /// Locks that expired long ago are nobody's any more.
    pub async fn remove_expired(&self) -> Result<()> {
        let now = self.server_now();
        for entry in self.object.list().await? {
            let age = now.duration_since(entry.modified);
            if age.is_positive() && age.unsigned_abs() > self.timings.expiry * 2 {
                self.object.store.delete(&entry.key).await?;
            }
        }
        Ok(())
    }

    /// Lets a refresh that is under way end first: it might bring back what is removed here.
    pub async fn release(mut self) {
        self.stop.cancel();
        if timeout(RELEASE_PATIENCE, &mut self.refresher).await.is_err() {
            tracing::warn!(lock = self.object.name, "a refresh of the lock does not end");
        }
        self.object.remove().await;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.refresher.abort();
    }
}

async fn refresh(
    object: LockObject,
    timings: LockTimings,
    freshness: Arc<Mutex<Freshness>>,
    stop: CancellationToken,
) {
    let mut pause = timings.refresh;
    while stop.run_until_cancelled(sleep(pause)).await.is_some() {
        let began = Instant::now();
        {
            let mut freshness = freshness.lock();
            freshness.lost |= freshness.written.elapsed() >= timings.expiry;
            if freshness.lost {
                return;
            }
        }
        match object.write(true).await {
            Ok(()) => {
                let mut freshness = freshness.lock();
                // A write that took too long came after others could see the lock expired.
                freshness.lost |= freshness.written.elapsed() >= timings.expiry;
                freshness.written = began;
                pause = timings.refresh;
            }
            Err(error) => {
                tracing::warn!(lock = object.name, volume = %object.layout.volume(), %error, "could not refresh the lock");
                pause = timings.refresh / 8;
            }
        }
    }
}

impl LockObject {
    fn key(&self) -> String {
        self.layout.lock(&self.name)
    }

    async fn write(&self, acquired: bool) -> Result<()> {
        let file = LockFile::new(&self.name, self.kind, acquired);
        let data = serde_json::to_vec(&file)
            .map_err(|error| Error::Config { key: self.key(), source: error.into() })?;
        Ok(self.store.put(&self.key(), Bytes::from(data)).await?)
    }

    /// It expires by itself, so a failure is worth no more than a line.
    async fn remove(&self) {
        if let Err(error) = self.store.delete(&self.key()).await {
            tracing::warn!(lock = self.name, volume = %self.layout.volume(), %error, "could not remove the lock");
        }
    }

    /// Only pauses are interrupted, never a write, which might take effect after it was given up.
    async fn wait_for_turn(
        &self,
        timings: LockTimings,
        cancel: &CancellationToken,
    ) -> Result<(Instant, (Timestamp, Instant))> {
        let rest = async |time| cancel.run_until_cancelled(sleep(time)).await.ok_or(Error::Cancelled);
        let deadline = Instant::now() + timings.wait;
        let mut pause = timings.settle / 4;
        let mut written = None;
        loop {
            let (began, done) = match written {
                Some(times) => times,
                None => {
                    let began = Instant::now();
                    self.write(false).await?;
                    let done = Instant::now();
                    rest(timings.settle).await?;
                    *written.insert((began, done))
                }
            };
            // After this long it has to be written anew, at the price of its place in the queue.
            let is_old = began.elapsed() > timings.expiry * 4 / 5;
            match if is_old { Look::Gone } else { self.look(done, timings).await? } {
                Look::Free { server } => {
                    let acquired = Instant::now();
                    self.write(true).await?;
                    if began.elapsed() < timings.expiry {
                        return Ok((acquired, server));
                    }
                    written = None;
                }
                Look::Gone => written = None,
                Look::Wait { holder, now } if Instant::now() >= deadline => {
                    return Err(Error::Locked {
                        volume: self.layout.volume().clone(),
                        seconds: now.duration_since(holder.modified).as_secs(),
                        kind: holder.file.kind(),
                        holder: holder.file.name,
                    });
                }
                Look::Wait { .. } => {
                    rest(pause).await?;
                    pause = (pause * 2).min(timings.settle * 4);
                }
            }
        }
    }

    /// Ours was written by `written` at the latest; its time in the listing tells the server's clock.
    async fn look(&self, written: Instant, timings: LockTimings) -> Result<Look> {
        let entries = self.list().await?;
        let key = self.key();
        let Some(own) = entries.iter().find(|entry| entry.key == key) else { return Ok(Look::Gone) };
        let server = (own.modified, written);
        let ours = SeenLock { file: LockFile::new(&self.name, self.kind, false), modified: own.modified };
        let mut others = Vec::new();
        for entry in entries.iter().filter(|entry| entry.key != key) {
            others.extend(self.read(entry).await?);
        }
        let now = later(server.0, written.elapsed());
        Ok(match obstacle(&ours, &others, now, timings.expiry) {
            Some(holder) => Look::Wait { holder: holder.clone(), now },
            None => Look::Free { server },
        })
    }

    async fn list(&self) -> Result<Vec<Entry>> {
        let listing = self.store.list(&self.layout.locks()).await?;
        Ok(listing.objects.into_iter().filter(|entry| layout::is_lock(&entry.key)).collect())
    }

    /// `None` if it has been given back meanwhile.
    async fn read(&self, entry: &Entry) -> Result<Option<SeenLock>> {
        let Some(data) = self.store.get(&entry.key).await? else { return Ok(None) };
        let stranger = || LockFile::new(&entry.key, LockKind::Unknown, true);
        let file = serde_json::from_slice(&data).unwrap_or_else(|_| stranger());
        Ok(Some(SeenLock { file, modified: entry.modified }))
    }
}

fn later(moment: Timestamp, by: Duration) -> Timestamp {
    moment.checked_add(by).unwrap_or(Timestamp::MAX)
}
