//! Growing the volume while it is in use. The files grow first: a crash before the metadata leaves room that nobody
//! reads.

use super::error::{Result, StoreError};
use super::open::check_size;
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
        let head = self.view.load().head().clone();
        head.grow(size).map_err(self.failed(format!("grow layer {}", head.id)))?;
        self.intents.grow(size).inspect_err(|error| self.poison_on_io(error))?;
        meta.size = size;
        let id = meta.head;
        if let Some(record) = meta.layer_mut(id) {
            record.size = size;
        }
        let layers = change.layers();
        change.commit(meta, layers)
    }
}
