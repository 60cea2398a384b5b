//! Where work that left the I/O thread puts its answer, and how the connection learns of it.

use std::mem;
use std::task::Waker;

use parking_lot::Mutex;

use crate::wire::message::Reply;

/// An answer, and how much of the connection's budget its request held.
pub struct Done {
    pub id: u64,
    pub reply: Reply,
    pub cost: usize,
}

/// One for each connection.
#[derive(Default)]
pub struct Mailbox(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    done: Vec<Done>,
    /// The connection, when it waits.
    waker: Option<Waker>,
}

impl Mailbox {
    pub fn post(&self, done: Done) {
        let waker = {
            let mut inner = self.0.lock();
            inner.done.push(done);
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Swaps what has come for an empty list; when nothing has, the connection is woken by the next.
    pub fn collect(&self, done: &mut Vec<Done>, waker: &Waker) {
        let mut inner = self.0.lock();
        if inner.done.is_empty() {
            inner.waker = Some(waker.clone());
        } else {
            mem::swap(&mut inner.done, done);
        }
    }
}
