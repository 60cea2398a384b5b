//! What the passing of time does: dialling again, noticing the dead, letting limits refill, giving up waiting, and
//! clearing marks that nobody needs.

use crate::engine::core::{Engine, Phase};
use crate::engine::groups::Purpose;
use crate::engine::place::Standing;
use crate::engine::slots::{Slot, SlotSet};
use crate::engine::table::{Entry, Stage};
use crate::wire::message::{Control, Request};

const PING_EVERY: u64 = 2_000_000;
const MARKS_EVERY: u64 = 5_000_000;
const PURGE_POLL_EVERY: u64 = 500_000;
const REQUESTS_EVERY: u64 = 1_000_000;

impl Engine {
    pub(super) fn tick(&mut self) {
        for slot in self.slots() {
            self.watch(slot);
            if self.phase == Phase::Stopped {
                return;
            }
        }
        self.watch_requests();
        self.unthrottle();
        self.watch_stall();
        if self.phase != Phase::Serving {
            return;
        }
        if self.purging && !self.purge_asked && self.now >= self.purge_poll_at {
            self.purge_poll_at = self.now + PURGE_POLL_EVERY;
            self.purge_asked = true;
            self.ask(self.in_sync(), &Request::Control(Control::Info), Purpose::PurgePoll);
        }
        if self.now >= self.marks_checked_at + MARKS_EVERY {
            self.marks_checked_at = self.now;
            self.clear_marks();
        }
    }

    fn watch(&mut self, slot: Slot) {
        let (now, timeout) = (self.now, self.config.replica_timeout);
        let place = self.place(slot);
        if place.redial_at.is_some_and(|at| now >= at) && place.link.is_none() {
            return self.dial(slot);
        }
        if place.standing == Standing::Away || place.link.is_none() {
            return;
        }
        // A ping is answered at once even while the disk is slow, so silence means that nobody is there.
        if place.pinged && now >= place.last_heard + timeout {
            return self.fail(slot, "does not answer");
        }
        if !place.pinged && now >= place.last_heard + PING_EVERY.min(timeout / 2) {
            place.pinged = true;
            self.ask_one(slot, &Request::Control(Control::Ping), Purpose::Ping);
        }
    }

    /// A replica that is alive but leaves a request unanswered is no better than a dead one. Only a check of all
    /// content may take as long as it takes.
    fn watch_requests(&mut self) {
        if self.now < self.requests_checked_at + REQUESTS_EVERY {
            return;
        }
        self.requests_checked_at = self.now;
        let limit = self.now.saturating_sub(self.config.request_timeout);
        let mut late = SlotSet::EMPTY;
        for (_, entry) in self.table.iter() {
            match entry {
                Entry::Part(part) if part.sent < limit => match part.stage {
                    Stage::Out(Some(reader)) => late.insert(reader),
                    Stage::Out(None) => late = late.union(part.waiting),
                    Stage::Backlog | Stage::Range | Stage::Intent | Stage::Held => {}
                },
                Entry::Group(group)
                    if group.sent < limit && !matches!(group.purpose, Purpose::Verify { .. }) =>
                {
                    late = late.union(group.waiting);
                }
                _ => {}
            }
        }
        for slot in late.iter() {
            self.fail(slot, "left a request unanswered");
        }
    }

    fn watch_stall(&mut self) {
        let stalled = self.phase == Phase::Serving && !self.enough();
        match (stalled, self.stalled_since) {
            (true, None) => self.stalled_since = Some(self.now),
            (true, Some(since)) => {
                if !self.stall_expired && self.now >= since + self.config.stall_timeout {
                    self.expire_stall();
                }
            }
            (false, _) => {
                self.stalled_since = None;
                self.stall_expired = false;
            }
        }
    }

    /// Marks go when their regions were flushed everywhere, and only while nobody is away who may need them.
    fn clear_marks(&mut self) {
        let everybody = self.places.iter().all(|place| place.removed || place.standing == Standing::InSync);
        if !everybody || !self.record.away.is_empty() || self.moving.is_some() || self.marks_out {
            return;
        }
        let clear = self.intents.clearable(self.flushed_at, self.now);
        if !clear.is_empty() {
            let request = Request::Control(Control::Intents { set: Vec::new(), clear });
            // Until all have answered none is set: requests may overtake one another, and the mark would be gone.
            self.marks_out = true;
            self.ask(self.in_sync(), &request, Purpose::MarksCleared);
        }
    }

    /// Requests of guests under way.
    pub fn in_flight(&self) -> u64 {
        self.metrics.in_flight
    }

    /// When the next [`Event::Tick`](crate::engine::Event::Tick) is due at the latest.
    pub fn next_tick(&self) -> u64 {
        let mut next = self.now + 1_000_000;
        for place in &self.places {
            if let Some(at) = place.redial_at {
                next = next.min(at);
            }
        }
        if !self.throttled.is_empty() {
            next = next.min(self.iops.opens_at().max(self.bandwidth.opens_at()));
        }
        if self.resync.is_some() && self.rebuild_bucket.rate() > 0 {
            next = next.min(self.rebuild_bucket.opens_at());
        }
        if self.phase == Phase::Gathering {
            next = next.min(self.now + 100_000);
        }
        if self.purging && !self.purge_asked {
            next = next.min(self.purge_poll_at);
        }
        if self.resync.is_none() && self.resync_not_before > self.now {
            next = next.min(self.resync_not_before);
        }
        next.max(self.now + 1_000)
    }
}
