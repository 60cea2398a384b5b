//! A guest's request at the door: limits, its parts, and its answer when all of them have ended.

use crate::engine::assemble;
use crate::engine::core::Engine;
use crate::engine::event::{Answer, Effect, GuestError, GuestId, GuestOp};
use crate::engine::groups::{Purpose, Replies};
use crate::engine::table::{Entry, Job, JobKind, Work};
use crate::geometry::Range;
use crate::wire::message::{Control, Reply, Request, RunKind};

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
        } else if self.stall_expired && !self.enough() {
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

    pub(super) fn begin(&mut self, id: GuestId, op: GuestOp) {
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

    pub(super) fn part_of_job_done(&mut self, key: usize, error: Option<GuestError>) {
        let Some(job) = self.table.job(key) else { return };
        job.error = job.error.or(error);
        job.parts -= 1;
        if job.parts == 0 {
            self.finish_job(key);
        }
    }

    pub(super) fn finish_job(&mut self, key: usize) {
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

    pub(super) fn began_at(&mut self, job: usize) -> u64 {
        self.table.job(job).map_or(0, |job| job.began)
    }

    pub(super) fn allocation(&mut self, guest: GuestId, offset: u64, len: u64) {
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
