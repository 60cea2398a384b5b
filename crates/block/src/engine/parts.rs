//! One part of a request on its way out: the gate, its range, the write-intent mark, and the replicas it is sent to.
//! Nothing here decides what an answer means.

use crate::engine::core::{Engine, Phase, Todo};
use crate::engine::event::Effect;
use crate::engine::groups::{BarrierOp, Purpose, Replies};
use crate::engine::locks::Mode;
use crate::engine::place::{Missed, Standing};
use crate::engine::slots::{Slot, SlotSet};
use crate::engine::table::{Entry, Part, Stage, Work};
use crate::geometry::Range;
use crate::wire::message::{Control, Reply, Request};

impl Engine {
    pub(super) fn begin_part(&mut self, job: Option<usize>, range: Range, work: Work) {
        let passes = self.may_pass(&work);
        let part = Part {
            job,
            range,
            work,
            stage: Stage::Backlog,
            waiting: SlotSet::EMPTY,
            refused: SlotSet::EMPTY,
            applied: SlotSet::EMPTY,
            marked: false,
            begun: false,
            wire: 0,
            sent: 0,
        };
        let key = self.table.insert(Entry::Part(part));
        if passes {
            self.claim(key);
        } else {
            self.backlog.push_back(key);
        }
    }

    /// Takes the part's range, now or when its turn comes.
    pub(super) fn claim(&mut self, key: usize) {
        let Some(part) = self.table.part(key) else { return };
        part.stage = Stage::Range;
        let mode = match part.work {
            Work::Read => Some(Mode::Shared),
            Work::Write { .. } | Work::Merge { .. } | Work::Zero { .. } => Some(Mode::Exclusive),
            Work::Flush => None,
        };
        let range = part.range;
        if mode.is_none_or(|mode| self.locks.acquire(key, range, mode)) {
            self.ranged(key);
        }
    }

    /// Puts a part aside that nobody has been sent; it holds no range meanwhile, so that copies can go on.
    pub(super) fn set_aside(&mut self, key: usize) {
        if let Some(part) = self.table.part(key) {
            part.stage = Stage::Backlog;
        }
        self.backlog.push_back(key);
        self.release_range(key);
    }

    pub(super) fn release_range(&mut self, key: usize) {
        let mut ready = std::mem::take(&mut self.ready);
        self.locks.release(key, &mut ready);
        self.todo.extend(ready.drain(..).map(Todo::Ranged));
        self.ready = ready;
    }

    /// Whether there are enough replicas to do anything.
    pub(super) fn enough(&self) -> bool {
        let members = self.in_sync().len();
        members > 0 && members >= self.config.min_in_sync as usize && self.grounded && !self.reopening
    }

    pub(super) fn may_pass(&self, work: &Work) -> bool {
        if self.phase != Phase::Serving || !self.enough() {
            return false;
        }
        match &self.barrier {
            None => true,
            Some(barrier) => match barrier.op {
                BarrierOp::Revert { .. } => false,
                // Everything that was accepted is finished first.
                BarrierOp::Close => !barrier.running,
                _ => !work.changes(),
            },
        }
    }

    /// The part has its range.
    pub(super) fn ranged(&mut self, key: usize) {
        let Some(part) = self.table.part(key) else { return self.copy_piece(key) };
        let work = part.work.clone();
        if self.may_pass(&work) {
            if work.changes() {
                self.changing += 1;
            }
            self.go(key);
        } else {
            self.set_aside(key);
        }
    }

    pub(super) fn pass_backlog(&mut self) -> bool {
        if self.backlog.is_empty() || self.phase != Phase::Serving || !self.enough() {
            return false;
        }
        let waiting = std::mem::take(&mut self.backlog);
        let before = waiting.len();
        for key in waiting {
            let passes =
                self.table.part(key).map(|part| part.work.clone()).is_some_and(|work| self.may_pass(&work));
            if passes {
                self.claim(key);
            } else {
                self.backlog.push_back(key);
            }
        }
        self.backlog.len() < before
    }

    pub(super) fn go(&mut self, key: usize) {
        let (now, size) = (self.now, self.size);
        let Some(part) = self.table.part(key) else { return };
        match part.work {
            Work::Read | Work::Merge { .. } => self.send_read(key),
            Work::Flush => {
                self.unflushed.flush_begins(key);
                self.send_all(key);
            }
            Work::Write { .. } | Work::Zero { .. } => {
                let range = part.range;
                if part.marked || self.intents.enter(range, size, now) {
                    if let Some(part) = self.table.part(key) {
                        part.marked = true;
                    }
                    self.send_all(key);
                } else {
                    part.marked = true;
                    part.stage = Stage::Intent;
                    self.awaiting_marks.push(key);
                }
            }
        }
    }

    pub(super) fn request_marks(&mut self) -> bool {
        if self.marks_out || !self.enough() {
            return false;
        }
        let Some(set) = self.intents.request() else { return false };
        self.marks_out = true;
        let request = Request::Control(Control::Intents { set, clear: Vec::new() });
        self.ask(self.writers(), &request, Purpose::Marks);
        true
    }

    pub(super) fn marks_answered(&mut self, replies: &Replies) {
        self.marks_out = false;
        let mut recorded = false;
        for (slot, reply) in replies {
            match reply {
                Some(Reply::Done) => recorded |= self.places[slot.index()].standing == Standing::InSync,
                Some(_) => self.fail(*slot, "could not record where it will be written"),
                None => {}
            }
        }
        if recorded {
            self.intents.recorded();
        } else {
            self.intents.request_lost();
        }
        for key in std::mem::take(&mut self.awaiting_marks) {
            let Some(part) = self.table.part(key) else { continue };
            let range = part.range;
            if self.intents.ready(range) {
                self.send_all(key);
            } else {
                self.awaiting_marks.push(key);
            }
        }
    }

    /// To one replica: the one used last while it keeps up, so that its caches stay warm, else the least busy.
    pub(super) fn send_read(&mut self, key: usize) {
        const KEEPS_UP: u32 = 16;
        let candidates = self.in_sync();
        let busy = |slot: &Slot| self.places[slot.index()].reads_out;
        let chosen = self
            .preferred
            .filter(|slot| candidates.contains(*slot) && busy(slot) < KEEPS_UP)
            .or_else(|| candidates.iter().min_by_key(busy));
        let Some(slot) = chosen else {
            if self.table.part(key).is_some_and(|part| part.work.changes()) {
                self.changing -= 1;
            }
            return self.set_aside(key);
        };
        self.preferred = Some(slot);
        let now = self.now;
        let wire = self.table.wire_id(key);
        let Some(part) = self.table.part(key) else { return };
        part.stage = Stage::Out(Some(slot));
        part.wire = wire;
        part.sent = now;
        let request = Request::Read { range: part.range };
        let place = self.place(slot);
        place.reads_out += 1;
        place.reads += 1;
        if let Some(link) = place.link {
            self.out.push(Effect::Send { link, id: wire, request });
        }
    }

    /// To everybody who must have it. Also when it is sent again: writing the same once more changes nothing.
    pub(super) fn send_all(&mut self, key: usize) {
        let wire = self.table.wire_id(key);
        // A replica under rebuild flushes too: when it joins, what was flushed must be on its disk as well.
        let (targets, now) = (self.writers(), self.now);
        let Some(part) = self.table.part(key) else { return };
        let request = match &part.work {
            Work::Write { data, durable } => {
                Request::Write { offset: part.range.offset, data: data.clone(), durable: *durable }
            }
            Work::Zero { allocate, durable } => {
                Request::Zero { range: part.range, allocate: *allocate, durable: *durable }
            }
            Work::Flush => Request::Flush,
            Work::Read | Work::Merge { .. } => return,
        };

        part.stage = Stage::Out(None);
        part.wire = wire;
        part.sent = now;
        part.waiting = targets;
        part.refused = SlotSet::EMPTY;
        part.applied = SlotSet::EMPTY;
        part.begun = true;
        let (range, changes) = (part.range, part.work.changes());
        for slot in targets.iter() {
            let place = self.place(slot);
            place.writes += 1;
            if let Some(link) = place.link {
                self.out.push(Effect::Send { link, id: wire, request: request.clone() });
            }
        }
        if changes {
            for place in &mut self.places {
                if let (Standing::Away | Standing::Waiting, Missed::Blocks(blocks, _)) =
                    (place.standing, &mut place.missed)
                {
                    blocks.insert_range(range.blocks());
                }
            }
        }
        if targets.is_empty() {
            self.todo.push_back(Todo::Answered(key));
        }
    }
}
