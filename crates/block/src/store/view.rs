//! The tree of layers as it stands: never changed, only replaced. Whoever holds one keeps reading consistent bytes
//! from it, whatever is folded or deleted meanwhile.

use std::collections::HashMap;
use std::ops::Range as Blocks;
use std::sync::Arc;

use super::error::{Result, StoreError};
use super::layer::Layer;
use super::metadata::{LayerRecord, Metadata};
use crate::geometry::Range;
use crate::ids::LayerId;
use crate::wire::message::RunKind;

pub(super) type Layers = HashMap<LayerId, Arc<Layer>>;

pub(super) struct View {
    pub meta: Metadata,
    pub layers: Layers,
    /// From the head down.
    pub chain: Vec<Arc<Layer>>,
}

/// Who has the say over a run of blocks.
pub(super) enum Found<'a> {
    Data(&'a Arc<Layer>),
    /// Some layer hides what is below.
    Zero,
    /// No layer says anything.
    Absent,
}

impl View {
    pub fn new(meta: Metadata, layers: Layers) -> Self {
        let mut view = Self { meta, layers, chain: Vec::new() };
        view.chain = view.chain_of(view.meta.head);
        view
    }

    /// Whether a layer below the head is still being filled.
    pub fn is_filling(&self) -> bool {
        self.meta.rebuilding && self.chain.len() > 1
    }

    pub fn head(&self) -> &Arc<Layer> {
        &self.chain[0]
    }

    pub fn chain_of(&self, id: LayerId) -> Vec<Arc<Layer>> {
        self.meta.ancestry(id).filter_map(|record| self.layers.get(&record.id).cloned()).collect()
    }

    pub fn layer(&self, id: LayerId) -> Result<(&Arc<Layer>, &LayerRecord)> {
        match (self.layers.get(&id), self.meta.layer(id)) {
            (Some(layer), Some(record)) => Ok((layer, record)),
            _ => Err(StoreError::LayerNotFound(id)),
        }
    }

    pub fn snapshot(&self, name: &str) -> Result<&LayerRecord> {
        self.meta.snapshot(name).ok_or_else(|| StoreError::SnapshotNotFound { name: name.to_owned() })
    }

    pub fn check(&self, range: Range) -> Result<()> {
        if range.fits(self.meta.size) {
            Ok(())
        } else {
            Err(StoreError::OutOfRange { range, size: self.meta.size })
        }
    }
}

/// The newest layer with a say over the first block, and up to where it has it.
pub(super) fn locate(chain: &[Arc<Layer>], blocks: Blocks<u64>) -> (Found<'_>, u64) {
    let mut end = blocks.end;
    for layer in chain {
        let (kind, until) = layer.run(blocks.start..end);
        end = until;
        match kind {
            RunKind::Data => return (Found::Data(layer), end),
            RunKind::Zero => return (Found::Zero, end),
            RunKind::Absent => {}
        }
    }
    (Found::Absent, end)
}
