//! The connections to the replicas: one task dials and receives, one sends what has been queued, in batches.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::Shared;
use crate::engine::event::{Event, Link};
use crate::wire::address::Address;
use crate::wire::checksum::Seal;
use crate::wire::connection::{Connection, Receiver, Sender};
use crate::wire::key::Key;
use crate::wire::message::Request;

pub(super) struct Links {
    volume: String,
    key: Key,
    deadline: Duration,
    open: RefCell<HashMap<Link, Open>>,
    seal: RefCell<Seal>,
}

struct Open {
    outgoing: Option<Rc<Outgoing>>,
    tasks: Vec<AbortHandle>,
}

struct Outgoing {
    sender: RefCell<Sender>,
    wake: Notify,
}

impl Links {
    pub(super) fn new(volume: String, key: Key, deadline: Duration) -> Self {
        Self { volume, key, deadline, open: RefCell::default(), seal: RefCell::default() }
    }

    pub(super) fn send(&self, link: Link, id: u64, request: &Request) {
        if let Some(outgoing) = self.open.borrow().get(&link).and_then(|open| open.outgoing.as_ref()) {
            outgoing.sender.borrow_mut().queue_sealed(id, request, &mut self.seal.borrow_mut());
            outgoing.wake.notify_one();
        }
    }

    /// Everything of one batch is queued: nothing that was sent is kept any longer than its requests need it.
    pub(super) fn batch_ends(&self) {
        self.seal.borrow_mut().forget();
    }

    pub(super) fn close(&self, link: Link) {
        if let Some(open) = self.open.borrow_mut().remove(&link) {
            for task in open.tasks {
                task.abort();
            }
        }
    }

    pub(super) fn dial(shared: &Rc<Shared>, link: Link, address: &str) {
        let task = tokio::task::spawn_local(talk(shared.clone(), link, address.to_string()));
        let open = Open { outgoing: None, tasks: vec![task.abort_handle()] };
        shared.links.open.borrow_mut().insert(link, open);
    }
}

async fn talk(shared: Rc<Shared>, link: Link, address: String) {
    let reason = match begin(&shared, link, &address).await {
        Ok(receiver) => receive(&shared, link, receiver).await,
        Err(reason) => reason,
    };
    shared.links.close(link);
    shared.apply(Event::Lost { link, reason });
}

async fn begin(shared: &Rc<Shared>, link: Link, address: &str) -> Result<Receiver, String> {
    let parsed: Address = address.parse().map_err(|error| format!("{error}"))?;
    let links = &shared.links;
    let dialled = Connection::dial(&parsed, &links.volume, &links.key, links.deadline).await;
    let (connection, info) = dialled.map_err(|error| error.to_string())?;
    let (sender, receiver) = connection.split();
    let outgoing = Rc::new(Outgoing { sender: RefCell::new(sender), wake: Notify::new() });
    let task = tokio::task::spawn_local(send(shared.clone(), link, outgoing.clone()));
    if let Some(open) = links.open.borrow_mut().get_mut(&link) {
        open.outgoing = Some(outgoing);
        open.tasks.push(task.abort_handle());
    }
    shared.apply(Event::Connected { link, info: Box::new(info) });
    Ok(receiver)
}

async fn receive(shared: &Rc<Shared>, link: Link, mut receiver: Receiver) -> String {
    let mut replies = Vec::with_capacity(64);
    loop {
        let result = receiver.receive(&mut replies).await;
        shared.apply_all(replies.drain(..).map(|(id, reply)| Event::Reply { link, id, reply }));
        if let Err(error) = result {
            return error.to_string();
        }
    }
}

/// Sends until the socket fails; its receiving half then tells.
async fn send(shared: Rc<Shared>, link: Link, outgoing: Rc<Outgoing>) {
    loop {
        outgoing.wake.notified().await;
        let sent = std::future::poll_fn(|cx| outgoing.sender.borrow_mut().poll_flush(cx)).await;
        if let Err(error) = sent {
            let reason = error.to_string();
            shared.apply(Event::Lost { link, reason });
            shared.links.close(link);
            return;
        }
    }
}
