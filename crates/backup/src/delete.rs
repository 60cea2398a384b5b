//! Deleting one backup or all of a volume.
//! Must never delete a block before the last backup that lists it is durably gone.

use tokio_util::sync::CancellationToken;

use futures::stream::StreamExt;

use crate::catalog::Catalog;
use crate::checksum::Checksum;
use crate::error::{Error, Result};
use crate::lock::{Lease, LockKind};
use crate::names::{BackupName, VolumeName};
use crate::references::{self, References, Unsure, survey};
use crate::repository::Repository;

/// Deletions between two looks at the lock.
const BATCH: usize = 64;
/// Keys that are listed before they are deleted: a page of an S3 listing.
const PAGE: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteSummary {
    pub blocks_deleted: u64,
    /// Why the backup's blocks were left where they are, if they were.
    pub blocks_kept: Option<Unsure>,
}

impl Repository {
    /// Deletes a backup and the blocks that only it used. Reads that backup and those the reference index does not
    /// know yet, not all.
    ///
    /// Cancellation is only for the time that it waits for others.
    pub async fn delete_backup(
        &self,
        volume: &VolumeName,
        backup: &BackupName,
        cancel: &CancellationToken,
    ) -> Result<DeleteSummary> {
        let catalog = self.catalog(volume);
        let lease = self.lock(&catalog, LockKind::Exclusive, cancel).await?;
        let result = delete_locked(&catalog, backup, &lease).await;
        lease.release().await;
        result
    }

    /// Deletes everything of a volume. Interrupted and repeated, it goes on.
    pub async fn delete_volume(&self, volume: &VolumeName, cancel: &CancellationToken) -> Result<()> {
        let catalog = self.catalog(volume);
        let found = self.store.list(catalog.layout.root()).await?;
        if found.objects.is_empty() && found.directories.is_empty() {
            return Err(Error::NoVolume(volume.clone()));
        }
        let lease = self.lock(&catalog, LockKind::Exclusive, cancel).await?;
        let result = delete_all_locked(&catalog, &lease).await;
        lease.release().await;
        result
    }
}

/// First the references of all backups are known. Then the configuration goes, and from here on the backup is gone.
/// The index follows, then the blocks: a crash leaves unused blocks and maybe an index that does not match.
async fn delete_locked(catalog: &Catalog, backup: &BackupName, lease: &Lease) -> Result<DeleteSummary> {
    let key = catalog.layout.backup_config(backup);
    let listed = catalog.list_backups().await?;
    if !listed.iter().any(|entry| entry.key == key) {
        let volume = catalog.layout.volume().clone();
        return Err(Error::NoBackup { volume, backup: backup.clone() });
    }
    let mut survey = survey(catalog, &listed, Some(backup), lease.server_now()).await?;
    let blocks = match survey.references.backups.contains_key(backup) {
        true => catalog.load_backup(backup).await?.blocks,
        false => Vec::new(),
    };

    lease.check()?;
    catalog.store.delete(&key).await?;
    let unused = survey.references.remove(backup, &blocks);
    drop(blocks);
    update_volume(catalog, backup, &survey.references, survey.unsure.is_none()).await?;
    let summary = DeleteSummary {
        blocks_deleted: if survey.unsure.is_none() { unused.len() as u64 } else { 0 },
        blocks_kept: survey.unsure,
    };
    if summary.blocks_kept.is_none() {
        references::save(catalog, &survey.references).await?;
        delete_blocks(catalog, &unused, lease).await?;
    }
    lease.remove_expired().await?;
    Ok(summary)
}

pub async fn delete_blocks(catalog: &Catalog, blocks: &[Checksum], lease: &Lease) -> Result<()> {
    for batch in blocks.chunks(BATCH) {
        let keys: Vec<_> = batch.iter().map(|block| catalog.layout.block(*block)).collect();
        delete_keys(catalog, &keys, lease).await?;
    }
    Ok(())
}

async fn delete_keys(catalog: &Catalog, keys: &[String], lease: &Lease) -> Result<()> {
    for batch in keys.chunks(BATCH) {
        lease.check()?;
        catalog.store.delete_many(batch.to_vec()).await?;
    }
    Ok(())
}

/// The volume's last backup is the newest of those that are left, and if all are known, so is the block count.
async fn update_volume(
    catalog: &Catalog,
    deleted: &BackupName,
    left: &References,
    is_complete: bool,
) -> Result<()> {
    let Some(mut volume) = catalog.find_volume().await? else { return Ok(()) };
    if volume.last_backup_name == deleted.as_str() {
        let (name, at) = match left.newest() {
            Some((name, backup)) => (name.to_string(), backup.snapshot_created_at.clone()),
            None => (String::new(), String::new()),
        };
        volume.last_backup_name = name;
        volume.last_backup_at = at;
    }
    if is_complete {
        volume.block_count = left.block_count();
    }
    catalog.save_volume(&volume).await
}

/// The backups first, so that none is ever listed without its blocks; `volume.cfg` last, so that a volume of which
/// something is left can still be found.
async fn delete_all_locked(catalog: &Catalog, lease: &Lease) -> Result<()> {
    let layout = &catalog.layout;
    for entry in catalog.store.list(&layout.backups()).await?.objects {
        lease.check()?;
        catalog.store.delete(&entry.key).await?;
    }
    let (locks, config) = (format!("{}/", layout.locks()), layout.volume_config());
    let is_ours = |key: &str| key != config && !key.starts_with(&locks);
    loop {
        // A page is collected before it is deleted, because a listing may skip what moves under it.
        let mut walk = catalog.store.walk(layout.root());
        let mut page = Vec::new();
        while let Some(entry) = walk.next().await {
            let key = entry?.key;
            if is_ours(&key) {
                page.push(key);
            }
            if page.len() == PAGE {
                break;
            }
        }
        drop(walk);
        if page.is_empty() {
            break;
        }
        delete_keys(catalog, &page, lease).await?;
    }
    catalog.store.remove_leftovers(layout.root()).await?;
    catalog.store.delete(&config).await?;
    lease.remove_expired().await
}
