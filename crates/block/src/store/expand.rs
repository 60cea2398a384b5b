//! Growing the volume while it is in use. The files grow first: a crash before the metadata leaves room that nobody
//! reads.

use std::sync::Arc;

use super::error::{Result, StoreError};
use super::open::check_size;
use super::segments;
use super::state::Store;

impl Store {
    /// New space reads as zero. The same size again does nothing; a smaller one is refused.
    pub fn expand(&self, size: u64) -> Result<()> {
        check_size(size)?;
        let change = self.begin()?;
        let mut meta = change.meta();
        if size == meta.size {
            return Ok(());
        }
        if size < meta.size {
            return Err(StoreError::Size { size, reason: "a volume only grows" });
        }
        let old = meta.size;
        let id = meta.head;
        meta.size = size;
        let Some(record) = meta.layer_mut(id) else {
            return Err(StoreError::LayerNotFound(id));
        };
        record.size = size;
        let record = record.clone();
        let mut layers = change.layers();
        self.intents.grow(size).inspect_err(|error| self.poison_on_io(error))?;
        let head = self.view.load().head().clone();
        if segments::count(old) == segments::count(size) {
            head.grow(size).map_err(self.failed(|| format!("grow layer {id}")))?;
            return change.commit(meta, layers);
        }
        let _gate = self.gate.write();
        let longer = Arc::new(head.with_more_segments(&*self.disk, &record, segments::count(old))?);
        self.disk.sync_names().map_err(StoreError::io("sync the new files' names"))?;
        longer.grow(size).map_err(self.failed(|| format!("grow layer {id}")))?;
        layers.insert(id, longer);
        change.commit(meta, layers)
    }
}
