//! What replicas answer to a part, and when that may be told to the guest: not before the record of who is in sync is
//! safe.

use bytes::Bytes;

use crate::engine::assemble;
use crate::engine::core::{Engine, Todo};
use crate::engine::event::GuestError;
use crate::engine::slots::Slot;
use crate::engine::table::{Entry, Stage, Work};
use crate::wire::message::{FailureKind, Reply};

impl Engine {
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

    pub(super) fn read_reply(&mut self, key: usize, slot: Slot, reply: Reply) {
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

    pub(super) fn read_done(&mut self, key: usize, result: Result<Bytes, GuestError>) {
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
}
