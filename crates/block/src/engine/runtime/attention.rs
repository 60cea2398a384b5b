//! Whether the thread should stay awake for what will come at once. Waking a thread that sleeps costs more than a
//! replica's answer takes, above all on a virtual machine; a thread that looks around for a moment is there already.
//! Never stays awake for long: only with few requests under way, and only where waits have lately been short.

use std::cell::Cell;

/// A wait that will take longer is slept through.
const SHORT_MICROS: u64 = 150;

/// With more requests under way than this there is always something to do, and answers are better taken together.
const FEW: u64 = 2;

#[derive(Default)]
pub(super) struct Attention {
    /// The wait that runs, and since when.
    since: Cell<u64>,
    requests: Cell<u64>,
    /// Guests think and replicas answer at paces of their own.
    guest: Cell<Pace>,
    replicas: Cell<Pace>,
}

/// A moving average of waits, each counted as no longer than what would be slept through anyway.
#[derive(Clone, Copy)]
struct Pace(u64);

impl Default for Pace {
    fn default() -> Self {
        Self(2 * SHORT_MICROS)
    }
}

impl Pace {
    fn after(self, wait: u64) -> Self {
        Self((3 * self.0 + wait.min(4 * SHORT_MICROS)) / 4)
    }

    const fn is_short(self) -> bool {
        self.0 < SHORT_MICROS
    }
}

impl Attention {
    /// Something happened; so many requests are under way now.
    pub(super) fn moved(&self, now: u64, requests: u64) {
        let pace = self.pace();
        pace.set(pace.get().after(now.saturating_sub(self.since.get())));
        self.since.set(now);
        self.requests.set(requests);
    }

    /// Whether to look around once more rather than to sleep.
    pub(super) fn is_worth_it(&self, now: u64) -> bool {
        self.requests.get() <= FEW
            && self.pace().get().is_short()
            && now.saturating_sub(self.since.get()) < SHORT_MICROS
    }

    /// Of whom the wait that runs is for.
    fn pace(&self) -> &Cell<Pace> {
        if self.requests.get() == 0 { &self.guest } else { &self.replicas }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One request after another: so long until it is answered, so long until the next.
    fn play(attention: &Attention, from: u64, rounds: u64, answer: u64, think: u64) -> u64 {
        let mut now = from;
        for _ in 0..rounds {
            attention.moved(now, 1);
            now += answer;
            attention.moved(now, 0);
            now += think;
        }
        now
    }

    #[test]
    fn a_guest_in_a_hurry_is_waited_for() {
        let attention = Attention::default();
        assert!(!attention.is_worth_it(0), "nothing is known yet");
        let now = play(&attention, 0, 20, 30, 20);
        assert!(attention.is_worth_it(now));
        assert!(!attention.is_worth_it(now + SHORT_MICROS), "but not for long");
    }

    #[test]
    fn a_guest_that_takes_its_time_is_not_waited_for_but_its_answers_are() {
        let attention = Attention::default();
        let now = play(&attention, 0, 20, 30, 5_000);
        assert!(!attention.is_worth_it(now - 4_990));
        attention.moved(now, 1);
        assert!(attention.is_worth_it(now + 10));
    }

    #[test]
    fn slow_disks_are_slept_through() {
        let attention = Attention::default();
        let now = play(&attention, 0, 20, 4_000, 10);
        attention.moved(now, 1);
        assert!(!attention.is_worth_it(now + 10));
    }

    #[test]
    fn one_slow_answer_among_many_changes_nothing() {
        let attention = Attention::default();
        let now = play(&attention, 0, 20, 10, 10);
        let now = play(&attention, now, 1, 5_000, 10);
        let now = play(&attention, now, 4, 10, 10);
        attention.moved(now, 1);
        assert!(attention.is_worth_it(now + 10));
    }

    #[test]
    fn with_many_requests_there_is_no_need() {
        let attention = Attention::default();
        let now = play(&attention, 0, 20, 10, 10);
        attention.moved(now, FEW + 1);
        assert!(!attention.is_worth_it(now));
    }
}
