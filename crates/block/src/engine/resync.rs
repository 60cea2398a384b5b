//! Brings one replica up to date while the volume serves: it gets every write from the moment it is adopted, and
//! meanwhile the layers it lacks are filled from those that are in sync. What it missed is known to the block when it
//! left during this engine's life, to the region when its absence is in the record, else everything is compared.

use std::collections::VecDeque;

use roaring::RoaringTreemap;

use crate::engine::choose::lineage;
use crate::engine::core::{Engine, Phase};
use crate::engine::event::RebuildStatus;
use crate::engine::groups::{Barrier, BarrierOp, Purpose, Replies};
use crate::engine::place::{Missed, Standing, Turn};
use crate::engine::scan::Piece;
use crate::engine::slots::Slot;
use crate::engine::table::Entry;
use crate::geometry::{BLOCK, INTENT_REGION, Range};
use crate::ids::{Generation, LayerId};
use crate::wire::message::{Control, Layer, Membership, ReplicaInfo, Reply, Request, Run};

const RETRY_AFTER: u64 = 500_000;

/// What one side says it holds, once it has answered.
pub(super) type Held = Option<Vec<Run>>;

#[derive(Debug)]
pub struct Resync {
    pub run: u64,
    pub slot: Slot,
    pub(super) stage: Stage,
    missed: Gap,
    pub(super) plan: VecDeque<LayerPlan>,
    pub(super) layer: Option<LayerPlan>,
    pub(super) pieces: VecDeque<Piece>,
    pub(super) scanning: Option<(Range, Held, Held)>,
    pub(super) out: usize,
    /// Pieces of the live head that are out: a barrier waits for them.
    pub on_head: usize,
    pub(super) turns: usize,
    pub status: RebuildStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Waits for writes to stand still.
    Adopting,
    Copying,
    Completing,
    Flushing,
    /// Waits until it can be recorded as a member.
    Joining,
    Recording,
}

/// How much is known of what is missing.
#[derive(Clone, Debug)]
enum Gap {
    Blocks(RoaringTreemap),
    Regions(Vec<Range>),
    Everything,
}

#[derive(Debug)]
pub(super) struct LayerPlan {
    pub(super) layer: LayerId,
    pub(super) areas: Areas,
}

#[derive(Debug)]
pub(super) enum Areas {
    Blocks(RoaringTreemap),
    Scan(VecDeque<Range>),
}

#[derive(Debug)]
pub enum ResyncStep {
    SourceInfo,
    Adopt,
    Marks,
    SourceRuns,
    TargetRuns,
    Digests(Range),
    Read(usize),
    Write(usize, u64),
    Complete,
    Flush,
    Record,
}

impl Engine {
    /// The next thing a rebuild can do; true when it did something.
    pub(super) fn advance_resync(&mut self) -> bool {
        let idle = self.closing.is_some() || self.reopening || self.in_sync().is_empty();
        if self.phase != Phase::Serving || idle {
            return false;
        }
        let Some(resync) = &self.resync else { return self.begin_resync() };
        match resync.stage {
            Stage::Copying => self.advance_copy(),
            Stage::Joining if self.moving.is_none() && !self.in_sync().is_empty() => self.record_newcomer(),
            _ => false,
        }
    }

    fn begin_resync(&mut self) -> bool {
        if self.purging || self.in_sync().is_empty() || self.now < self.resync_not_before {
            return false;
        }
        let Some(slot) = self.next_to_fill() else { return false };
        self.links += 1;
        self.resync = Some(Resync {
            run: self.links,
            slot,
            stage: Stage::Adopting,
            missed: Gap::Everything,
            plan: VecDeque::new(),
            layer: None,
            pieces: VecDeque::new(),
            scanning: None,
            out: 0,
            on_head: 0,
            turns: 0,
            status: RebuildStatus::default(),
        });
        self.queued_barriers.push_back(Barrier { command: 0, op: BarrierOp::Adopt { slot }, running: false });
        true
    }

    /// Whoever was in sync comes first: only with enough of those can anybody else join.
    fn next_to_fill(&self) -> Option<Slot> {
        let named = |slot: &Slot| self.was_named_lately(*slot);
        let waiting = self.standing(Standing::Waiting);
        let grounded = self.may_record(self.in_sync());
        waiting.iter().find(named).or_else(|| waiting.iter().next().filter(|_| grounded))
    }

    fn gap(&self, slot: Slot) -> Gap {
        let place = &self.places[slot.index()];
        let Some(info) = &place.info else { return Gap::Everything };
        if let Missed::Blocks(blocks, left) = &place.missed
            && info.membership.generation >= *left
        {
            return Gap::Blocks(blocks.clone());
        }
        let away = self.record.away.iter().find(|away| away.replica == info.replica);
        let left = match place.missed {
            Missed::Marked(left) => Some(left),
            _ => away.map(|away| away.generation),
        };
        if left.is_some_and(|left| info.membership.generation >= left) && !info.rebuilding {
            let range = |number: u64| {
                let offset = number * INTENT_REGION;
                (offset < self.size).then(|| Range::new(offset, INTENT_REGION.min(self.size - offset)))
            };
            // Its own marks too: it may hold halves of writes that nobody else has.
            let own = info.intents.iter().copied();
            let regions: RoaringTreemap = self
                .intents
                .all()
                .into_iter()
                .chain(own)
                .flat_map(|run| run.0..run.0.saturating_add(run.1))
                .collect();
            return Gap::Regions(regions.iter().filter_map(range).collect());
        }
        Gap::Everything
    }

    /// Writes stand still: what the sources hold now, and every write after, is all there will be.
    pub(super) fn adopt_now(&mut self, slot: Slot) {
        let run = self.resync.as_ref().map_or(0, |resync| resync.run);
        match (self.source(), self.places[slot.index()].standing) {
            (Some(source), Standing::Waiting) => {
                let info = Request::Control(Control::Info);
                self.ask_one(source, &info, Purpose::Resync(run, ResyncStep::SourceInfo));
            }
            _ => self.abort_resync(slot, "no replica to copy from"),
        }
    }

    /// Sources take turns.
    pub(super) fn source(&mut self) -> Option<Slot> {
        let members = self.in_sync();
        let turn = self.resync.as_mut().map_or(0, |resync| {
            resync.turns += 1;
            resync.turns
        });
        members.iter().nth(turn % members.len().max(1))
    }

    fn plan_layers(&mut self, source: &ReplicaInfo) -> Option<(Slot, Request)> {
        let gap = self.gap(self.resync.as_ref()?.slot);
        self.highest = self.highest.next();
        let resync = self.resync.as_mut()?;
        (resync.status.kind, resync.status.bytes_total) = match &gap {
            Gap::Blocks(blocks) => ("delta".to_string(), blocks.len() * BLOCK),
            Gap::Regions(ranges) => ("delta".to_string(), ranges.iter().map(|range| range.len).sum()),
            Gap::Everything => ("full".to_string(), 0),
        };
        resync.missed = gap;
        let own = self.places[resync.slot.index()].info.as_ref()?;
        // The newest layer both know may have been frozen here alone, by a snapshot that the others never took; they
        // may have gone on writing to it.
        let shared = lineage(own).into_iter().find(|id| source.layers.iter().any(|layer| layer.id == *id));
        // Nobody can have a write on its way to such a one.
        let never_opened = own.membership.generation == Generation(0);
        let mut layers = Vec::new();
        resync.plan.clear();
        for layer in base_first(source) {
            let theirs = own.layers.iter().find(|theirs| theirs.id == layer.id);
            let same = theirs.is_some_and(|theirs| theirs.absorbed == layer.absorbed);
            let frozen = layer.id != own.head && layer.id != source.head && Some(layer.id) != shared;
            let complete =
                same && frozen && theirs.is_some_and(|theirs| theirs.complete && theirs.size == layer.size);
            let unknown =
                theirs.is_none() && !own.layers.iter().any(|known| layer.absorbed.contains(&known.id));
            if !complete {
                let empty = |layer: &Layer| layer.allocated == 0 && layer.backing.is_none();
                let nothing =
                    never_opened && layer.parent.is_none() && empty(layer) && theirs.is_none_or(empty);
                let areas = match &resync.missed {
                    _ if nothing => Areas::Scan(VecDeque::new()),
                    Gap::Blocks(blocks) if same || unknown => Areas::Blocks(blocks.clone()),
                    Gap::Regions(ranges) if same || unknown => {
                        Areas::Scan(ranges.iter().filter_map(|range| clip(*range, layer.size)).collect())
                    }
                    _ => {
                        resync.status.bytes_total += layer.allocated;
                        Areas::Scan(VecDeque::from([Range::new(0, layer.size)]))
                    }
                };
                resync.plan.push_back(LayerPlan { layer: layer.id, areas });
            }
            let backing =
                layer.backing.clone().filter(|_| theirs.is_some_and(|theirs| theirs.backing.is_some()));
            layers.push(Layer { complete, backing, ..layer.clone() });
        }
        resync.status.layers = resync.plan.len() as u32;
        let slot = resync.slot;
        let adopt = Control::Adopt {
            engine: self.config.engine,
            record: Membership {
                generation: self.highest,
                engine: Some(self.config.engine),
                ..self.record.clone()
            },
            size: source.size,
            layers,
            head: source.head,
        };
        Some((slot, Request::Control(adopt)))
    }

    pub(super) fn resync_answered(&mut self, run: u64, step: ResyncStep, replies: &Replies) {
        let Some(resync) = self.resync.as_ref().filter(|resync| resync.run == run) else { return };
        let slot = resync.slot;
        let Some((from, reply)) = replies.first().cloned() else { return };
        match (step, reply) {
            (ResyncStep::SourceInfo, Some(Reply::Info(info))) => {
                self.head = Some(info.head);
                match self.plan_layers(&info) {
                    Some((slot, adopt)) => {
                        self.place(slot).opened = true;
                        self.ask_one(slot, &adopt, Purpose::Resync(run, ResyncStep::Adopt));
                    }
                    None => self.abort_resync(slot, "it said nothing of itself"),
                }
            }
            (ResyncStep::SourceInfo, _) => self.abort_resync(slot, "the source could not be asked"),
            (ResyncStep::Adopt, Some(Reply::Done)) => self.adopted(run, slot),
            (ResyncStep::SourceRuns, Some(Reply::Runs(runs))) => self.runs_answered(Some(runs), None),
            (ResyncStep::TargetRuns, Some(Reply::Runs(runs))) => self.runs_answered(None, Some(runs)),
            (ResyncStep::Digests(range), _) => self.digests_answered(range, slot, replies),
            (ResyncStep::Read(key), Some(Reply::RunsWith(runs, data))) => {
                let Some(Entry::Copying(piece)) = self.table.get_mut(key) else { return };
                let bytes = data.len() as u64;
                let write = Request::ControlWith(Control::LayerWrite { layer: piece.layer, runs }, data);
                self.ask_one(slot, &write, Purpose::Resync(run, ResyncStep::Write(key, bytes)));
            }
            (ResyncStep::Read(key), reply) => {
                self.return_piece(key);
                if reply.is_some() {
                    self.source_failed(from);
                }
            }
            (ResyncStep::Write(key, bytes), Some(Reply::Done)) => self.piece_done(key, bytes),
            (ResyncStep::Complete, Some(Reply::Done)) => self.next_layer(),
            (ResyncStep::Flush, Some(Reply::Done)) => {
                if let Some(resync) = &mut self.resync {
                    resync.stage = Stage::Joining;
                }
            }
            (ResyncStep::Record, Some(Reply::Done)) => self.joined(slot),
            (ResyncStep::Marks, Some(Reply::Done)) => {}
            // Runs of a source that went away are asked of another one.
            (ResyncStep::SourceRuns, None) => {
                if let Some(resync) = &mut self.resync
                    && let Some((range, _, _)) = resync.scanning.take()
                    && let Some(LayerPlan { areas: Areas::Scan(areas), .. }) = &mut resync.layer
                {
                    areas.push_front(range);
                }
            }
            (ResyncStep::SourceRuns, Some(_)) => self.source_failed(from),
            (_, Some(Reply::Failed(failure))) => self.fail(slot, &format!("rebuild: {failure}")),
            (_, Some(_)) => self.fail(slot, "rebuild: answered something else"),
            (_, None) => self.fail(slot, "lost during rebuild"),
        }
    }

    /// A source that cannot give what it holds is failed, unless it is the last that has the data.
    pub(super) fn source_failed(&mut self, source: Slot) {
        let why = "could not give what it holds";
        if self.in_sync().len() > 1 && self.in_sync().contains(source) {
            self.fail(source, why);
        } else if let Some(target) = self.resync.as_ref().map(|resync| resync.slot) {
            self.fail(target, &format!("rebuild: the only source {why}"));
        }
    }

    fn adopted(&mut self, run: u64, slot: Slot) {
        self.place(slot).turn(Turn::Adopt);
        tracing::info!(replica = self.places[slot.index()].address, "rebuild begins");
        let boot = self.place(slot).info.as_ref().map(|info| info.boot.clone());
        self.place(slot).boot = boot;
        let set = self.intents.all();
        if let Some(resync) = &mut self.resync {
            resync.stage = Stage::Copying;
        }
        let marks = Request::Control(Control::Intents { set, clear: Vec::new() });
        self.ask_one(slot, &marks, Purpose::Resync(run, ResyncStep::Marks));
        self.end_barrier();
        self.next_layer();
    }

    pub(super) fn next_layer(&mut self) {
        let Some(resync) = &mut self.resync else { return };
        resync.layer = resync.plan.pop_front();
        resync.status.layer = resync.status.layers - resync.plan.len() as u32;
        resync.stage = if resync.layer.is_some() { Stage::Copying } else { Stage::Flushing };
        if resync.layer.is_none() {
            let (run, slot) = (resync.run, resync.slot);
            self.ask_one(slot, &Request::Flush, Purpose::Resync(run, ResyncStep::Flush));
        }
    }

    /// The newcomer records first that it is a member: should everything stop here, the others have not counted on it.
    fn record_newcomer(&mut self) -> bool {
        let Some(slot) = self.resync.as_ref().map(|resync| resync.slot) else { return false };
        let mut members = self.in_sync();
        members.insert(slot);
        if !self.may_record(members) && !self.was_named_lately(slot) {
            self.fail(slot, "too few of the replicas that were in sync are left for it to join");
            return true;
        }
        let Some(resync) = &mut self.resync else { return false };
        resync.stage = Stage::Recording;
        let run = resync.run;
        let generation = self.highest.next();
        self.highest = generation;
        let record = self.record_of(members, generation);
        self.sent.push(record.clone());
        let set = Request::Control(Control::SetMembership { record });
        self.ask_one(slot, &set, Purpose::Resync(run, ResyncStep::Record));
        true
    }

    fn joined(&mut self, slot: Slot) {
        self.resync = None;
        let place = self.place(slot);
        place.turn(Turn::Join);
        place.missed = Missed::Everything;
        tracing::info!(replica = place.address, "rebuild done");
        self.metrics.rebuilds_done += 1;
        self.start_move(self.in_sync());
    }

    /// Gives up the rebuild of this replica, if one runs; it is tried again when the replica is back.
    pub(super) fn abort_resync(&mut self, slot: Slot, why: &str) {
        if self.resync.as_ref().is_none_or(|resync| resync.slot != slot) {
            return;
        }
        self.resync = None;
        self.resync_not_before = self.now + RETRY_AFTER;
        tracing::warn!(replica = self.places[slot.index()].address, why, "rebuild stopped");
        for key in self.table.keys() {
            self.drop_piece(key);
        }
        let ours = |barrier: &Barrier| matches!(barrier.op, BarrierOp::Adopt { slot: of } if of == slot);
        self.queued_barriers.retain(|barrier| !ours(barrier));
        if self.barrier.as_ref().is_some_and(ours) {
            self.end_barrier();
        }
        // It may already count itself as the one that is written to; a new connection begins from nothing.
        if self.places[slot.index()].standing == Standing::Waiting && self.places[slot.index()].opened {
            self.fail(slot, why);
        }
    }
}

fn clip(range: Range, size: u64) -> Option<Range> {
    (range.offset < size).then(|| Range::new(range.offset, range.len.min(size - range.offset)))
}

/// Parents before children.
fn base_first(info: &ReplicaInfo) -> Vec<&Layer> {
    let mut ordered: Vec<&Layer> = Vec::with_capacity(info.layers.len());
    while ordered.len() < info.layers.len() {
        let before = ordered.len();
        for layer in &info.layers {
            let known = |id: LayerId| ordered.iter().any(|done| done.id == id);
            if !known(layer.id) && layer.parent.is_none_or(known) {
                ordered.push(layer);
            }
        }
        if ordered.len() == before {
            // A parent that is not there: the replica's own check refuses such a tree.
            return info.layers.iter().collect();
        }
    }
    ordered
}
