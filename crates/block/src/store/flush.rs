//! Syncs shared by everybody who waits for one: a caller needs one that began after it asked, and no more than that.

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
pub(super) struct SharedSync {
    turns: Mutex<Turns>,
    ended: Condvar,
}

#[derive(Default)]
struct Turns {
    begun: u64,
    /// The last one that succeeded.
    ended: u64,
    running: bool,
}

impl SharedSync {
    /// Returns when a sync that began after this call has succeeded; runs it if nobody else does. After an error
    /// each of the waiters tries for itself, so each hears of it.
    pub fn run<E>(&self, sync: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let mut turns = self.turns.lock();
        let needed = turns.begun + 1;
        while turns.ended < needed {
            if turns.running {
                self.ended.wait(&mut turns);
                continue;
            }
            turns.running = true;
            turns.begun += 1;
            let mine = turns.begun;
            drop(turns);
            let outcome = sync();
            turns = self.turns.lock();
            turns.running = false;
            if outcome.is_ok() {
                turns.ended = turns.ended.max(mine);
            }
            self.ended.notify_all();
            outcome?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn callers_share_a_sync_but_never_one_that_began_before_they_asked() {
        let (shared, asked, begun) = (SharedSync::default(), AtomicU64::new(0), AtomicU64::new(0));
        // What each finished sync is known to cover.
        let covered = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let ticket = asked.fetch_add(1, Ordering::SeqCst) + 1;
                        shared
                            .run(|| {
                                let seen = asked.load(Ordering::SeqCst);
                                begun.fetch_add(1, Ordering::SeqCst);
                                std::thread::yield_now();
                                covered.fetch_max(seen, Ordering::SeqCst);
                                Ok::<(), ()>(())
                            })
                            .unwrap();
                        assert!(covered.load(Ordering::SeqCst) >= ticket);
                    }
                });
            }
        });
        assert!(begun.load(Ordering::SeqCst) <= 800);
    }

    #[test]
    fn an_error_reaches_the_caller_and_does_not_count() {
        let shared = SharedSync::default();
        assert_eq!(shared.run(|| Err("gone")), Err("gone"));
        let ran = AtomicU64::new(0);
        shared
            .run(|| {
                ran.fetch_add(1, Ordering::SeqCst);
                Ok::<(), ()>(())
            })
            .unwrap();
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    }
}
