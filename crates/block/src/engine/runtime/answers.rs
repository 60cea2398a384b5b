//! Who waits for which answer. A future here is a key into a table: no channel, no allocation per request beyond the
//! table's growth.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use super::Shared;
use crate::engine::event::{Answer, GuestError, GuestId, GuestOp};

type Outcome = Result<Answer, GuestError>;

enum Place {
    Waiting(Option<Waker>),
    Answered(Outcome),
    /// Nobody waits any more; the request goes on.
    Abandoned,
}

#[derive(Default)]
pub(super) struct Answers {
    table: RefCell<Slab<Place>>,
}

impl Answers {
    pub(super) fn give(&self, id: GuestId, outcome: Outcome) {
        let mut table = self.table.borrow_mut();
        let Some(place) = table.get_mut(id as usize) else { return };
        match std::mem::replace(place, Place::Answered(outcome)) {
            Place::Waiting(waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Place::Answered(_) | Place::Abandoned => {
                table.remove(id as usize);
            }
        }
    }
}

/// One guest request under way.
pub(super) struct Asked {
    shared: Rc<Shared>,
    id: GuestId,
    done: bool,
}

pub(super) fn ask(shared: &Rc<Shared>, op: GuestOp) -> Asked {
    let id = shared.answers.table.borrow_mut().insert(Place::Waiting(None)) as GuestId;
    shared.apply(crate::engine::event::Event::Guest { id, op });
    Asked { shared: shared.clone(), id, done: false }
}

impl Future for Asked {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let key = self.id as usize;
        let outcome = {
            let mut table = self.shared.answers.table.borrow_mut();
            match &mut table[key] {
                Place::Waiting(waker) => {
                    if waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
                        *waker = Some(cx.waker().clone());
                    }
                    return Poll::Pending;
                }
                Place::Answered(_) | Place::Abandoned => match table.remove(key) {
                    Place::Answered(outcome) => outcome,
                    Place::Waiting(_) | Place::Abandoned => Err(GuestError::Io),
                },
            }
        };
        self.done = true;
        Poll::Ready(outcome)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut table = self.shared.answers.table.borrow_mut();
        let key = self.id as usize;
        match table.get_mut(key) {
            Some(place @ Place::Waiting(_)) => *place = Place::Abandoned,
            Some(_) => {
                table.remove(key);
            }
            None => {}
        }
    }
}
