//! Freezing the head, forgetting snapshots, and going back to one. Each is a single replacement of the metadata, so
//! a crash leaves the volume before or after it.

use std::sync::Arc;

use super::error::{Result, StoreError};
use super::layer::Layer;
use super::metadata::{LayerRecord, Metadata};
use super::state::{Store, remove_files};
use crate::ids::LayerId;
use crate::wire::message::SnapshotSpec;

/// Kubernetes names fit, and so does everything a person types.
const MAX_NAME: usize = 253;

impl Store {
    /// Everything written so far becomes the snapshot, durably, and writes go on in an empty layer.
    pub fn snapshot(&self, snapshot: SnapshotSpec, new_head: LayerId) -> Result<()> {
        check_name(&snapshot.name)?;
        let change = self.begin()?;
        let mut meta = change.meta();
        if meta.snapshot(&snapshot.name).is_some() {
            return Err(StoreError::SnapshotExists { name: snapshot.name });
        }
        if meta.layers.len() >= self.limits.layers {
            return Err(StoreError::ChainFull { layers: meta.layers.len(), limit: self.limits.layers });
        }
        let head = self.view.load().head().clone();
        // Most of it while writes go on, so that they wait for the rest only.
        self.sync_layer(&head)?;
        let (record, layer) = self.new_head(&meta, new_head, meta.head)?;
        let frozen = meta.head;
        if let Some(old) = meta.layer_mut(frozen) {
            old.snapshot = Some(snapshot);
        }
        meta.head = new_head;
        meta.layers.push(record);
        let mut layers = change.layers();
        layers.insert(new_head, layer);

        let gate = self.gate.write();
        self.sync_layer(&head)?;
        change.commit(meta, layers).inspect_err(|_| self.forget_new(new_head))?;
        drop(gate);
        head.optimise();
        Ok(())
    }

    /// The snapshot is no longer listed; a purge gives its space back.
    pub fn remove_snapshot(&self, name: &str) -> Result<()> {
        let change = self.begin()?;
        let mut meta = change.meta();
        let id = self.view.load().snapshot(name)?.id;
        if let Some(record) = meta.layer_mut(id) {
            record.removed = true;
        }
        let layers = change.layers();
        change.commit(meta, layers)
    }

    /// The volume reads as it did at the snapshot. What was written since the last snapshot is gone; other snapshots
    /// stay, as branches.
    pub fn revert(&self, name: &str, new_head: LayerId) -> Result<()> {
        let change = self.begin()?;
        let mut meta = change.meta();
        if meta.rebuilding {
            return Err(StoreError::Busy { what: "a rebuild" });
        }
        let base = self.view.load().snapshot(name)?.id;
        let (record, layer) = self.new_head(&meta, new_head, base)?;
        let old = meta.head;
        let dropped = meta.layer(old).map(|record| record.files);
        meta.layers.retain(|record| record.id != old);
        meta.layers.push(record);
        meta.doomed.extend(dropped);
        meta.head = new_head;
        let mut layers = change.layers();
        layers.remove(&old);
        layers.insert(new_head, layer);

        let _gate = self.gate.write();
        change.commit(meta, layers).inspect_err(|_| self.forget_new(new_head))
    }

    fn new_head(&self, meta: &Metadata, id: LayerId, parent: LayerId) -> Result<(LayerRecord, Arc<Layer>)> {
        let known =
            |record: &LayerRecord| record.id == id || record.files == id.0 || record.absorbed.contains(&id);
        if meta.layers.iter().any(known) || meta.doomed.contains(&id.0) {
            return Err(StoreError::LayerExists(id));
        }
        let record = LayerRecord::empty(id, Some(parent), meta.size);
        let layer = Layer::create(&*self.disk, &record)?;
        self.disk.sync_names().map_err(StoreError::io("sync the new layer's names"))?;
        Ok((record, Arc::new(layer)))
    }

    /// The files of a layer that did not come to be. When it is uncertain whether it did, they stay.
    fn forget_new(&self, id: LayerId) {
        if self.poison.load().is_none() {
            remove_files(&*self.disk, id.0);
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    let refuse = |reason| Err(StoreError::Name { name: name.to_owned(), reason });
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.chars().count() > MAX_NAME {
        return refuse("it is longer than 253 characters");
    }
    if name.contains('/') || name.chars().any(char::is_control) {
        return refuse("it holds a slash or a character that cannot be printed");
    }
    Ok(())
}
