//! A replica's bytes: one directory with a metadata file that is replaced atomically and a tree of sparse layers.
//! Knows nothing of engines, generations' meaning or the network; never changes a frozen layer's content.

mod error;
mod options;

use std::sync::Arc;

use bytes::Bytes;

pub use error::{Result, StoreError};
pub use options::{BackingOptions, CloneOptions, CreateOptions, Limits, OpenOptions};

use crate::disk::Disk;
use crate::geometry::Range;
use crate::ids::LayerId;
use crate::wire::message::{Layer, Membership, Progress, Regions, ReplicaInfo, Run, SnapshotSpec};

/// One open replica directory. All methods may be called from many threads at once and block on the disk.
pub struct Store {
    disk: Arc<dyn Disk>,
}

#[allow(unused_variables)]
impl Store {
    pub fn create(disk: Arc<dyn Disk>, options: CreateOptions) -> Result<Self> {
        Ok(Self { disk })
    }
    pub fn open(disk: Arc<dyn Disk>, options: OpenOptions) -> Result<Self> {
        Ok(Self { disk })
    }
    pub fn info(&self) -> Result<ReplicaInfo> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn size(&self) -> u64 {
        0
    }
    pub fn volume(&self) -> Option<String> {
        None
    }
    pub fn set_volume(&self, name: &str) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn is_rebuilding(&self) -> bool {
        false
    }
    pub fn digests(&self, range: Range, chunk: u64) -> Result<Bytes> {
        Err(StoreError::Busy { what: "building" })
    }
    /// Fills the buffer, which must be as long as the range.
    pub fn read_into(&self, range: Range, into: &mut [u8]) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    /// Like `read_into` if it needs no disk access; `false`: it would have, and the buffer holds nothing of use.
    pub fn read_cached(&self, range: Range, into: &mut [u8]) -> Result<bool> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn zero(&self, range: Range, allocate: bool) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    /// Everything that returned before this was called is on disk when this returns. Concurrent calls share a sync.
    pub fn flush(&self) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn snapshot(&self, snapshot: SnapshotSpec, new_head: LayerId) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn remove_snapshot(&self, name: &str) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn revert(&self, name: &str, new_head: LayerId) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    /// Runs to the end on the caller's thread, while everything else goes on. `Busy` when one is running.
    pub fn purge(&self) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    /// Makes a running purge return `Stopped` soon; the next purge goes on from there.
    pub fn stop_purge(&self) {}
    pub fn purge_progress(&self) -> Progress {
        Progress::default()
    }
    pub fn expand(&self, size: u64) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    /// On disk before it returns. Marks that are set already cost nothing.
    pub fn set_intents(&self, regions: &[Regions]) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    /// Reaches the disk some time later.
    pub fn clear_intents(&self, regions: &[Regions]) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn intents(&self) -> Vec<Regions> {
        Vec::new()
    }
    pub fn membership(&self) -> Membership {
        Membership::default()
    }
    /// On disk before it returns.
    pub fn set_membership(&self, record: Membership, clean: bool, rebuilding: bool) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    /// Turns this into an incomplete replica with that tree of layers; sets `rebuilding`. Durable before it returns.
    pub fn adopt(&self, size: u64, layers: &[Layer], head: LayerId) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn layer_complete(&self, layer: LayerId) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn layer_runs(&self, layer: LayerId, range: Range) -> Result<Vec<Run>> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn layer_read(&self, layer: LayerId, range: Range) -> Result<(Vec<Run>, Bytes)> {
        Err(StoreError::Busy { what: "building" })
    }
    /// 16 bytes for each chunk of the range.
    pub fn layer_digests(&self, layer: LayerId, range: Range, chunk: u64) -> Result<Bytes> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn layer_write(&self, layer: LayerId, runs: &[Run], data: &[u8]) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
    pub fn allocation(&self, range: Range) -> Result<Vec<Run>> {
        Err(StoreError::Busy { what: "building" })
    }
    /// Hex blake3 over the content as of a snapshot (`None`: now).
    pub fn checksum(&self, snapshot: Option<&str>) -> Result<String> {
        Err(StoreError::Busy { what: "building" })
    }
    /// Makes a new, independent replica in an empty directory, sharing the snapshot's layers.
    pub fn clone_to(&self, snapshot: &str, target: &dyn Disk, options: &CloneOptions) -> Result<()> {
        Err(StoreError::Busy { what: "building" })
    }
}
