//! Which volume a replica belongs to. Recorded once and never changed: a replica of one volume must not become one
//! of another by a mistyped address.

use super::error::{Result, StoreError};
use super::state::Store;

impl Store {
    /// The volume's name, once anybody has given it one.
    pub fn volume(&self) -> Option<String> {
        self.view.load().meta.volume.clone()
    }

    /// On disk before it returns.
    pub fn set_volume(&self, name: &str) -> Result<()> {
        let change = self.begin()?;
        let mut meta = change.meta();
        match &meta.volume {
            Some(own) if own == name => return Ok(()),
            Some(own) => {
                return Err(StoreError::Invalid(format!(
                    "the replica belongs to volume {own}, not to {name}"
                )));
            }
            None => meta.volume = Some(name.to_owned()),
        }
        let layers = change.layers();
        change.commit(meta, layers)
    }
}
