//! How a frontend's owner reaches its tasks, asleep or not: go on, stop, or freeze for a handover.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// What is wanted of a task that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Serve,
    /// Answer what is in flight, refuse what has only arrived, and close.
    Stop,
    /// Answer what is in flight and give the socket back with all that has only arrived.
    Freeze,
}

/// How the server reaches a connection that may be asleep.
#[derive(Debug)]
pub(crate) struct Orders {
    order: Cell<Order>,
    waker: RefCell<Option<Waker>>,
}

impl Orders {
    pub fn new() -> Self {
        Self { order: Cell::new(Order::Serve), waker: RefCell::default() }
    }

    pub fn give(&self, order: Order) {
        self.order.set(order);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    pub fn current(&self) -> Order {
        self.order.get()
    }

    /// The task that is to be woken by the next order.
    pub fn register(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// Waits until there is an order other than to serve.
    pub async fn changed(&self) -> Order {
        poll_fn(|cx| match self.current() {
            Order::Serve => {
                self.register(cx);
                Poll::Pending
            }
            order => Poll::Ready(order),
        })
        .await
    }
}
