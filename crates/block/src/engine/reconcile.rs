//! After an engine died: replicas that are all in sync may hold different halves of writes that were never
//! acknowledged or never flushed. Before the volume serves, the regions marked in any of their intent maps are
//! compared, and what differs becomes what one of them, the reference, holds.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::engine::core::{Engine, Phase};
use crate::engine::groups::{Purpose, Replies};
use crate::engine::slots::{Slot, SlotSet};
use crate::geometry::{INTENT_REGION, Range};
use crate::wire::message::{Control, Regions, Reply, Request};

const CHUNK: u64 = 64 << 10;
const DIGEST: usize = 16;
const AT_ONCE: usize = 4;

#[derive(Debug)]
pub struct Reconcile {
    reference: Slot,
    /// Nothing to compare: the last engine closed in order, or there is only one replica.
    needed: bool,
    marks: Vec<Regions>,
    regions: VecDeque<u64>,
    chunks: VecDeque<(Range, SlotSet)>,
    out: usize,
    finishing: bool,
}

#[derive(Debug)]
pub enum ReconcileStep {
    Marks,
    Digests(Range),
    Read(Range, SlotSet),
    Write,
    Flush,
}

impl Engine {
    pub(super) fn plan_reconcile(&mut self, members: SlotSet, reference: Slot) {
        let mut numbers = std::collections::BTreeSet::new();
        for slot in members.iter() {
            if let Some(info) = &self.places[slot.index()].info {
                numbers.extend(info.intents.iter().flat_map(|run| run.0..run.0.saturating_add(run.1)));
            }
        }
        let mut marks: Vec<Regions> = Vec::new();
        for number in &numbers {
            match marks.last_mut() {
                Some(run) if run.0 + run.1 == *number => run.1 += 1,
                _ => marks.push(Regions(*number, 1)),
            }
        }
        self.reconcile = Some(Reconcile {
            reference,
            needed: members.len() > 1 && !numbers.is_empty(),
            marks,
            regions: numbers.into_iter().collect(),
            chunks: VecDeque::new(),
            out: 0,
            finishing: false,
        });
    }

    pub(super) fn begin_reconcile(&mut self) {
        let Some(work) = &self.reconcile else { return self.serve() };
        self.intents.restore(&work.marks, self.now);
        if !work.needed {
            return self.serve();
        }
        tracing::info!(
            regions = work.regions.len(),
            "comparing what the last engine may have left half written"
        );
        let request = Request::Control(Control::Intents { set: work.marks.clone(), clear: Vec::new() });
        self.reconcile_ask(self.in_sync(), &request, ReconcileStep::Marks);
    }

    fn reconcile_ask(&mut self, slots: SlotSet, request: &Request, step: ReconcileStep) {
        if let Some(work) = &mut self.reconcile {
            work.out += 1;
        }
        self.ask(slots, request, Purpose::Reconcile(step));
    }

    pub(super) fn advance_reconcile(&mut self) -> bool {
        let members = self.in_sync();
        let Some(work) = &mut self.reconcile else { return false };
        if self.phase != Phase::Reconciling || members.is_empty() {
            return false;
        }
        if !members.contains(work.reference) {
            // What is still under way for the old reference must not arrive after the new comparison.
            return work.out == 0 && self.restart();
        }
        if work.out >= AT_ONCE || work.finishing {
            return false;
        }
        if let Some((range, targets)) = work.chunks.pop_front() {
            let reference = work.reference;
            let targets = targets.and(members);
            if !targets.is_empty() {
                let from = [reference].into_iter().collect();
                self.reconcile_ask(from, &Request::Read { range }, ReconcileStep::Read(range, targets));
            }
            return true;
        }
        if let Some(region) = work.regions.pop_front() {
            let offset = region * INTENT_REGION;
            if offset >= self.size {
                return true;
            }
            let range = Range::new(offset, INTENT_REGION.min(self.size - offset));
            let request = Request::Control(Control::Digests { range, chunk: CHUNK });
            self.metrics.reconciled_bytes += range.len;
            self.reconcile_ask(members, &request, ReconcileStep::Digests(range));
            return true;
        }
        if work.out == 0 {
            work.finishing = true;
            self.reconcile_ask(members, &Request::Flush, ReconcileStep::Flush);
            return true;
        }
        false
    }

    /// The reference is gone before the others were made equal to it: begin again with those that are left.
    fn restart(&mut self) -> bool {
        let members = self.in_sync();
        let Some(reference) = members.iter().next() else { return false };
        let marks = self.reconcile.take().map(|work| work.marks).unwrap_or_default();
        let regions: VecDeque<u64> = marks.iter().flat_map(|run| run.0..run.0 + run.1).collect();
        if members.len() == 1 {
            self.serve();
            return true;
        }
        self.reconcile = Some(Reconcile {
            reference,
            needed: true,
            marks,
            regions,
            chunks: VecDeque::new(),
            out: 0,
            finishing: false,
        });
        true
    }

    pub(super) fn reconcile_answered(&mut self, step: &ReconcileStep, replies: Replies) {
        let Some(work) = &mut self.reconcile else { return };
        work.out = work.out.saturating_sub(1);
        match step {
            ReconcileStep::Digests(range) => self.compare(*range, &replies),
            &ReconcileStep::Read(range, targets) => match replies.into_iter().next() {
                Some((_, Some(Reply::Data(data)))) if data.len() as u64 == range.len => {
                    self.metrics.reconcile_bytes_copied += range.len;
                    let targets = targets.and(self.in_sync());
                    self.reconcile_ask(targets, &content(range, data), ReconcileStep::Write);
                }
                Some((slot, Some(_))) => self.fail(slot, "could not read what has to be compared"),
                _ => {}
            },
            ReconcileStep::Marks | ReconcileStep::Write => {
                self.fail_unless_done(&replies, "could not be made equal");
            }
            ReconcileStep::Flush => {
                self.fail_unless_done(&replies, "could not flush");
                let lost = replies.iter().any(|(_, reply)| reply.is_none());
                if let Some(work) = &mut self.reconcile {
                    work.finishing = false;
                    if !lost && !self.in_sync().is_empty() {
                        self.serve();
                    }
                }
            }
        }
    }

    fn fail_unless_done(&mut self, replies: &Replies, why: &str) {
        for (slot, reply) in replies {
            if reply.as_ref().is_some_and(|reply| *reply != Reply::Done) {
                self.fail(*slot, why);
            }
        }
    }

    fn compare(&mut self, range: Range, replies: &Replies) {
        let Some(work) = &mut self.reconcile else { return };
        let digests = |slot: Slot| {
            replies.iter().find_map(|(of, reply)| match reply {
                Some(Reply::Digests(bytes)) if *of == slot => Some(bytes.clone()),
                _ => None,
            })
        };
        let Some(truth) = digests(work.reference) else {
            if let Some((slot, Some(_))) = replies.iter().find(|(slot, _)| *slot == work.reference) {
                let slot = *slot;
                self.fail(slot, "could not say what it holds");
            }
            return;
        };
        let chunks = range.len.div_ceil(CHUNK) as usize;
        let mut different = vec![SlotSet::EMPTY; chunks];
        let mut unable = Vec::new();
        for (slot, reply) in replies {
            if *slot == work.reference {
                continue;
            }
            match reply {
                Some(Reply::Digests(other))
                    if other.len() == chunks * DIGEST && truth.len() == other.len() =>
                {
                    for (at, set) in different.iter_mut().enumerate() {
                        let bytes = at * DIGEST..(at + 1) * DIGEST;
                        if truth[bytes.clone()] != other[bytes] {
                            set.insert(*slot);
                        }
                    }
                }
                Some(_) => unable.push(*slot),
                None => {}
            }
        }
        for (at, set) in different.into_iter().enumerate().filter(|(_, set)| !set.is_empty()) {
            let offset = range.offset + at as u64 * CHUNK;
            work.chunks.push_back((Range::new(offset, CHUNK.min(range.end() - offset)), set));
        }
        for slot in unable {
            self.fail(slot, "could not say what it holds");
        }
    }

    fn serve(&mut self) {
        self.reconcile = None;
        self.phase = Phase::Serving;
        // All are equal: from here on, whoever keeps its memory has everything.
        if self.record_of(self.in_sync(), self.record.generation).members != self.record.members {
            self.start_move(self.in_sync());
        }
        tracing::info!(volume = self.config.volume, generation = self.record.generation.0, "serving");
    }
}

/// A write, or a zero request when that says the same.
pub fn content(range: Range, data: Bytes) -> Request {
    if data.iter().all(|byte| *byte == 0) {
        Request::Zero { range, allocate: false, durable: false }
    } else {
        Request::Write { offset: range.offset, data, durable: false }
    }
}
