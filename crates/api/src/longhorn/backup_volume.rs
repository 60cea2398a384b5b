//! BackupVolume: a volume as the backup store knows it, with what its backups have in common.
//! Made when the store is looked at; the volume itself may be gone.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "BackupVolume",
    plural = "backupvolumes",
    namespaced,
    status = "BackupVolumeStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A volume of which a backup store has backups.",
    shortname = "lhbv",
    printcolumn(name = "BackupTarget", type_ = "string", json_path = ".spec.backupTargetName"),
    printcolumn(name = "CreatedAt", type_ = "string", json_path = ".status.createdAt"),
    printcolumn(name = "LastBackupName", type_ = "string", json_path = ".status.lastBackupName"),
    printcolumn(name = "LastBackupAt", type_ = "string", json_path = ".status.lastBackupAt"),
    printcolumn(name = "LastSyncedAt", type_ = "string", json_path = ".status.lastSyncedAt")
)]
#[serde(rename_all = "camelCase")]
pub struct BackupVolumeSpec {
    pub backup_target_name: Option<String>,
    /// Asks for a look at the backup store.
    pub sync_requested_at: Option<Time>,
    /// Name of the volume in the store.
    pub volume_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupVolumeStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub last_modification_time: Option<Time>,
    /// Bytes, as text.
    pub size: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
    pub created_at: Option<String>,
    pub last_backup_name: Option<String>,
    pub last_backup_at: Option<String>,
    pub data_stored: Option<String>,
    /// By level, such as error.
    pub messages: Option<BTreeMap<String, String>>,
    pub backing_image_name: Option<String>,
    pub backing_image_checksum: Option<String>,
    pub storage_class_name: Option<String>,
    pub last_synced_at: Option<Time>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
