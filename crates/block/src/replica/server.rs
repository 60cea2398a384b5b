//! The replica on the network: accepts connections, lets in who proves the volume's key, and ends in order.
//! Runs on one thread; what may block is in the lanes.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

use super::counters::Counters;
use super::lanes::Lanes;
use super::link::Link;
use super::service::Service;
use crate::store::{Store, StoreError};
use crate::wire::address::Address;
use crate::wire::handshake::{self, Refusal};
use crate::wire::key::Key;
use crate::wire::stream::Stream;
use crate::wire::talk::Talk;

/// The whole handshake must be over by then.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

/// Connections in their handshake. The oldest makes room for a new one: a handshake takes a millisecond, so whoever
/// waits long is not an engine.
const MAX_STRANGERS: usize = 64;

/// Connections that have proved the key.
const MAX_CONNECTIONS: usize = 64;

/// Refusals are logged no more often than this.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: Address, source: io::Error },
    #[error("cannot start the replica's threads: {0}")]
    Threads(io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A replica that listens.
pub struct Server {
    listener: Listener,
    address: Address,
    desk: Arc<Desk>,
    purges: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

/// What every connection needs.
struct Desk {
    service: Arc<Service>,
    key: Key,
    lanes: Arc<Lanes>,
    counters: Arc<Counters>,
    open: AtomicUsize,
    /// When a refusal was last logged.
    noted: Mutex<Option<Instant>>,
}

impl Server {
    /// Listens, but lets nobody in yet. Port 0 becomes a free one.
    pub async fn bind(address: &Address, store: Arc<Store>, key: Key) -> Result<Self, ServeError> {
        let refused = |source| ServeError::Listen { address: address.clone(), source };
        let (listener, bound) = Listener::bind(address).await.map_err(refused)?;
        let purges: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
        let threads = purges.clone();
        let background = Box::new(move |task| {
            let mut threads = threads.lock();
            threads.retain(|thread| !thread.is_finished());
            match std::thread::Builder::new().name("replica-purge".into()).spawn(task) {
                Ok(thread) => threads.push(thread),
                Err(error) => tracing::error!(%error, "no thread for a purge; ask for it again later"),
            }
        });
        let service = Arc::new(Service::new(store, background));
        let counters = Arc::new(Counters::default());
        let lanes = Arc::new(Lanes::start(&service, &counters).map_err(ServeError::Threads)?);
        let desk = Arc::new(Desk {
            service,
            key,
            lanes,
            counters,
            open: AtomicUsize::default(),
            noted: Mutex::default(),
        });
        Ok(Self { listener, address: bound, desk, purges })
    }

    /// Where it listens, with the port it was given.
    pub fn address(&self) -> &Address {
        &self.address
    }

    pub fn counters(&self) -> &Arc<Counters> {
        &self.desk.counters
    }

    /// Serves until `shutdown`, then ends every connection and makes durable what was written.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let mut strangers = JoinSet::new();
        let mut by_age = VecDeque::new();
        let mut links = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = self.listener.accept() => match accepted {
                    Ok(stream) => make_room(&mut by_age, strangers.spawn(self.desk.clone().receive(stream))),
                    // A peer that is gone again is no reason to wait.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        // Out of descriptors, most likely: others must go before more can come.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(received) = strangers.join_next() => match received {
                    Ok(Some((talk, guest))) => {
                        links.spawn(self.desk.clone().serve(talk, guest));
                    }
                    Ok(None) | Err(_) => Counters::add(&self.desk.counters.refused, 1),
                },
                Some(_) = links.join_next() => {}
            }
        }
        strangers.shutdown().await;
        links.shutdown().await;
        if let Address::Unix(path) = &self.address {
            remove_socket(path);
        }
        let Self { desk, purges, .. } = self;
        let finished = tokio::task::spawn_blocking(move || finish(&desk, &purges)).await;
        Ok(finished.map_err(|error| ServeError::Threads(io::Error::other(error)))??)
    }
}

/// A place among the connections that have proved the key, and the volume the engine named.
struct Guest {
    volume: String,
    _place: Place,
}

struct Place(Arc<Desk>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Desk {
    /// The handshake. `None`: it came to nothing.
    async fn receive(self: Arc<Self>, stream: Stream) -> Option<(Talk<Stream>, Guest)> {
        if let Err(error) = stream.prepare() {
            tracing::debug!(%error, "a connection ended before it began");
            return None;
        }
        let mut talk = Talk::with_stranger(stream);
        let mut place = None;
        let judge = |volume: &str| {
            if !self.service.belongs_to(volume) {
                return Err(Refusal::Volume);
            }
            place = Some(self.clone().place().ok_or(Refusal::Busy)?);
            Ok(())
        };
        let handshake = handshake::replica(&mut talk, &self.key, judge);
        match tokio::time::timeout(HANDSHAKE_LIMIT, handshake).await {
            Ok(Ok(volume)) => place.map(|place| (talk, Guest { volume, _place: place })),
            Ok(Err(error)) => {
                self.note_refusal(&error.to_string());
                None
            }
            Err(_) => {
                self.note_refusal("it did not end its handshake in time");
                None
            }
        }
    }

    /// One line now and then, however many knock.
    fn note_refusal(&self, reason: &str) {
        let mut noted = self.noted.lock();
        let now = Instant::now();
        if noted.is_none_or(|last| now - last >= NOTE_INTERVAL) {
            *noted = Some(now);
            let refused = Counters::get(&self.counters.refused) + 1;
            tracing::warn!(reason, refused, "a connection was not let in");
        }
    }

    fn place(self: Arc<Self>) -> Option<Place> {
        let taken = self.open.fetch_add(1, Ordering::Relaxed);
        let place = Place(self);
        (taken < MAX_CONNECTIONS).then_some(place)
    }

    async fn serve(self: Arc<Self>, talk: Talk<Stream>, guest: Guest) {
        Counters::add(&self.counters.connections, 1);
        let session = self.service.begin(&guest.volume);
        tracing::debug!(volume = guest.volume, "connected");
        let link = Link::new(talk, session, self.service.clone(), self.lanes.clone(), self.counters.clone());
        let end = link.run().await;
        tracing::info!(volume = guest.volume, reason = %end, "connection ended");
    }
}

/// The lanes end what was begun, and what is in the page cache goes to the disk.
fn finish(desk: &Desk, purges: &Mutex<Vec<JoinHandle<()>>>) -> Result<(), StoreError> {
    let store = desk.service.store().clone();
    store.stop_purge();
    desk.lanes.stop();
    for thread in purges.lock().drain(..) {
        if thread.join().is_err() {
            tracing::error!("a purge panicked");
        }
    }
    store.flush()
}

/// Remembers who is in its handshake, oldest first, and ends the oldest when there are too many.
fn make_room(by_age: &mut VecDeque<AbortHandle>, newest: AbortHandle) {
    by_age.retain(|stranger| !stranger.is_finished());
    if by_age.len() >= MAX_STRANGERS
        && let Some(oldest) = by_age.pop_front()
    {
        oldest.abort();
    }
    by_age.push_back(newest);
}

impl Listener {
    async fn bind(address: &Address) -> io::Result<(Self, Address)> {
        match address {
            Address::Tcp(target) => {
                let listener = TcpListener::bind(target).await?;
                let bound = Address::Tcp(listener.local_addr()?.to_string());
                Ok((Self::Tcp(listener), bound))
            }
            Address::Unix(path) => {
                // A socket that nobody answers on was left behind by a process that was killed.
                if UnixStream::connect(path)
                    .await
                    .is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
                {
                    remove_socket(path);
                }
                Ok((Self::Unix(UnixListener::bind(path)?), address.clone()))
            }
        }
    }

    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => Ok(Stream::Tcp(listener.accept().await?.0)),
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

fn remove_socket(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "the socket stays behind");
    }
}

#[cfg(test)]
mod tests;
