//! Making a backup.
//! Must never make one visible whose blocks might be gone, nor touch a block that another backup may use.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::catalog::Catalog;
use crate::compression::Compression;
use crate::config::{BackupConfig, BlockMapping, BlockSize, VolumeConfig};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::lock::{Lease, LockKind};
use crate::names::{BackupName, VolumeName};
use crate::plan::{Before, Knowledge, Plan, merge};
use crate::repository::Repository;
use crate::upload::{Counts, Presence, Uploader};
use crate::url::BackupUrl;
use crate::volume::Source;

const MODE_PARAMETER: &str = "backup-mode";
const MODE_FULL: &str = "full";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub name: String,
    /// RFC 3339.
    pub created_at: String,
}

/// The image below a volume, which is not part of its backups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackingImage {
    pub name: String,
    pub checksum: String,
}

#[derive(Debug, Clone)]
pub struct BackupRequest {
    pub volume: VolumeName,
    pub backup: BackupName,
    pub snapshot: Snapshot,
    pub labels: BTreeMap<String, String>,
    /// `backup-mode=full` writes every block anew; `backup-block-size` is the same for all backups of a volume.
    pub parameters: BTreeMap<String, String>,
    /// Taken for the first backup of a volume; later ones follow that.
    pub compression: Compression,
    pub backing_image: Option<BackingImage>,
    pub storage_class: String,
    pub data_engine: String,
}

impl BackupRequest {
    pub fn new(volume: VolumeName, backup: BackupName, snapshot: Snapshot) -> Self {
        Self {
            volume,
            backup,
            snapshot,
            labels: BTreeMap::new(),
            parameters: BTreeMap::new(),
            compression: Compression::default(),
            backing_image: None,
            storage_class: String::new(),
            data_engine: "v1".into(),
        }
    }

    fn is_full(&self) -> bool {
        self.parameters.get(MODE_PARAMETER).is_some_and(|mode| mode == MODE_FULL)
    }

    fn volume_config(&self, size: u64) -> VolumeConfig {
        let mut config = VolumeConfig {
            name: self.volume.to_string(),
            created_time: now(),
            compression_method: self.compression.to_string(),
            ..VolumeConfig::default()
        };
        self.update(&mut config, size);
        config
    }

    fn update(&self, config: &mut VolumeConfig, size: u64) {
        let image = self.backing_image.clone().unwrap_or_default();
        config.size = size;
        config.labels.clone_from(&self.labels);
        config.backing_image_name = image.name;
        config.backing_image_checksum = image.checksum;
        config.storage_class_name.clone_from(&self.storage_class);
        config.data_engine.clone_from(&self.data_engine);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupSummary {
    pub url: BackupUrl,
    pub is_incremental: bool,
    /// Listed blocks, that is what a restore reads.
    pub blocks: u64,
    pub blocks_read: u64,
    pub blocks_uploaded: u64,
    pub bytes_uploaded: u64,
}

/// The backup before this one.
struct Last {
    config: BackupConfig,
    changed: Option<Vec<crate::extents::Extent>>,
}

impl Repository {
    /// Reads what changed since the last backup, or everything if that is not known, and makes a backup of it.
    ///
    /// When it fails, also by cancellation, nothing is listed; what was uploaded is found by the next attempt.
    pub async fn backup(
        &self,
        request: &BackupRequest,
        source: &dyn Source,
        job: &Job,
    ) -> Result<BackupSummary> {
        let catalog = self.catalog(&request.volume);
        let lease = self.lock(&catalog, LockKind::Shared, job.cancel()).await?;
        let result = self.backup_locked(request, source, job, &catalog, &lease).await;
        lease.release().await;
        result
    }

    async fn backup_locked(
        &self,
        request: &BackupRequest,
        source: &dyn Source,
        job: &Job,
        catalog: &Catalog,
        lease: &Lease,
    ) -> Result<BackupSummary> {
        let block_size = BlockSize::from_parameters(&request.parameters)?;
        let exists =
            || Error::BackupExists { volume: request.volume.clone(), backup: request.backup.clone() };
        if catalog.store.head(&catalog.layout.backup_config(&request.backup)).await?.is_some() {
            return Err(exists());
        }
        let is_new = catalog.find_volume().await?.is_none();
        let volume = catalog.load_or_add_volume(request.volume_config(source.size())).await?;
        let last = self.last_backup(request, source, catalog, &volume, block_size).await?;

        let allocated = source.allocated().await.map_err(Error::Extents)?;
        let knowledge = Knowledge {
            size: source.size(),
            block_size,
            allocated: &allocated,
            has_backing_image: request.backing_image.is_some(),
        };
        let before = last.as_ref().and_then(|last| {
            last.changed.as_ref().map(|changed| Before { blocks: &last.config.blocks, changed })
        });
        let is_incremental = before.is_some();
        let plan = Plan::new(&knowledge, before);

        let known = last.iter().flat_map(|last| &last.config.blocks).map(|block| block.block_checksum);
        let uploader = Uploader {
            catalog,
            source,
            compression: volume.compression()?,
            block_size,
            keep_zeroes: request.backing_image.is_some(),
            presence: match (is_new, request.is_full()) {
                (true, _) => Presence::New,
                (false, true) => Presence::Rewrite,
                (false, false) => Presence::Ask,
            },
            known: Mutex::new(known.collect::<HashSet<_>>()),
            counts: Counts::default(),
        };
        let blocks_read = plan.read.len() as u64;
        let blocks = merge(plan.kept, upload_all(&uploader, &plan.read, job).await?);
        let counts = uploader.counts;
        let config = finished(request, &volume, blocks, block_size, is_incremental, &counts);

        lease.check()?;
        if !catalog.add_backup(&request.backup, &config).await? {
            return Err(exists());
        }
        if let Err(lost) = lease.check() {
            withdraw_if_incomplete(catalog, &request.backup, &config, lost).await?;
        }
        let blocks_uploaded = counts.new_blocks.into_inner();
        if let Err(error) = record(request, source.size(), catalog, blocks_uploaded).await {
            tracing::warn!(volume = %request.volume, backup = %request.backup, %error, "the volume still names an older backup as its last");
        }
        Ok(BackupSummary {
            url: self.url(&request.volume, &request.backup),
            is_incremental,
            blocks: config.blocks.len() as u64,
            blocks_read,
            blocks_uploaded,
            bytes_uploaded: config.newly_uploaded_data_size + config.re_uploaded_data_size,
        })
    }

    /// `None` if there is nothing to build on.
    async fn last_backup(
        &self,
        request: &BackupRequest,
        source: &dyn Source,
        catalog: &Catalog,
        volume: &VolumeConfig,
        block_size: BlockSize,
    ) -> Result<Option<Last>> {
        let Ok(name) = BackupName::new(volume.last_backup_name.as_str()) else { return Ok(None) };
        let config = match catalog.load_finished_backup(&name).await {
            Ok(config) => config,
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => {
                tracing::info!(volume = %request.volume, backup = %name, %error, "the last backup is of no use; reading everything");
                return Ok(None);
            }
        };
        let theirs = config.block_size()?;
        if theirs != block_size {
            let volume = request.volume.clone();
            return Err(Error::BlockSizeDiffers { volume, backup: name, theirs, ours: block_size });
        }
        if request.is_full() {
            return Ok(None);
        }
        // The same snapshot twice: somebody wants to be sure, so it is read again.
        let is_other = config.snapshot_name != request.snapshot.name && !config.snapshot_name.is_empty();
        let changed = match is_other {
            true => source.changed_since(&config.snapshot_name).await.map_err(Error::Extents)?,
            false => None,
        };
        Ok(Some(Last { config, changed }))
    }
}

async fn upload_all(uploader: &Uploader<'_>, offsets: &[u64], job: &Job) -> Result<Vec<BlockMapping>> {
    let progress = job.progress();
    let unit = uploader.block_size.bytes();
    progress.expect(offsets.len() as u64 * unit);
    let mut blocks = Vec::with_capacity(offsets.len());
    let uploads = offsets.iter().copied().map(|offset| uploader.upload(offset));
    job.run(uploads, |block| {
        progress.add(unit);
        blocks.extend(block);
    })
    .await?;
    Ok(blocks)
}

fn finished(
    request: &BackupRequest,
    volume: &VolumeConfig,
    blocks: Vec<BlockMapping>,
    block_size: BlockSize,
    is_incremental: bool,
    counts: &Counts,
) -> BackupConfig {
    BackupConfig {
        name: request.backup.to_string(),
        volume_name: request.volume.to_string(),
        snapshot_name: request.snapshot.name.clone(),
        snapshot_created_at: request.snapshot.created_at.clone(),
        created_time: now(),
        size: blocks.len() as u64 * block_size.bytes(),
        labels: request.labels.clone(),
        parameters: request.parameters.clone(),
        is_incremental,
        compression_method: volume.compression_method.clone(),
        newly_uploaded_data_size: counts.new_bytes.load(Ordering::Relaxed),
        re_uploaded_data_size: counts.rewritten_bytes.load(Ordering::Relaxed),
        blocks,
        ..BackupConfig::default()
    }
}

/// The lock ran out while the backup was made visible, so a deletion may have begun before: then it has not seen
/// this backup and may have deleted its blocks.
async fn withdraw_if_incomplete(
    catalog: &Catalog,
    name: &BackupName,
    config: &BackupConfig,
    lost: Error,
) -> Result<()> {
    let mut seen = HashSet::new();
    for block in config.blocks.iter().filter(|block| seen.insert(block.block_checksum)) {
        if catalog.store.head(&catalog.layout.block(block.block_checksum)).await?.is_none() {
            catalog.store.delete(&catalog.layout.backup_config(name)).await?;
            return Err(lost);
        }
    }
    Ok(())
}

/// The volume follows its newest backup. If this does not happen, the next backup builds on an older one, and that
/// is all: this one is complete.
async fn record(request: &BackupRequest, size: u64, catalog: &Catalog, new_blocks: u64) -> Result<()> {
    let mut volume = catalog.load_or_add_volume(request.volume_config(size)).await?;
    request.update(&mut volume, size);
    volume.last_backup_name = request.backup.to_string();
    volume.last_backup_at.clone_from(&request.snapshot.created_at);
    volume.block_count += new_blocks;
    catalog.save_volume(&volume).await
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
