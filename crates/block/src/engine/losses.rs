//! What becomes of requests when replicas leave, come back, stay away too long, or the volume ends.

use crate::engine::core::{Engine, Todo};
use crate::engine::event::{Effect, Event, GuestError, StopReason};
use crate::engine::slots::Slot;
use crate::engine::table::{Stage, Work};

impl Engine {
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
}
