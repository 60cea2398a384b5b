//! What the volume was at a snapshot, for readers that do not own the replica, while everything else goes on.
//! Only frozen layers of a replica that is whole are read; whatever could have changed them meanwhile is looked for
//! afterwards, so that no lock is held while the disk is read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::content::runs;
use super::error::{Result, StoreError};
use super::io::read_chain;
use super::layer::Layer;
use super::metadata::LayerRecord;
use super::state::Store;
use super::view::{View, locate};
use crate::geometry::{MAX_IO, Range};
use crate::ids::LayerId;
use crate::wire::message::{Run, RunKind};

/// The layers that have a say, newest first, and how often the store had been made a copy of another when they were
/// looked up.
struct Frozen {
    layer: LayerId,
    chain: Vec<Arc<Layer>>,
    adoptions: u64,
}

impl Store {
    /// What the layers from `layer` down say of a range: all of them, or those above `since`. The runs cover the range.
    ///
    /// Above `since`, while that is removed and folded, a run may say again what `since` says: never less than what
    /// changed, and always the content at `layer`.
    pub fn snapshot_runs(&self, layer: LayerId, since: Option<LayerId>, range: Range) -> Result<Vec<Run>> {
        let frozen = self.frozen(layer, since, range)?;
        let found = frozen.runs(range);
        self.check_still(&frozen)?;
        Ok(found)
    }

    /// [`Store::snapshot_runs`] with the content of the data runs, one after the other.
    pub fn snapshot_read(
        &self,
        layer: LayerId,
        since: Option<LayerId>,
        range: Range,
    ) -> Result<(Vec<Run>, Bytes)> {
        if range.len > u64::from(MAX_IO) {
            return Err(StoreError::Invalid(format!("{} bytes are more than {MAX_IO} at a time", range.len)));
        }
        let frozen = self.frozen(layer, since, range)?;
        let found = frozen.runs(range);
        let data = || found.iter().filter(|run| run.kind == RunKind::Data).map(|run| run.range);
        let mut bytes = vec![0; data().map(|range| range.len).sum::<u64>() as usize];
        let mut rest = &mut bytes[..];
        for part in data() {
            let (into, after) = rest.split_at_mut(part.len as usize);
            rest = after;
            read_chain(&frozen.chain, part, into, |layer, offset, into| {
                layer.read_aside(offset, into).map(|()| true)
            })?;
        }
        self.check_still(&frozen)?;
        Ok((found, bytes.into()))
    }

    fn frozen(&self, layer: LayerId, since: Option<LayerId>, range: Range) -> Result<Frozen> {
        // Counted before the tree is looked at: whoever fills it afterwards is noticed.
        let adoptions = self.adoptions.load(Ordering::SeqCst);
        let view = self.view.load();
        let size = check_frozen(&view, layer)?.size;
        if !range.fits(size) {
            return Err(StoreError::OutOfRange { range, size });
        }
        let mut chain = view.chain_of(layer);
        if let Some(since) = since {
            view.layer(since)?;
            let above = chain.iter().position(|it| it.id == since).ok_or_else(|| {
                StoreError::Invalid(format!(
                    "layer {layer} does not stand on {since}: there is no telling what changed"
                ))
            })?;
            chain.truncate(above);
        }
        Ok(Frozen { layer, chain, adoptions })
    }

    /// A layer is filled only after a rebuild was begun, and taken apart only after it was removed. If neither has
    /// happened by now, it had not when its content was read.
    fn check_still(&self, frozen: &Frozen) -> Result<()> {
        check_frozen(&self.view.load(), frozen.layer)?;
        if self.adoptions.load(Ordering::SeqCst) != frozen.adoptions {
            return Err(StoreError::Busy { what: "a rebuild" });
        }
        self.usable()
    }
}

/// Whether the layer is one that nobody changes.
fn check_frozen(view: &View, layer: LayerId) -> Result<&LayerRecord> {
    if view.meta.rebuilding {
        return Err(StoreError::Busy { what: "a rebuild" });
    }
    let (_, record) = view.layer(layer)?;
    if layer == view.meta.head {
        return Err(StoreError::LayerChanges(layer));
    }
    if record.removed {
        return Err(StoreError::LayerRemoved(layer));
    }
    Ok(record)
}

impl Frozen {
    fn runs(&self, range: Range) -> Vec<Run> {
        runs(range, |blocks| {
            let (found, end) = locate(&self.chain, blocks);
            (RunKind::of(&found), end)
        })
    }
}
