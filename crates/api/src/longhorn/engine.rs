//! Engine: the process that serves a volume and writes to its replicas.
//! Maps of addresses and modes are keyed by replica name, maps of progress by replica URL (`tcp://address`).

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Frontend, InstanceSpec, InstanceStatus};
use crate::wire::{Extra, IntString, open_enum};

open_enum! {
    /// What an engine does with a replica.
    pub enum ReplicaMode {
        ReadWrite = "RW",
        WriteOnly = "WO",
        Error = "ERR",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "Engine",
    plural = "engines",
    namespaced,
    status = "EngineStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The process that serves a volume.",
    shortname = "lhe",
    printcolumn(name = "Data Engine", type_ = "string", json_path = ".spec.dataEngine"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.currentState"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.nodeID"),
    printcolumn(name = "InstanceManager", type_ = "string", json_path = ".status.instanceManagerName"),
    printcolumn(name = "Image", type_ = "string", json_path = ".status.currentImage"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct EngineSpec {
    #[serde(flatten)]
    pub instance: InstanceSpec,
    pub frontend: Option<Frontend>,
    /// Depth of each queue of the ublk frontend.
    pub ublk_queue_depth: Option<i64>,
    /// Number of queues of the ublk frontend.
    pub ublk_number_of_queue: Option<i64>,
    /// `storageIP:port` by replica name.
    pub replica_address_map: Option<BTreeMap<String, String>>,
    /// The same while a live upgrade is going on.
    pub upgraded_replica_address_map: Option<BTreeMap<String, String>>,
    /// Name of the volume in the backup store.
    pub backup_volume: Option<String>,
    /// Backup to restore.
    pub requested_backup_restore: Option<String>,
    /// Snapshot or volume to clone from.
    pub requested_data_source: Option<String>,
    pub disable_frontend: Option<bool>,
    pub revision_counter_disabled: Option<bool>,
    pub unmap_mark_snap_chain_removed_enabled: Option<bool>,
    /// False while another engine of the volume is in charge.
    pub active: Option<bool>,
    pub snapshot_max_count: Option<i64>,
    /// Bytes all snapshots together may take; 0 for no limit.
    pub snapshot_max_size: Option<IntString>,
    /// Files copied at the same time.
    #[schemars(extend("minimum" = 0), extend("maximum" = 5))]
    pub rebuild_concurrent_sync_limit: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineStatus {
    #[serde(flatten)]
    pub instance: InstanceStatus,
    pub current_size: Option<IntString>,
    pub current_replica_address_map: Option<BTreeMap<String, String>>,
    pub replica_mode_map: Option<BTreeMap<String, ReplicaMode>>,
    /// When a replica came into its mode.
    pub replica_transition_time_map: Option<BTreeMap<String, String>>,
    /// Device or URL of the frontend.
    pub endpoint: Option<String>,
    pub last_restored_backup: Option<String>,
    /// By backup name.
    pub backup_status: Option<BTreeMap<String, EngineBackupStatus>>,
    pub restore_status: Option<BTreeMap<String, RestoreStatus>>,
    pub purge_status: Option<BTreeMap<String, PurgeStatus>>,
    pub rebuild_status: Option<BTreeMap<String, RebuildStatus>>,
    pub clone_status: Option<BTreeMap<String, EngineCloneStatus>>,
    /// By name; the writable end of the chain is `volume-head`.
    pub snapshots: Option<BTreeMap<String, SnapshotInfo>>,
    pub snapshots_error: Option<String>,
    pub is_expanding: Option<bool>,
    pub last_expansion_error: Option<String>,
    pub last_expansion_failed_at: Option<String>,
    pub unmap_mark_snap_chain_removed_enabled: Option<bool>,
    pub snapshot_max_count: Option<i64>,
    pub snapshot_max_size: Option<IntString>,
    #[schemars(extend("minimum" = 0))]
    pub rebuild_concurrent_sync_limit: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Progress of one backup.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineBackupStatus {
    pub progress: Option<i64>,
    #[serde(rename = "backupURL")]
    pub backup_url: Option<String>,
    pub error: Option<String>,
    pub snapshot_name: Option<String>,
    pub state: Option<String>,
    pub replica_address: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Progress of a restore on one replica.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreStatus {
    pub is_restoring: Option<bool>,
    pub last_restored: Option<String>,
    pub current_restoring_backup: Option<String>,
    pub progress: Option<i64>,
    pub error: Option<String>,
    pub filename: Option<String>,
    pub state: Option<String>,
    #[serde(rename = "backupURL")]
    pub backup_url: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Progress of removing snapshots on one replica.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PurgeStatus {
    pub error: Option<String>,
    pub is_purging: Option<bool>,
    pub progress: Option<i64>,
    pub state: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Progress of the rebuild of one replica.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RebuildStatus {
    pub error: Option<String>,
    pub is_rebuilding: Option<bool>,
    pub progress: Option<i64>,
    pub state: Option<String>,
    /// Superseded by fromReplicaAddressList.
    pub from_replica_address: Option<String>,
    pub from_replica_address_list: Option<Vec<String>>,
    #[serde(rename = "appliedRebuildingMBps")]
    pub applied_rebuilding_mbps: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Progress of a clone on one replica.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineCloneStatus {
    pub is_cloning: Option<bool>,
    pub error: Option<String>,
    pub progress: Option<i64>,
    pub state: Option<String>,
    pub from_replica_address: Option<String>,
    pub snapshot_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// A snapshot in the chain of the volume.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotInfo {
    pub name: Option<String>,
    pub parent: Option<String>,
    pub children: Option<BTreeMap<String, bool>>,
    pub removed: Option<bool>,
    #[serde(rename = "usercreated")]
    pub user_created: Option<bool>,
    pub created: Option<String>,
    /// Bytes, as text.
    pub size: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
