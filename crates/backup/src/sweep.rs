//! Looking at every block of a volume: deleting those that no backup uses and naming those that are missing.
//! Must never delete anything while one backup cannot be read.

use std::collections::HashSet;

use futures::stream::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::checksum::Checksum;
use crate::delete::delete_blocks;
use crate::error::{Error, Result};
use crate::layout;
use crate::lock::{Lease, LockKind};
use crate::names::VolumeName;
use crate::references::{self, Unsure, survey_all};
use crate::repository::Repository;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepSummary {
    pub blocks_used: u64,
    pub blocks_deleted: u64,
    pub bytes_deleted: u64,
    /// Blocks that backups list but the store does not have: those backups cannot be restored.
    pub missing: Vec<Checksum>,
    /// Why nothing was deleted, if that is so.
    pub blocks_kept: Option<Unsure>,
}

impl Repository {
    /// Finds what interrupted jobs have left. Reads all backups and lists all blocks, so it is for quiet hours.
    pub async fn sweep(&self, volume: &VolumeName, cancel: &CancellationToken) -> Result<SweepSummary> {
        let catalog = self.catalog(volume);
        let lease = self.lock(&catalog, LockKind::Exclusive, cancel).await?;
        let result = sweep_locked(&catalog, &lease, cancel).await;
        lease.release().await;
        result
    }
}

async fn sweep_locked(catalog: &Catalog, lease: &Lease, cancel: &CancellationToken) -> Result<SweepSummary> {
    let listed = catalog.list_backups().await?;
    let survey = survey_all(catalog, &listed, lease.server_now()).await?;
    let mut missing: HashSet<Checksum> = survey.references.blocks().collect();
    let mut summary =
        SweepSummary { blocks_used: survey.references.block_count(), ..SweepSummary::default() };
    let mut unused = Vec::new();
    let blocks = catalog.layout.blocks();
    let mut walk = catalog.store.walk(&blocks);
    while let Some(entry) = walk.next().await {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let entry = entry?;
        let Some(block) = layout::block_of(&entry.key) else { continue };
        if !survey.references.contains(block) {
            unused.push(block);
            summary.bytes_deleted += entry.size;
        }
        missing.remove(&block);
    }
    drop(walk);
    summary.missing = missing.into_iter().collect();
    summary.missing.sort_unstable();
    if survey.unsure.is_some() {
        return Ok(SweepSummary { blocks_kept: survey.unsure, bytes_deleted: 0, ..summary });
    }
    references::save(catalog, &survey.references).await?;
    summary.blocks_deleted = unused.len() as u64;
    delete_blocks(catalog, &unused, lease).await?;
    if let Some(mut volume) = catalog.find_volume().await? {
        volume.block_count = survey.references.block_count();
        catalog.save_volume(&volume).await?;
    }
    catalog.store.remove_leftovers(catalog.layout.root()).await?;
    lease.remove_expired().await?;
    Ok(summary)
}
