//! A guest's request from the door to the answer: limits, order, the write-intent mark, the replicas, and the wait
//! until the record of who is in sync is safe.

use bytes::Bytes;

use crate::engine::assemble;
use crate::engine::core::{Engine, Phase, Todo};
use crate::engine::event::{Answer, Effect, Event, GuestError, GuestId, GuestOp, StopReason};
use crate::engine::groups::{BarrierOp, Purpose, Replies};
use crate::engine::locks::Mode;
use crate::engine::place::{Missed, Standing};
use crate::engine::slots::{Slot, SlotSet};
use crate::engine::table::{Entry, Job, JobKind, Part, Stage, Work};
use crate::geometry::Range;
use crate::wire::message::{Control, FailureKind, Reply, Request, RunKind};

impl Engine {
    pub(super) fn guest(&mut self, id: GuestId, op: GuestOp) {
        let (offset, len) = match &op {
            GuestOp::Read { offset, len } => (*offset, u64::from(*len)),
            GuestOp::Write { offset, data, .. } => (*offset, data.len() as u64),
            GuestOp::Zero { offset, len, .. } | GuestOp::Allocation { offset, len } => (*offset, *len),
            GuestOp::Flush => (0, 0),
        };
        let refusal = if self.closing.is_some() {
            Some(GuestError::ShuttingDown)
        } else if offset.checked_add(len).is_none_or(|end| end > self.size) {
            Some(GuestError::Invalid)
        } else if self.stall_expired {
            Some(GuestError::Io)
        } else {
            None
        };
        if let Some(error) = refusal {
            self.metrics.errors += 1;
            self.out.push(Effect::Answer { id, result: Err(error) });
            return;
        }
        if !self.throttled.is_empty() || !self.iops.open(self.now) || !self.bandwidth.open(self.now) {
            self.throttled.push_back((id, op));
            return;
        }
        self.begin(id, op);
    }

    /// Lets those pass that waited for the limits.
    pub(super) fn unthrottle(&mut self) {
        while !self.throttled.is_empty() && self.iops.open(self.now) && self.bandwidth.open(self.now) {
            if let Some((id, op)) = self.throttled.pop_front() {
                self.begin(id, op);
            }
        }
    }

    fn begin(&mut self, id: GuestId, op: GuestOp) {
        self.iops.take(1);
        let job = |kind, offset, len| Job {
            guest: id,
            kind,
            bytes: len,
            began: self.now,
            parts: 0,
            error: None,
            pieces: Vec::new(),
            offset,
            len,
        };
        let (key, parts) = match op {
            GuestOp::Read { offset, len } => {
                let key = self.table.insert(Entry::Job(job(JobKind::Read, offset, u64::from(len))));
                let mut parts = Vec::with_capacity(1);
                assemble::covering(offset, u64::from(len), |range| parts.push((range, Work::Read)));
                (key, parts)
            }
            GuestOp::Write { offset, data, durable } => {
                let key = self.table.insert(Entry::Job(job(JobKind::Write, offset, data.len() as u64)));
                let mut parts = Vec::with_capacity(1);
                assemble::write_parts(offset, &data, durable, |range, work| parts.push((range, work)));
                (key, parts)
            }
            GuestOp::Zero { offset, len, allocate, durable } => {
                let key = self.table.insert(Entry::Job(job(JobKind::Zero, offset, len)));
                let mut parts = Vec::with_capacity(1);
                assemble::zero_parts(offset, len, allocate, durable, |range, work| parts.push((range, work)));
                (key, parts)
            }
            GuestOp::Flush => {
                let key = self.table.insert(Entry::Job(job(JobKind::Flush, 0, 0)));
                (key, vec![(Range::new(0, 0), Work::Flush)])
            }
            GuestOp::Allocation { offset, len } => return self.allocation(id, offset, len),
        };
        self.metrics.in_flight += 1;
        if let Some(job) = self.table.job(key) {
            job.parts = parts.len() as u32;
            let bytes = job.bytes;
            self.bandwidth.take(bytes);
        }
        if parts.is_empty() {
            self.finish_job(key);
        }
        for (range, work) in parts {
            self.begin_part(Some(key), range, work);
        }
    }

    fn begin_part(&mut self, job: Option<usize>, range: Range, work: Work) {
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
    fn claim(&mut self, key: usize) {
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
    fn set_aside(&mut self, key: usize) {
        if let Some(part) = self.table.part(key) {
            part.stage = Stage::Backlog;
        }
        self.backlog.push_back(key);
        self.release_range(key);
    }

    fn release_range(&mut self, key: usize) {
        let mut ready = std::mem::take(&mut self.ready);
        self.locks.release(key, &mut ready);
        self.todo.extend(ready.drain(..).map(Todo::Ranged));
        self.ready = ready;
    }

    /// Whether there are enough replicas to do anything.
    pub(super) fn enough(&self) -> bool {
        let members = self.in_sync().len();
        members > 0 && members >= self.config.min_in_sync as usize && !self.reopening
    }

    fn may_pass(&self, work: &Work) -> bool {
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

    fn go(&mut self, key: usize) {
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
    fn send_read(&mut self, key: usize) {
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

    pub(super) fn part_reply(&mut self, key: usize, slot: Slot, reply: Reply) {
        let Some(part) = self.table.part(key) else { return };
        if let Reply::Failed(failure) = &reply
            && failure.kind == FailureKind::Fenced
        {
            return self.fenced();
        }
        match part.stage {
            Stage::Out(Some(reader)) if reader == slot => self.read_reply(key, slot, reply),
            Stage::Out(None) if part.waiting.contains(slot) => {
                match reply {
                    Reply::Done => {
                        part.applied.insert(slot);
                    }
                    Reply::Failed(failure) if failure.kind == FailureKind::NoSpace => {
                        part.refused.insert(slot);
                    }
                    Reply::Failed(failure) => {
                        let why = format!("failed to write: {failure}");
                        return self.fail(slot, &why);
                    }
                    other => {
                        let why = format!("answered a write with {other:?}");
                        return self.fail(slot, &why);
                    }
                }
                part.waiting.remove(slot);
                if part.waiting.is_empty() {
                    self.part_answered(key);
                }
            }
            _ => {}
        }
    }

    fn read_reply(&mut self, key: usize, slot: Slot, reply: Reply) {
        let place = self.place(slot);
        place.reads_out = place.reads_out.saturating_sub(1);
        let last = self.in_sync().len() == 1;
        let Some(part) = self.table.part(key) else { return };
        match reply {
            Reply::Data(data) if data.len() as u64 == part.range.len => self.read_done(key, Ok(data)),
            // With nobody else to ask, a bad sector is the guest's to know; leaving would take all other data along.
            Reply::Failed(_) if last => self.read_done(key, Err(GuestError::Io)),
            Reply::Failed(failure) => self.fail(slot, &format!("failed to read: {failure}")),
            _ => self.fail(slot, "answered a read with something else"),
        }
    }

    fn read_done(&mut self, key: usize, result: Result<Bytes, GuestError>) {
        let Some(part) = self.table.part(key) else { return };
        match (&part.work, result) {
            (Work::Merge { at, data, durable }, Ok(block)) => {
                let whole = assemble::merge(&block, *at, data);
                part.work = Work::Write { data: whole, durable: *durable };
                self.go(key);
            }
            (_, Ok(data)) => {
                let (at, job) = (part.range.offset, part.job);
                if let Some(job) = job.and_then(|job| self.table.job(job)) {
                    job.pieces.push((at, data));
                }
                self.finish_part(key, None);
            }
            (_, Err(error)) => self.finish_part(key, Some(error)),
        }
    }

    /// Everybody who got it has answered or is gone.
    pub(super) fn part_answered(&mut self, key: usize) {
        let in_sync = self.in_sync();
        let Some(part) = self.table.part(key) else { return };
        if !matches!(part.stage, Stage::Out(None)) || !part.waiting.is_empty() {
            return;
        }
        let (applied, refused) = (part.applied, part.refused);
        if applied.and(in_sync).is_empty() {
            if refused.and(in_sync).is_empty() {
                // Everybody left before answering; it is sent again when somebody is back.
                return;
            }
            for slot in applied.iter() {
                self.fail(slot, "wrote what the replicas in sync had no space for");
            }
            return self.finish_part(key, Some(GuestError::NoSpace));
        }
        part.stage = Stage::Held;
        self.held.push(key);
        let mut ready = std::mem::take(&mut self.ready);
        self.locks.settle(key, &mut ready);
        self.todo.extend(ready.drain(..).map(Todo::Ranged));
        self.ready = ready;
        for slot in refused.iter() {
            self.fail(slot, "its disk is full while others have space");
        }
    }

    /// A write may be acknowledged when every member has on disk who the members are.
    pub(super) fn may_acknowledge(&self) -> bool {
        self.moving.is_none() && self.enough()
    }

    pub(super) fn held_changes(&mut self) -> usize {
        let Self { held, table, .. } = self;
        held.iter().filter(|key| table.part(**key).is_some_and(|part| part.work.changes())).count()
    }

    pub(super) fn release_held(&mut self) -> bool {
        if self.held.is_empty() || !self.may_acknowledge() {
            return false;
        }
        for key in std::mem::take(&mut self.held) {
            self.finish_part(key, None);
        }
        true
    }

    pub(super) fn finish_part(&mut self, key: usize, mut error: Option<GuestError>) {
        let Some(Entry::Part(part)) = self.table.remove(key) else { return };
        if part.marked {
            self.intents.leave(part.range, self.now);
        }
        match part.work {
            Work::Flush => {
                if error.is_none() && std::mem::take(&mut self.lost_writes) {
                    error = Some(GuestError::Io);
                }
                self.unflushed.flush_ends(key, error.is_none());
                if error.is_none() {
                    self.flushed_at = self.flushed_at.max(part.job.map_or(0, |job| self.began_at(job)));
                }
            }
            Work::Read => {}
            Work::Write { .. } | Work::Zero { .. } | Work::Merge { .. } => {
                self.changing -= 1;
                if error.is_none() {
                    self.unflushed.wrote(part.range);
                }
            }
        }
        self.release_range(key);
        if let Some(job) = part.job {
            self.part_of_job_done(job, error);
        }
    }

    fn began_at(&mut self, job: usize) -> u64 {
        self.table.job(job).map_or(0, |job| job.began)
    }

    fn part_of_job_done(&mut self, key: usize, error: Option<GuestError>) {
        let Some(job) = self.table.job(key) else { return };
        job.error = job.error.or(error);
        job.parts -= 1;
        if job.parts == 0 {
            self.finish_job(key);
        }
    }

    fn finish_job(&mut self, key: usize) {
        let Some(Entry::Job(mut job)) = self.table.remove(key) else { return };
        self.metrics.in_flight -= 1;
        let micros = self.now - job.began;
        match job.kind {
            JobKind::Read => {
                self.metrics.reads += 1;
                self.metrics.read_bytes += job.bytes;
                self.metrics.read_latency.record(micros);
            }
            JobKind::Write => {
                self.metrics.writes += 1;
                self.metrics.write_bytes += job.bytes;
                self.metrics.write_latency.record(micros);
            }
            JobKind::Zero => self.metrics.zeroes += 1,
            JobKind::Flush => {
                self.metrics.flushes += 1;
                self.metrics.flush_latency.record(micros);
            }
        }
        let result = match (job.error, job.kind) {
            (Some(error), _) => {
                self.metrics.errors += 1;
                Err(error)
            }
            (None, JobKind::Read) => Ok(Answer::Data(assemble::join(job.offset, job.len, &mut job.pieces))),
            (None, _) => Ok(Answer::Done),
        };
        self.out.push(Effect::Answer { id: job.guest, result });
    }

    /// What was out at a replica that left: reads go to another one, writes no longer wait for it.
    pub(super) fn parts_without(&mut self, slot: Slot) {
        for key in self.table.keys() {
            let Some(part) = self.table.part(key) else { continue };
            match part.stage {
                Stage::Out(Some(reader)) if reader == slot => self.send_read(key),
                Stage::Out(None) => {
                    part.applied.remove(slot);
                    part.refused.remove(slot);
                    if part.waiting.remove(slot) && part.waiting.is_empty() {
                        self.todo.push_back(Todo::Answered(key));
                    }
                }
                _ => {}
            }
        }
        self.place(slot).reads_out = 0;
    }

    /// Replicas are back after there were none: everything that was out is sent again.
    pub(super) fn send_again(&mut self) {
        self.held.clear();
        for key in self.table.keys() {
            let Some(part) = self.table.part(key) else { continue };
            match part.stage {
                Stage::Out(None) | Stage::Held => {
                    self.locks.unsettle(key);
                    self.send_all(key);
                }
                _ => {}
            }
        }
    }

    /// Guests waited long enough for replicas. What some replica may have stays, to become the same everywhere; what
    /// nobody was sent is forgotten, so that it cannot come after newer writes.
    pub(super) fn expire_stall(&mut self) {
        self.stall_expired = true;
        for key in self.table.keys() {
            let Some(part) = self.table.part(key) else { continue };
            let Some(job) = part.job.take() else { continue };
            if !part.begun || matches!(part.work, Work::Flush) {
                let counted = matches!(part.stage, Stage::Intent | Stage::Out(_) | Stage::Held);
                if part.work.changes() && !counted {
                    // `finish_part` takes back what passing the gate counted.
                    self.changing += 1;
                }
                self.backlog.retain(|waiting| *waiting != key);
                self.awaiting_marks.retain(|waiting| *waiting != key);
                self.held.retain(|waiting| *waiting != key);
                self.finish_part(key, Some(GuestError::Io));
            }
            self.part_of_job_done(job, Some(GuestError::Io));
        }
        for (id, _) in std::mem::take(&mut self.throttled) {
            self.metrics.errors += 1;
            self.out.push(Effect::Answer { id, result: Err(GuestError::Io) });
        }
    }

    pub(super) fn answer_everybody(&mut self, reason: &StopReason) {
        let error = match reason {
            StopReason::Closed => GuestError::ShuttingDown,
            StopReason::Fenced | StopReason::CannotStart(_) => GuestError::Io,
        };
        for key in self.table.keys() {
            if let Some(job) = self.table.job(key) {
                let id = job.guest;
                self.table.remove(key);
                self.out.push(Effect::Answer { id, result: Err(error) });
            }
        }
        for (id, _) in std::mem::take(&mut self.throttled) {
            self.out.push(Effect::Answer { id, result: Err(error) });
        }
        self.fail_commands(&reason.to_string());
    }

    pub(super) fn refuse_after_stop(&mut self, event: &Event) {
        match event {
            Event::Guest { id, .. } => {
                self.out.push(Effect::Answer { id: *id, result: Err(GuestError::ShuttingDown) });
            }
            Event::Command { id, .. } => self.command_failed(*id, "the volume is stopped"),
            _ => {}
        }
    }

    fn allocation(&mut self, guest: GuestId, offset: u64, len: u64) {
        let Some(slot) = self.in_sync().iter().next() else {
            self.out.push(Effect::Answer { id: guest, result: Ok(Answer::Allocation(vec![(len, false)])) });
            return;
        };
        let mut aligned = Range::new(offset, len);
        aligned.offset = offset / crate::geometry::BLOCK * crate::geometry::BLOCK;
        aligned.len = (offset + len).next_multiple_of(crate::geometry::BLOCK) - aligned.offset;
        let request = Request::Control(Control::Allocation { range: aligned });
        self.ask_one(slot, &request, Purpose::Allocation { guest, offset, len });
    }

    /// Not knowing is answered as data, which is always right.
    pub(super) fn allocation_answered(&mut self, guest: GuestId, offset: u64, len: u64, replies: Replies) {
        let end = offset + len;
        let mut runs = Vec::new();
        if let Some((_, Some(Reply::Runs(found)))) = replies.into_iter().next() {
            for run in found {
                let (from, to) = (run.range.offset.max(offset), run.range.end().min(end));
                if from < to {
                    runs.push((to - from, run.kind != RunKind::Data));
                }
            }
        }
        if runs.is_empty() {
            runs.push((len, false));
        }
        self.out.push(Effect::Answer { id: guest, result: Ok(Answer::Allocation(runs)) });
    }
}
