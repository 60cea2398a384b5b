//! Which removed layer goes next, and which way. Looks only; changes nothing.

use std::sync::Arc;

use super::super::error::{Result, StoreError};
use super::super::layer::Layer;
use super::super::segments;
use super::super::view::View;
use crate::ids::LayerId;

/// Folding down must move this many times less than folding up, since it holds other changes up more.
const MUCH_LARGER: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub removed: LayerId,
    pub child: LayerId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing stands on it.
    Delete(LayerId),
    /// What the child does not have is copied into it.
    Up(Pair),
    /// The child's content is copied into the removed layer's files, which then are the child's.
    Down(Pair),
}

/// Layers right below one that stays come first: of a row of removed layers each block is then copied once at most.
pub(super) fn plan(view: &View) -> Result<Option<Step>> {
    let meta = &view.meta;
    let mut below_removed = None;
    for record in meta.layers.iter().filter(|record| record.removed) {
        let mut children = meta.children(record.id);
        match (children.next(), children.next()) {
            (None, _) => return Ok(Some(Step::Delete(record.id))),
            (Some(child), None) => {
                let pair = Pair { removed: record.id, child: child.id };
                match direction(view, pair)? {
                    Some(step) if child.removed => below_removed = below_removed.or(Some(step)),
                    Some(step) => return Ok(Some(step)),
                    None => {}
                }
            }
            _ => {}
        }
    }
    Ok(below_removed)
}

fn direction(view: &View, pair: Pair) -> Result<Option<Step>> {
    let ((removed, below), (child, above)) = (view.layer(pair.removed)?, view.layer(pair.child)?);
    if !(below.complete && above.complete) {
        return Ok(None);
    }
    let up = pair.child == view.meta.head || !shared(child)?;
    let fits = segments::count(below.size) == segments::count(above.size);
    let down = pair.child != view.meta.head && fits && may_take_over(removed)?;
    let (moved_up, moved_down) = (removed.data_len(), child.data_len());
    Ok(match (up, down) {
        (true, true) if moved_down * MUCH_LARGER < moved_up => Some(Step::Down(pair)),
        (true, _) => Some(Step::Up(pair)),
        (false, true) => Some(Step::Down(pair)),
        (false, false) => None,
    })
}

/// Nobody else reads the files, neither a clone nor somebody who reads this very layer.
pub(super) fn may_take_over(layer: &Layer) -> Result<bool> {
    Ok(!shared(layer)? && Arc::strong_count(&layer.pin) == 1)
}

pub(super) fn shared(layer: &Layer) -> Result<bool> {
    layer.is_shared().map_err(StoreError::io(format!("look at the files of layer {}", layer.id)))
}
