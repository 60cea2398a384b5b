//! Backup: one backup in a backup store, made here or found there.
//! Sizes in its status are texts without a format.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::{Extra, IntString, closed_enum, open_enum};

open_enum! {
    /// How far a backup has come.
    pub enum BackupState {
        New = "",
        Pending = "Pending",
        InProgress = "InProgress",
        Completed = "Completed",
        Error = "Error",
        Unknown = "Unknown",
        Deleting = "Deleting",
    }
}

closed_enum! {
    /// How blocks of a backup are compressed.
    pub enum CompressionMethod {
        None = "none",
        Lz4 = "lz4",
        Gzip = "gzip",
    }
}

closed_enum! {
    /// Whether blocks are sent that the store has already.
    pub enum BackupMode {
        Full = "full",
        Incremental = "incremental",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "Backup",
    plural = "backups",
    namespaced,
    status = "BackupStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A backup of a snapshot in a backup store.",
    shortname = "lhb",
    printcolumn(name = "SnapshotName", type_ = "string", json_path = ".status.snapshotName"),
    printcolumn(name = "SnapshotSize", type_ = "string", json_path = ".status.size"),
    printcolumn(name = "SnapshotCreatedAt", type_ = "string", json_path = ".status.snapshotCreatedAt"),
    printcolumn(name = "BackupTarget", type_ = "string", json_path = ".status.backupTargetName"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "LastSyncedAt", type_ = "string", json_path = ".status.lastSyncedAt")
)]
#[serde(rename_all = "camelCase")]
pub struct BackupSpec {
    /// Asks for a look at the backup store.
    pub sync_requested_at: Option<Time>,
    /// Empty for a backup found in the store.
    pub snapshot_name: Option<String>,
    /// Kept with the backup itself.
    pub labels: Option<BTreeMap<String, String>>,
    pub backup_mode: Option<BackupMode>,
    /// Bytes per block; -1 for unknown.
    #[schemars(extend("enum" = ["-1", "2097152", "16777216"]))]
    pub backup_block_size: Option<IntString>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub state: Option<BackupState>,
    pub progress: Option<i64>,
    pub replica_address: Option<String>,
    pub error: Option<String>,
    pub url: Option<String>,
    pub snapshot_name: Option<String>,
    pub snapshot_created_at: Option<String>,
    pub backup_created_at: Option<String>,
    /// Bytes, as text.
    pub size: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
    /// By level, such as error.
    pub messages: Option<BTreeMap<String, String>>,
    pub volume_name: Option<String>,
    pub volume_size: Option<String>,
    pub volume_created: Option<String>,
    pub volume_backing_image_name: Option<String>,
    pub last_synced_at: Option<Time>,
    pub compression_method: Option<String>,
    pub newly_upload_data_size: Option<String>,
    pub re_uploaded_data_size: Option<String>,
    pub backup_target_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
