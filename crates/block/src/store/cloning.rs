//! A new volume from a snapshot, at once: the clone's directory gets second names for the snapshot's files.
//!
//! The clone inherits the snapshot's layers, and they are not its snapshots: they are not listed, cannot be removed
//! by name, and stay below what the clone writes. Either side may be deleted at any time; the file system counts.
//! A file with several names is never changed by anybody.

use super::error::{Result, StoreError};
use super::metadata::{FORMAT, LayerRecord, Metadata};
use super::open::{clear_for_new, lock, make_files, save_new};
use super::options::CloneOptions;
use super::state::Store;
use crate::disk::Disk;
use crate::wire::message::Membership;

impl Store {
    /// Makes a replica in an empty directory of the same file system. It has the size the volume had then, and no
    /// membership.
    pub fn clone_to(&self, snapshot: &str, target: &dyn Disk, options: &CloneOptions) -> Result<()> {
        // Keeps folding away: it changes files only after it has seen, under the same lock, that they have one name.
        let _change = self.begin()?;
        let view = self.view.load();
        let base = view.snapshot(snapshot)?;
        let inherited: Vec<LayerRecord> = view.meta.ancestry(base.id).cloned().collect();
        if let Some(unfinished) = inherited.iter().find(|record| !record.complete) {
            return Err(StoreError::Invalid(format!(
                "snapshot {snapshot} stands on layer {}, which a rebuild has not finished; clone it from another replica",
                unfinished.id
            )));
        }
        let _lock = lock(target)?;
        clear_for_new(target)?;
        for name in inherited.iter().flat_map(LayerRecord::names) {
            self.disk.link(&name, target).map_err(|error| self.link_error(&name, target, error))?;
        }
        let head = LayerRecord::empty(options.head, Some(base.id), base.size);
        let strip = |record: LayerRecord| LayerRecord { snapshot: None, ..record };
        let meta = Metadata {
            format: FORMAT,
            replica: options.replica,
            volume: None,
            size: base.size,
            head: options.head,
            membership: Membership::default(),
            clean: true,
            rebuilding: false,
            layers: inherited.into_iter().map(strip).chain([head]).collect(),
            doomed: Vec::new(),
        };
        meta.check().map_err(StoreError::Tree)?;
        make_files(target, &meta)?;
        save_new(target, &meta)
    }

    fn link_error(&self, name: &str, target: &dyn Disk, error: std::io::Error) -> StoreError {
        match error.kind() {
            std::io::ErrorKind::CrossesDevices => {
                StoreError::CrossDevice { from: self.disk.describe(), to: target.describe() }
            }
            _ => StoreError::io(format!("link {name} into {}", target.describe()))(error),
        }
    }
}
