//! Brings one replica up to date while the volume serves: it gets every write from the moment it is adopted, and
//! meanwhile the layers it lacks are filled from those that are in sync. What it missed is known to the block when it
//! left during this engine's life, to the region when its absence is in the record, else everything is compared.

use std::collections::VecDeque;

use roaring::RoaringTreemap;

use crate::engine::choose::lineage;
use crate::engine::core::{Engine, Phase, Todo};
use crate::engine::event::RebuildStatus;
use crate::engine::groups::{Barrier, BarrierOp, Purpose, Replies};
use crate::engine::locks::Mode;
use crate::engine::place::{Missed, Standing, Turn};
use crate::engine::scan::{self, Piece};
use crate::engine::slots::Slot;
use crate::engine::table::Entry;
use crate::geometry::{BLOCK, INTENT_REGION, MAX_IO, Range};
use crate::ids::LayerId;
use crate::wire::message::{Control, Layer, ReplicaInfo, Reply, Request, Run};

const CHUNK: u64 = 64 << 10;
const DIGEST: usize = 16;
/// Runs are asked for this much of a layer at once.
const WINDOW: u64 = 1 << 30;
const MOST_PIECES: usize = 512;
const RETRY_AFTER: u64 = 500_000;

/// What one side says it holds, once it has answered.
type Held = Option<Vec<Run>>;

#[derive(Debug)]
pub struct Resync {
    pub run: u64,
    pub slot: Slot,
    stage: Stage,
    missed: Gap,
    plan: VecDeque<LayerPlan>,
    layer: Option<LayerPlan>,
    pieces: VecDeque<Piece>,
    scanning: Option<(Range, Held, Held)>,
    out: usize,
    /// Pieces of the live head that are out: a barrier waits for them.
    pub on_head: usize,
    turns: usize,
    pub status: RebuildStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
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
struct LayerPlan {
    layer: LayerId,
    areas: Areas,
}

#[derive(Debug)]
enum Areas {
    Blocks(RoaringTreemap),
    Scan(VecDeque<Range>),
}

/// A piece of a layer on its way; holds its range when the layer is the live head.
#[derive(Debug)]
pub struct Copying {
    pub run: u64,
    layer: LayerId,
    range: Range,
    on_head: bool,
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
        let Some(slot) = self.standing(Standing::Waiting).iter().next() else { return false };

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
    fn source(&mut self) -> Option<Slot> {
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
                let areas = match &resync.missed {
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
            generation: self.highest,
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
    fn source_failed(&mut self, source: Slot) {
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

    fn next_layer(&mut self) {
        let Some(resync) = &mut self.resync else { return };
        resync.layer = resync.plan.pop_front();
        resync.status.layer = resync.status.layers - resync.plan.len() as u32;
        resync.stage = if resync.layer.is_some() { Stage::Copying } else { Stage::Flushing };
        if resync.layer.is_none() {
            let (run, slot) = (resync.run, resync.slot);
            self.ask_one(slot, &Request::Flush, Purpose::Resync(run, ResyncStep::Flush));
        }
    }

    fn advance_copy(&mut self) -> bool {
        let parallel = self.config.rebuild_parallel;
        let open = self.rebuild_bucket.open(self.now);
        let Some(resync) = &mut self.resync else { return false };
        let Some(plan) = &mut resync.layer else { return false };
        if resync.pieces.len() < MOST_PIECES {
            match &mut plan.areas {
                Areas::Blocks(blocks) => {
                    if let Some(range) = take_run(blocks) {
                        resync.pieces.push_back(Piece::Copy(range));
                    }
                }
                Areas::Scan(areas) => {
                    if resync.scanning.is_none()
                        && let Some(area) = areas.pop_front()
                    {
                        return self.scan(area);
                    }
                }
            }
        }
        if resync.out < parallel
            && open
            && self.barrier.is_none()
            && let Some(piece) = resync.pieces.pop_front()
        {
            resync.out += 1;
            self.start_piece(piece);
            return true;
        }
        let drained = match &plan.areas {
            Areas::Blocks(blocks) => blocks.is_empty(),
            Areas::Scan(areas) => areas.is_empty(),
        };
        if drained && resync.pieces.is_empty() && resync.out == 0 && resync.scanning.is_none() {
            let (run, slot, layer) = (resync.run, resync.slot, plan.layer);
            resync.stage = Stage::Completing;
            let complete = Request::Control(Control::LayerComplete { layer });
            self.ask_one(slot, &complete, Purpose::Resync(run, ResyncStep::Complete));
            return true;
        }
        false
    }

    fn scan(&mut self, area: Range) -> bool {
        let Some(source) = self.source() else { return false };
        let Some(resync) = &mut self.resync else { return false };
        let Some(plan) = &mut resync.layer else { return false };
        let window = Range::new(area.offset, area.len.min(WINDOW));
        if let (Areas::Scan(areas), true) = (&mut plan.areas, area.len > window.len) {
            areas.push_front(Range::new(window.end(), area.len - window.len));
        }
        let (run, slot, layer) = (resync.run, resync.slot, plan.layer);
        resync.scanning = Some((window, None, None));
        let runs = Request::Control(Control::LayerRuns { layer, range: window });
        self.ask_one(source, &runs, Purpose::Resync(run, ResyncStep::SourceRuns));
        self.ask_one(slot, &runs, Purpose::Resync(run, ResyncStep::TargetRuns));
        true
    }

    fn runs_answered(&mut self, source: Option<Vec<Run>>, target: Option<Vec<Run>>) {
        let Some(resync) = &mut self.resync else { return };
        let Some((window, have_source, have_target)) = &mut resync.scanning else { return };
        if source.is_some() {
            *have_source = source;
        }
        if target.is_some() {
            *have_target = target;
        }
        if have_source.is_none() || have_target.is_none() {
            return;
        }
        let window = *window;
        let Some((_, Some(source), Some(target))) = resync.scanning.take() else { return };
        let end = scan::pieces(&source, &target, |piece| resync.pieces.push_back(piece)).max(window.offset);
        if end < window.end()
            && let Some(LayerPlan { areas: Areas::Scan(areas), .. }) = &mut resync.layer
        {
            areas.push_front(Range::new(end, window.end() - end));
        }
    }

    fn start_piece(&mut self, piece: Piece) {
        let Some(source) = self.source() else { return self.put_back(piece) };
        let Some(resync) = &mut self.resync else { return };
        let Some(plan) = &resync.layer else { return };
        let (run, slot, layer) = (resync.run, resync.slot, plan.layer);
        match piece {
            Piece::Compare(range) => {
                resync.status.bytes_compared += range.len;
                self.metrics.rebuild_bytes_compared += range.len;
                let digests = Request::Control(Control::LayerDigests { layer, range, chunk: CHUNK });
                let both = [source, slot].into_iter().collect();
                self.ask(both, &digests, Purpose::Resync(run, ResyncStep::Digests(range)));
            }
            Piece::Copy(range) => {
                self.rebuild_bucket.take(range.len);
                let on_head = self.head == Some(layer);
                if on_head {
                    resync.on_head += 1;
                }
                let key = self.table.insert(Entry::Copying(Copying { run, layer, range, on_head }));
                if !on_head || self.locks.acquire(key, range, Mode::Copy) {
                    self.copy_piece(key);
                }
            }
        }
    }

    fn put_back(&mut self, piece: Piece) {
        if let Some(resync) = &mut self.resync {
            resync.out -= 1;
            resync.pieces.push_front(piece);
        }
    }

    /// The piece has its range.
    pub(super) fn copy_piece(&mut self, key: usize) {
        let Some(Entry::Copying(piece)) = self.table.get_mut(key) else { return };
        let (run, request) =
            (piece.run, Request::Control(Control::LayerRead { layer: piece.layer, range: piece.range }));
        match self.source() {
            Some(source) => {
                self.ask_one(source, &request, Purpose::Resync(run, ResyncStep::Read(key)));
            }
            None => self.return_piece(key),
        }
    }

    fn drop_piece(&mut self, key: usize) -> Option<Copying> {
        let Some(Entry::Copying(_)) = self.table.get_mut(key) else { return None };
        let Some(Entry::Copying(piece)) = self.table.remove(key) else { return None };
        if piece.on_head {
            let mut ready = Vec::new();
            self.locks.release(key, &mut ready);
            self.todo.extend(ready.into_iter().map(Todo::Ranged));
        }
        if let Some(resync) = self.resync.as_mut().filter(|resync| resync.run == piece.run) {
            resync.out -= 1;
            resync.on_head -= usize::from(piece.on_head);
        }
        Some(piece)
    }

    fn return_piece(&mut self, key: usize) {
        if let Some(piece) = self.drop_piece(key)
            && let Some(resync) = self.resync.as_mut().filter(|resync| resync.run == piece.run)
        {
            resync.pieces.push_front(Piece::Copy(piece.range));
        }
    }

    fn piece_done(&mut self, key: usize, bytes: u64) {
        if self.drop_piece(key).is_some()
            && let Some(resync) = &mut self.resync
        {
            resync.status.bytes_copied += bytes;
            self.metrics.rebuild_bytes_copied += bytes;
        }
    }

    fn digests_answered(&mut self, range: Range, target: Slot, replies: &Replies) {
        let chunks = range.len.div_ceil(CHUNK) as usize;
        let of = |wanted: bool| {
            replies.iter().find_map(|(slot, reply)| match reply {
                Some(Reply::Digests(bytes))
                    if (*slot == target) == wanted && bytes.len() == chunks * DIGEST =>
                {
                    Some(bytes.clone())
                }
                _ => None,
            })
        };
        let (ours, theirs) = (of(false), of(true));
        let failed = replies
            .iter()
            .find(|(_, reply)| !matches!(reply, Some(Reply::Digests(_)) | None))
            .map(|(slot, _)| *slot);
        let Some(resync) = &mut self.resync else { return };
        resync.out -= 1;
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            resync.pieces.push_front(Piece::Compare(range));
            match failed {
                Some(slot) if slot == target => self.fail(slot, "rebuild: could not say what it holds"),
                Some(slot) => self.source_failed(slot),
                None => {}
            }
            return;
        };
        for at in 0..chunks {
            let bytes = at * DIGEST..(at + 1) * DIGEST;
            if ours[bytes.clone()] != theirs[bytes] {
                let offset = range.offset + at as u64 * CHUNK;
                resync.pieces.push_back(Piece::Copy(Range::new(offset, CHUNK.min(range.end() - offset))));
            }
        }
    }

    /// The newcomer records first that it is a member: should everything stop here, the others have not counted on it.
    fn record_newcomer(&mut self) -> bool {
        let Some(resync) = &mut self.resync else { return false };
        resync.stage = Stage::Recording;
        let (run, slot) = (resync.run, resync.slot);
        let generation = self.highest.next();
        self.highest = generation;
        let mut members = self.in_sync();
        members.insert(slot);
        let record = self.record_of(members, generation);
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

/// The first run of blocks, taken out, no longer than one request may carry.
fn take_run(blocks: &mut RoaringTreemap) -> Option<Range> {
    let first = blocks.min()?;
    let most = u64::from(MAX_IO) / BLOCK;
    let mut end = first + 1;
    while end < first + most && blocks.contains(end) {
        end += 1;
    }
    blocks.remove_range(first..end);
    Some(Range::of_blocks(first..end))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_blocks_are_taken_in_order_and_bounded() {
        let mut blocks: RoaringTreemap = (0..300).chain([400, 402]).collect();
        let mut taken = Vec::new();
        while let Some(range) = take_run(&mut blocks) {
            taken.push(range.blocks());
        }
        assert_eq!(taken, [0..256, 256..300, 400..401, 402..403]);
    }
}
