//! What all clients of a server may have with it together. A client that has nothing with it may always begin one
//! request: so nobody ever waits for another client, and one that never reads its answers slows the others at most.

use std::cell::Cell;
use std::rc::Rc;

pub(crate) struct Budget {
    limit: usize,
    used: Cell<usize>,
}

/// One client's part of it, given back when it is dropped.
pub(crate) struct Share {
    budget: Rc<Budget>,
    held: usize,
}

impl Budget {
    pub fn new(limit: usize) -> Rc<Self> {
        Rc::new(Self { limit, used: Cell::new(0) })
    }
}

impl Share {
    pub fn of(budget: &Rc<Budget>) -> Self {
        Self { budget: budget.clone(), held: 0 }
    }

    /// The client now holds this much.
    pub fn set(&mut self, held: usize) {
        let used = &self.budget.used;
        used.set(used.get() - self.held + held);
        self.held = held;
    }

    pub fn has_room(&self) -> bool {
        self.held == 0 || self.budget.used.get() < self.budget.limit
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 100;
    const REQUEST: usize = 30;

    proptest! {
        /// Each step is a client that begins a request of some size if it may, or that is done with what it holds.
        #[test]
        fn all_together_hold_no_more_than_the_limit_and_a_request_each(
            steps in proptest::collection::vec((0..6_usize, proptest::option::of(1..=REQUEST)), 1..200),
        ) {
            let budget = Budget::new(LIMIT);
            let mut shares: Vec<Share> = (0..6).map(|_| Share::of(&budget)).collect();
            for (client, step) in steps {
                let share = &mut shares[client];
                match step {
                    Some(size) if share.has_room() => share.set(share.held + size),
                    Some(_) => prop_assert!(share.held > 0, "it has nothing that could end, and would wait for ever"),
                    None => share.set(0),
                }
                let held: usize = shares.iter().map(|share| share.held).sum();
                prop_assert_eq!(budget.used.get(), held);
                prop_assert!(held < LIMIT + 6 * REQUEST);
            }
            drop(shares);
            prop_assert_eq!(budget.used.get(), 0);
        }
    }
}
