//! Fills the layers of a replica under rebuild, piece by piece: finds what differs, reads it from a replica in sync and
//! writes it to the newcomer. Which layers and areas those are is the plan of [`resync`](super::resync).

use crate::engine::core::{Engine, Todo};
use crate::engine::groups::{Purpose, Replies};
use crate::engine::locks::Mode;
use crate::engine::resync::{Areas, LayerPlan, ResyncStep, Stage};
use crate::engine::scan::{self, Piece};
use crate::engine::slots::Slot;
use crate::engine::table::Entry;
use crate::geometry::{BLOCK, MAX_IO, Range};
use crate::ids::LayerId;
use crate::wire::message::{Control, Reply, Request, Run};
use roaring::RoaringTreemap;

const CHUNK: u64 = 64 << 10;
const DIGEST: usize = 16;
/// Runs are asked for this much of a layer at once.
const WINDOW: u64 = 1 << 30;
const MOST_PIECES: usize = 512;

/// A piece of a layer on its way; holds its range when the layer is the live head.
#[derive(Debug)]
pub struct Copying {
    pub run: u64,
    pub layer: LayerId,
    range: Range,
    on_head: bool,
}

impl Engine {
    pub(super) fn advance_copy(&mut self) -> bool {
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

    pub(super) fn scan(&mut self, area: Range) -> bool {
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

    pub(super) fn runs_answered(&mut self, source: Option<Vec<Run>>, target: Option<Vec<Run>>) {
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

    pub(super) fn start_piece(&mut self, piece: Piece) {
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

    pub(super) fn put_back(&mut self, piece: Piece) {
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

    pub(super) fn drop_piece(&mut self, key: usize) -> Option<Copying> {
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

    pub(super) fn return_piece(&mut self, key: usize) {
        if let Some(piece) = self.drop_piece(key)
            && let Some(resync) = self.resync.as_mut().filter(|resync| resync.run == piece.run)
        {
            resync.pieces.push_front(Piece::Copy(piece.range));
        }
    }

    pub(super) fn piece_done(&mut self, key: usize, bytes: u64) {
        if self.drop_piece(key).is_some()
            && let Some(resync) = &mut self.resync
        {
            resync.status.bytes_copied += bytes;
            self.metrics.rebuild_bytes_copied += bytes;
        }
    }

    pub(super) fn digests_answered(&mut self, range: Range, target: Slot, replies: &Replies) {
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
