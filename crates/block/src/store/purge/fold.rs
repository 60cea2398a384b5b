//! Merging a removed layer and its only child, piece by piece. Each piece is small and done under the lock of
//! metadata changes, so the tree and the number of names of a file cannot change under it; each step may be repeated.

use std::sync::Arc;

use super::super::error::{Result, StoreError};
use super::super::layer::Layer;
use super::super::metadata::Metadata;
use super::super::state::{Change, Store};
use super::super::stripes::pieces;
use super::super::view::View;
use super::plan::{Pair, may_take_over, shared};
use crate::geometry::{BLOCK, Range};
use crate::ids::LayerId;
use crate::wire::message::RunKind;

/// What is copied under one hold of the locks: writers to that part of the volume wait for it.
const PIECE: u64 = 1 << 20;

/// Whether the tree is still the one that was planned for.
#[derive(PartialEq, Eq)]
enum Going {
    On,
    Over,
}

impl Store {
    pub(super) fn delete_leaf(&self, id: LayerId) -> Result<()> {
        let change = self.begin()?;
        let mut meta = change.meta();
        let Some(record) = meta.layer(id).filter(|record| record.removed) else {
            return Ok(());
        };
        if meta.children(id).next().is_some() {
            return Ok(());
        }
        meta.doomed.push(record.files);
        meta.layers.retain(|record| record.id != id);
        let mut layers = change.layers();
        let dropped = layers.remove(&id);
        change.commit(meta, layers)?;
        self.purged(dropped.map_or(0, |layer| layer.data_len() * BLOCK));
        Ok(())
    }

    /// Copies up what the child does not have, then takes the removed layer out of the tree.
    pub(super) fn fold_up(&self, view: &View, pair: Pair) -> Result<()> {
        let (from, record) = view.layer(pair.removed)?;
        let (to, _) = view.layer(pair.child)?;
        let mut buffer = vec![0; PIECE as usize];
        let copied = self.each_piece(from, Layer::next_data, |change, piece| {
            if !still_pair(change, pair)? || (!is_head(change, pair.child) && shared(to)?) {
                return Ok(Going::Over);
            }
            let _alone = self.stripes.alone(piece.offset);
            self.copy_absent(from, to, piece, &mut buffer)?;
            self.purged(piece.len);
            Ok(Going::On)
        })?;
        if copied == Going::Over {
            return Ok(());
        }
        if record.parent.is_some() {
            // All of them, also where the child has data: a discard of that data relies on the mask below it.
            let hidden = self.each_piece(from, Layer::next_masked, |change, piece| {
                if !still_pair(change, pair)? || (!is_head(change, pair.child) && shared(to)?) {
                    return Ok(Going::Over);
                }
                let _alone = self.stripes.alone(piece.offset);
                self.hide_in(to, piece)?;
                Ok(Going::On)
            })?;
            if hidden == Going::Over {
                return Ok(());
            }
        }
        self.sync_layer(to)?;
        let change = self.begin()?;
        if !still_pair(&change, pair)? {
            return Ok(());
        }
        let mut meta = change.meta();
        if let Some(dropped) = take_out(&mut meta, pair) {
            meta.doomed.push(dropped);
        }
        let mut layers = change.layers();
        layers.remove(&pair.removed);
        change.commit(meta, layers)
    }

    /// Copies the child's content into the removed layer's files, which then are the child's. Whoever reads through
    /// the child never looks at what changes below it.
    pub(super) fn fold_down(&self, view: &View, pair: Pair) -> Result<()> {
        let (to, record) = view.layer(pair.removed)?;
        let (from, child) = view.layer(pair.child)?;
        let size = child.size;
        to.grow(size).map_err(self.failed(|| format!("grow layer {}", to.id)))?;
        let mut buffer = vec![0; PIECE as usize];
        let copied = self.each_piece(from, Layer::next_data, |change, piece| {
            if !still_pair(change, pair)? || !may_take_over(to)? {
                return Ok(Going::Over);
            }
            self.copy(from, to, piece, &mut buffer)?;
            self.purged(piece.len);
            Ok(Going::On)
        })?;
        if copied == Going::Over {
            return Ok(());
        }
        let hidden = self.each_piece(from, Layer::next_masked, |change, piece| {
            if !still_pair(change, pair)? || !may_take_over(to)? {
                return Ok(Going::Over);
            }
            self.drop_hidden(from, to, piece, record.parent.is_some())?;
            Ok(Going::On)
        })?;
        if hidden == Going::Over {
            return Ok(());
        }
        self.sync_layer(to)?;
        let change = self.begin()?;
        if !still_pair(&change, pair)? || !may_take_over(to)? {
            return Ok(());
        }
        let mut meta = change.meta();
        let kept = take_out(&mut meta, pair);
        if let (Some(record), Some(kept)) = (meta.layer_mut(pair.child), kept) {
            let dropped = std::mem::replace(&mut record.files, kept);
            meta.doomed.push(dropped);
        }
        let mut layers = change.layers();
        layers.remove(&pair.removed);
        layers.insert(pair.child, Arc::new(to.taking_the_place_of(from)));
        change.commit(meta, layers)
    }

    /// Walks the runs that `next` finds in a layer, in pieces, each with the right to change the tree.
    fn each_piece(
        &self,
        layer: &Layer,
        next: impl Fn(&Layer, std::ops::Range<u64>) -> Option<std::ops::Range<u64>>,
        mut work: impl FnMut(&Change<'_>, Range) -> Result<Going>,
    ) -> Result<Going> {
        let mut at = 0;
        while let Some(run) = next(layer, at..u64::MAX) {
            at = run.end;
            for piece in pieces(Range::of_blocks(run), PIECE) {
                self.may_go_on()?;
                let change = self.begin()?;
                if work(&change, piece)? == Going::Over {
                    return Ok(Going::Over);
                }
            }
        }
        Ok(Going::On)
    }

    fn copy_absent(&self, from: &Layer, to: &Layer, piece: Range, buffer: &mut [u8]) -> Result<()> {
        let mut blocks = piece.blocks();
        while !blocks.is_empty() {
            let (kind, end) = to.run(blocks.clone());
            if kind == RunKind::Absent {
                self.copy(from, to, Range::of_blocks(blocks.start..end), buffer)?;
            }
            blocks.start = end;
        }
        Ok(())
    }

    fn copy(&self, from: &Layer, to: &Layer, range: Range, buffer: &mut [u8]) -> Result<()> {
        self.take_space(to, range)?;
        let bytes = &mut buffer[..range.len as usize];
        from.read_aside(range.offset, bytes).map_err(StoreError::io(format!("read layer {}", from.id)))?;
        to.put(range.offset, bytes).map_err(|error| {
            let undo = || to.take_back(range.blocks());
            self.without_room(error, undo, || format!("write to layer {}", to.id))
        })
    }

    fn hide_in(&self, to: &Layer, piece: Range) -> Result<()> {
        let mut blocks = piece.blocks();
        while !blocks.is_empty() {
            let (masked, end) = to.masked_run(blocks.clone());
            if !masked {
                to.set_mask(blocks.start..end, true).map_err(|error| {
                    self.without_room(error, || Ok(()), || format!("write the mask of layer {}", to.id))
                })?;
            }
            blocks.start = end;
        }
        Ok(())
    }

    /// What the upper layer hides (and does not hold) goes from the lower one.
    fn drop_hidden(&self, from: &Layer, to: &Layer, piece: Range, covers_more: bool) -> Result<()> {
        let mut blocks = piece.blocks();
        while !blocks.is_empty() {
            let (kind, end) = from.run(blocks.clone());
            if kind == RunKind::Zero {
                if covers_more {
                    self.hide_in(to, Range::of_blocks(blocks.start..end))?;
                }
                to.drop_data(blocks.start..end)
                    .map_err(self.failed(|| format!("drop blocks of layer {}", to.id)))?;
            }
            blocks.start = end;
        }
        Ok(())
    }
}

fn is_head(change: &Change<'_>, id: LayerId) -> bool {
    change.view().meta.head == id
}

/// The removed layer is still there, and that child is still its only one.
fn still_pair(change: &Change<'_>, pair: Pair) -> Result<bool> {
    let view = change.view();
    let meta = &view.meta;
    let removed = meta.layer(pair.removed).is_some_and(|record| record.removed);
    let mut children = meta.children(pair.removed);
    let only = children.next().is_some_and(|child| child.id == pair.child) && children.next().is_none();
    if meta.rebuilding {
        return Err(StoreError::Busy { what: "a rebuild" });
    }
    Ok(removed && only)
}

/// The child takes the removed layer's place; answers the files that the removed layer had.
fn take_out(meta: &mut Metadata, pair: Pair) -> Option<uuid::Uuid> {
    let removed = meta.layer(pair.removed)?.clone();
    meta.layers.retain(|record| record.id != pair.removed);
    let child = meta.layer_mut(pair.child)?;
    child.parent = removed.parent;
    let newer = std::mem::take(&mut child.absorbed);
    child.absorbed = removed.absorbed.into_iter().chain([removed.id]).chain(newer).collect();
    Some(removed.files)
}
