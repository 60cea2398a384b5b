//! The requests a connection has begun and not answered: a bounded set of futures polled in place.
//! A slot and its waker are made once and used again, so that a request costs no allocation here. It never polls a
//! future that nobody woke.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};

use futures::task::AtomicWaker;

/// How many requests one connection has in flight at most. Clients keep 32 to 128 in flight; more would only queue
/// in the volume.
pub(crate) const CAPACITY: usize = WORDS * 64;
const WORDS: usize = 4;

pub(crate) struct InFlight<F> {
    slots: Vec<Slot<F>>,
    free: Vec<usize>,
    woken: Arc<Woken>,
}

struct Slot<F> {
    future: Pin<Box<Option<F>>>,
    waker: Waker,
}

/// One bit for each slot that wants to be polled.
struct Woken {
    bits: [AtomicU64; WORDS],
    owner: AtomicWaker,
}

struct SlotWaker {
    woken: Arc<Woken>,
    slot: usize,
}

impl<F: Future> InFlight<F> {
    pub fn new() -> Self {
        let woken = Woken { bits: Default::default(), owner: AtomicWaker::new() };
        Self { slots: Vec::new(), free: Vec::new(), woken: Arc::new(woken) }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_full(&self) -> bool {
        self.len() == CAPACITY
    }

    /// Takes a future in; it is first polled by the next [`Self::poll`].
    ///
    /// # Panics
    /// When the set is full: the caller asks [`Self::is_full`] first, because that is its back-pressure.
    pub fn start(&mut self, future: F) {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.add_slot(),
        };
        self.slots[slot].future.set(Some(future));
        self.woken.set(slot);
    }

    /// Polls every future that was woken or is new, and hands each result to `done`.
    pub fn poll(&mut self, cx: &mut Context<'_>, mut done: impl FnMut(F::Output)) {
        self.woken.owner.register(cx.waker());
        for word in 0..WORDS {
            if self.woken.bits[word].load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut bits = self.woken.bits[word].swap(0, Ordering::AcqRel);
            while bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.poll_slot(slot, &mut done);
            }
        }
    }

    fn poll_slot(&mut self, index: usize, done: &mut impl FnMut(F::Output)) {
        let slot = &mut self.slots[index];
        // A waker may be used after its future has ended.
        let Some(future) = slot.future.as_mut().as_pin_mut() else { return };
        if let std::task::Poll::Ready(output) = future.poll(&mut Context::from_waker(&slot.waker)) {
            slot.future.set(None);
            self.free.push(index);
            done(output);
        }
    }

    fn add_slot(&mut self) -> usize {
        let slot = self.slots.len();
        assert!(slot < CAPACITY, "a request was begun although {CAPACITY} are in flight");
        let waker = Waker::from(Arc::new(SlotWaker { woken: self.woken.clone(), slot }));
        self.slots.push(Slot { future: Box::pin(None), waker });
        slot
    }
}

impl Woken {
    /// Whether the bit was clear before.
    fn set(&self, slot: usize) -> bool {
        let bit = 1 << (slot % 64);
        self.bits[slot / 64].fetch_or(bit, Ordering::AcqRel) & bit == 0
    }
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.woken.set(self.slot) {
            self.woken.owner.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::task::Poll;

    use super::*;

    fn poll_once<F: Future>(set: &mut InFlight<F>) -> Vec<F::Output> {
        let mut outputs = Vec::new();
        set.poll(&mut Context::from_waker(Waker::noop()), |output| outputs.push(output));
        outputs
    }

    #[test]
    fn a_future_is_polled_when_new_and_then_only_when_woken() {
        let polls = Rc::new(Cell::new(0));
        let (send, mut receive) = tokio::sync::oneshot::channel::<u8>();
        let counted = polls.clone();
        let mut set = InFlight::new();
        set.start(async move {
            std::future::poll_fn(|cx| {
                counted.set(counted.get() + 1);
                Pin::new(&mut receive).poll(cx)
            })
            .await
        });
        assert!(poll_once(&mut set).is_empty());
        assert!(poll_once(&mut set).is_empty());
        assert_eq!(polls.get(), 1, "nobody woke it in between");
        send.send(7).unwrap();
        assert_eq!(poll_once(&mut set), [Ok(7)]);
        assert!(set.is_empty());
    }

    #[test]
    fn slots_are_used_again_and_a_late_wake_of_an_ended_future_does_no_harm() {
        let kept: Rc<Cell<Option<Waker>>> = Rc::default();
        let mut set = InFlight::new();
        let begin = |id: u32| {
            let kept = kept.clone();
            std::future::poll_fn(move |cx| {
                kept.set(Some(cx.waker().clone()));
                Poll::Ready(id)
            })
        };
        for id in 0..1000 {
            set.start(begin(id));
            assert_eq!(poll_once(&mut set), [id]);
            kept.take().unwrap().wake();
            assert!(poll_once(&mut set).is_empty());
        }
        assert_eq!(set.slots.len(), 1);
    }

    #[test]
    fn it_holds_as_many_as_it_says() {
        let mut set = InFlight::new();
        for _ in 0..CAPACITY {
            assert!(!set.is_full());
            set.start(std::future::ready(()));
        }
        assert!(set.is_full());
        assert_eq!(poll_once(&mut set).len(), CAPACITY);
        assert!(set.is_empty());
    }
}
