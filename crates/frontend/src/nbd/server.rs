//! An NBD server for one volume: listeners, their clients, and the end of both, in order or handed to another
//! process. Everything runs on the volume's own thread; it needs a `LocalSet`.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::action::Rules;
use super::budget::{Budget, Share};
use super::connection::{Connection, Ended};
use super::frozen::{FrozenConnection, FrozenListener, FrozenServer, State};
use super::handshake::{Client, shake_hands};
use super::listener::{ListenError, Listener};
use super::negotiation::{Negotiation, Offer, Session, greet};
use super::reply::perform;
use super::stream::Stream;
use super::tls::ServerTls;
use super::url::Address;
use crate::Volume;
use crate::orders::{Order, Orders};

/// How long a client that does not read its answers can hold up a stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// A client must have asked for its export by then.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// More clients than this wait in the socket's own queue, unless one that has not asked for its export yet can make
/// room: a handshake takes a moment, so whoever has been at it longest is no client.
const MAX_CLIENTS: usize = 256;
/// Payload that all clients together may have with us, and one request each.
const MAX_BYTES: usize = 256 << 20;
/// After a failed accept (no more descriptors, say) there is nothing to do but wait.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A volume and what clients see of it.
#[derive(Clone)]
pub struct Export<V> {
    /// Clients reach the volume by this name, and by none.
    pub name: String,
    pub description: String,
    pub volume: V,
    pub read_only: bool,
    pub tls: ServerTls,
}

/// A running server. Dropping it without [`Self::stop`] or [`Self::freeze`] leaves its clients served until the
/// runtime ends.
pub struct Server<V> {
    shared: Rc<Shared<V>>,
    listeners: RefCell<Vec<Task<Listener>>>,
}

struct Shared<V> {
    export: Export<V>,
    /// Oldest first.
    clients: RefCell<Vec<Guest>>,
    budget: Rc<Budget>,
}

struct Guest {
    task: Task<Option<FrozenConnection>>,
    /// It has not asked for its export yet.
    negotiating: Rc<Cell<bool>>,
}

/// A task and the way to reach it.
struct Task<T> {
    orders: Rc<Orders>,
    handle: JoinHandle<T>,
}

impl<V: Volume> Export<V> {
    pub fn new(name: impl Into<String>, volume: V) -> Self {
        let (name, tls) = (name.into(), ServerTls::Off);
        Self { name, description: String::new(), volume, read_only: false, tls }
    }

    pub(super) fn offer(&self) -> Offer<'_> {
        Offer {
            name: &self.name,
            description: &self.description,
            size: *self.volume.size().borrow(),
            read_only: self.read_only,
            tls: self.tls.offer(),
        }
    }
}

impl<V: Volume> Server<V> {
    pub fn new(export: Export<V>) -> Self {
        let shared = Shared { export, clients: RefCell::default(), budget: Budget::new(MAX_BYTES) };
        Self { shared: Rc::new(shared), listeners: RefCell::default() }
    }

    /// Serves clients that come to this address, which is returned with the port that was really taken.
    pub async fn listen(&self, address: &Address) -> Result<Address, ListenError> {
        let listener = Listener::bind(address).await?;
        let address = listener.address().unwrap_or_else(|_| address.clone());
        self.accept_from(listener);
        Ok(address)
    }

    /// Serves a client that is connected already, however that came about.
    pub fn serve(&self, client: UnixStream) {
        self.shared.clone().welcome(Stream::Unix(client));
    }

    /// How many clients are connected now.
    pub fn clients(&self) -> usize {
        self.shared.clients.borrow().iter().filter(|guest| !guest.task.handle.is_finished()).count()
    }

    /// Nobody comes in any more, what is in flight is answered, what comes later is refused with ESHUTDOWN, and every
    /// connection is closed.
    pub async fn stop(self) {
        for listener in self.end_listeners(Order::Stop).await {
            listener.close();
        }
        for client in self.end_clients(Order::Stop) {
            let abort = client.abort_handle();
            if tokio::time::timeout(STOP_TIMEOUT, client).await.is_err() {
                tracing::warn!("an NBD client did not take its answers in time; its connection is cut");
                abort.abort();
            }
        }
    }

    /// Stops reading, lets what is in flight end, and returns everything another process needs to go on. Connections
    /// under TLS cannot go on: they are closed in order.
    pub async fn freeze(self) -> io::Result<FrozenServer> {
        let mut frozen = FrozenServer::default();
        for listener in self.end_listeners(Order::Freeze).await {
            let (fd, path) = listener.into_fd()?;
            frozen.listeners.push(FrozenListener { fd, path });
        }
        for client in self.end_clients(Order::Freeze) {
            if let Ok(Some(connection)) = client.await {
                frozen.connections.push(connection);
            }
        }
        Ok(frozen)
    }

    pub(super) fn accept_from(&self, listener: Listener) {
        let (orders, shared) = (Rc::new(Orders::new()), self.shared.clone());
        let handle = tokio::task::spawn_local(accept(listener, orders.clone(), shared));
        self.listeners.borrow_mut().push(Task { orders, handle });
    }

    pub(super) fn resume(&self, stream: Stream, state: State, input: BytesMut, output: Bytes) {
        self.shared.clone().serve(stream, state, input, output);
    }

    async fn end_listeners(&self, order: Order) -> Vec<Listener> {
        let tasks = self.listeners.take();
        tasks.iter().for_each(|task| task.orders.give(order));
        let mut listeners = Vec::new();
        for task in tasks {
            listeners.extend(task.handle.await);
        }
        listeners
    }

    fn end_clients(&self, order: Order) -> Vec<JoinHandle<Option<FrozenConnection>>> {
        let guests = self.shared.clients.take();
        guests.iter().for_each(|guest| guest.task.orders.give(order));
        guests.into_iter().map(|guest| guest.task.handle).collect()
    }
}

async fn accept<V: Volume>(listener: Listener, orders: Rc<Orders>, shared: Rc<Shared<V>>) -> Listener {
    loop {
        let room = shared.make_room();
        tokio::select! {
            biased;
            _ = orders.changed() => return listener,
            () = tokio::time::sleep(ACCEPT_PAUSE), if !room => {}
            accepted = listener.accept(), if room => match accepted {
                Ok(stream) => shared.clone().welcome(stream),
                Err(error) => {
                    tracing::warn!(%error, "an NBD client could not be let in");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

impl<V: Volume> Shared<V> {
    /// Whether another client can come.
    fn make_room(&self) -> bool {
        let mut clients = self.clients.borrow_mut();
        clients.retain(|guest| !guest.task.handle.is_finished());
        if clients.len() >= MAX_CLIENTS
            && let Some(oldest) = clients.iter().position(|guest| guest.negotiating.get())
        {
            clients.remove(oldest).task.handle.abort();
        }
        clients.len() < MAX_CLIENTS
    }

    fn welcome(self: Rc<Self>, stream: Stream) {
        let mut greeting = BytesMut::new();
        greet(&mut greeting);
        self.serve(stream, State::Negotiating(Negotiation::default()), BytesMut::new(), greeting.freeze());
    }

    fn serve(self: Rc<Self>, stream: Stream, state: State, input: BytesMut, output: Bytes) {
        let orders = Rc::new(Orders::new());
        let negotiating = Rc::new(Cell::new(true));
        let (shared, given, still) = (self.clone(), orders.clone(), negotiating.clone());
        let handle = tokio::task::spawn_local(async move {
            let client = Client { stream, input, output };
            match shared.client(client, state, &given, &still).await {
                Ok(frozen) => frozen,
                Err(error) => {
                    tracing::debug!(%error, "an NBD connection ended early");
                    None
                }
            }
        });
        self.clients.borrow_mut().push(Guest { task: Task { orders, handle }, negotiating });
    }

    /// A client from wherever it stands to its end; its connection, when it is to go on in another process.
    async fn client(
        &self,
        mut client: Client,
        state: State,
        orders: &Orders,
        negotiating: &Cell<bool>,
    ) -> io::Result<Option<FrozenConnection>> {
        let session = match state {
            State::Transmitting(session) => session,
            State::Negotiating(mut negotiation) => {
                let shaking = shake_hands(&mut client, &mut negotiation, &self.export, orders);
                match tokio::time::timeout(HANDSHAKE_TIMEOUT, shaking).await?? {
                    Some(session) => session,
                    None if orders.current() == Order::Freeze => {
                        return FrozenConnection::new(client, State::Negotiating(negotiation));
                    }
                    None => return Ok(None),
                }
            }
        };
        negotiating.set(false);
        self.transmit(client, session, orders).await
    }

    async fn transmit(
        &self,
        client: Client,
        session: Session,
        orders: &Orders,
    ) -> io::Result<Option<FrozenConnection>> {
        let Client { mut stream, input, output } = client;
        let mut size = self.export.volume.size();
        let rules = Rules { size: *size.borrow_and_update(), read_only: self.export.read_only, session };
        let begin = |request, action, payload| perform(self.export.volume.clone(), request, action, payload);
        let share = Share::of(&self.budget);
        let connection = Connection::new(&mut stream, orders, size, rules, share, begin);
        match connection.resuming(input, output).run().await? {
            Ended::Frozen { input, output } if !stream.is_tls() => {
                FrozenConnection::new(Client { stream, input, output }, State::Transmitting(session))
            }
            // TLS stays here: what was to be sent is sent, and the client learns that this is the end.
            Ended::Frozen { output, .. } => {
                close(stream.write_all(&output)).await?;
                close(stream.shutdown()).await.map(|()| None)
            }
            Ended::Closed => close(stream.shutdown()).await.map(|()| None),
        }
    }
}

async fn close(closing: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    tokio::time::timeout(STOP_TIMEOUT, closing).await?
}
