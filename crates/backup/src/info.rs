//! What others are told about volumes and backups in a target.
//! Must never hold a block list: these go over the wire.

use std::collections::BTreeMap;

use crate::config::{BackupConfig, BlockSize, VolumeConfig};
use crate::url::BackupUrl;

/// The key of `messages` under which a problem is told.
pub const ERROR_MESSAGE: &str = "error";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeInfo {
    pub name: String,
    pub size: u64,
    pub labels: BTreeMap<String, String>,
    pub created: String,
    pub last_backup_name: String,
    pub last_backup_at: String,
    pub data_stored: u64,
    pub messages: BTreeMap<String, String>,
    pub backups: BTreeMap<String, BackupInfo>,
    pub backing_image_name: String,
    pub backing_image_checksum: String,
    pub storage_class_name: String,
    pub data_engine: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupInfo {
    pub name: String,
    pub url: String,
    pub snapshot_name: String,
    pub snapshot_created: String,
    pub created: String,
    pub size: u64,
    pub labels: BTreeMap<String, String>,
    pub parameters: BTreeMap<String, String>,
    pub is_incremental: bool,
    pub compression_method: String,
    pub newly_uploaded_data_size: u64,
    pub re_uploaded_data_size: u64,
    pub volume_name: String,
    pub volume_size: u64,
    pub volume_created: String,
    pub volume_backing_image_name: String,
    pub messages: BTreeMap<String, String>,
}

impl VolumeInfo {
    pub(crate) fn new(volume: VolumeConfig, block_size: BlockSize) -> Self {
        Self {
            name: volume.name,
            size: volume.size,
            labels: volume.labels,
            created: volume.created_time,
            last_backup_name: volume.last_backup_name,
            last_backup_at: volume.last_backup_at,
            data_stored: volume.block_count.saturating_mul(block_size.bytes()),
            backing_image_name: volume.backing_image_name,
            backing_image_checksum: volume.backing_image_checksum,
            storage_class_name: volume.storage_class_name,
            data_engine: volume.data_engine,
            ..Self::default()
        }
    }
}

impl BackupInfo {
    pub(crate) fn new(backup: BackupConfig, volume: &VolumeConfig, url: &BackupUrl) -> Self {
        Self {
            name: backup.name,
            url: url.to_string(),
            snapshot_name: backup.snapshot_name,
            snapshot_created: backup.snapshot_created_at,
            created: backup.created_time,
            size: backup.size,
            labels: backup.labels,
            parameters: backup.parameters,
            is_incremental: backup.is_incremental,
            compression_method: backup.compression_method,
            newly_uploaded_data_size: backup.newly_uploaded_data_size,
            re_uploaded_data_size: backup.re_uploaded_data_size,
            volume_name: volume.name.clone(),
            volume_size: volume.size,
            volume_created: volume.created_time.clone(),
            volume_backing_image_name: volume.backing_image_name.clone(),
            messages: BTreeMap::new(),
        }
    }

    /// A backup that is listed but cannot be told about.
    pub(crate) fn unreadable(url: &BackupUrl, message: String) -> Self {
        Self {
            name: url.backup.as_ref().map(ToString::to_string).unwrap_or_default(),
            url: url.to_string(),
            volume_name: url.volume.to_string(),
            messages: [(ERROR_MESSAGE.to_owned(), message)].into(),
            ..Self::default()
        }
    }
}
