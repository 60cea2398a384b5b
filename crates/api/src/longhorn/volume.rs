//! Volume: a block volume with replicas on several nodes.
//! Engines and replicas are made from it. `spec.Standby` has a capital letter on the wire; sizes are strings.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{CompressionMethod, Condition, DataEngine, Frontend, ShareManagerState};
use crate::wire::{Extra, IntString, closed_enum, open_enum};

open_enum! {
    /// Whether a volume is attached.
    pub enum VolumeState {
        Creating = "creating",
        Attached = "attached",
        Detached = "detached",
        Attaching = "attaching",
        Detaching = "detaching",
        Deleting = "deleting",
    }
}

open_enum! {
    /// How many of the wanted replicas are healthy.
    pub enum Robustness {
        Healthy = "healthy",
        Degraded = "degraded",
        Faulted = "faulted",
        Unknown = "unknown",
    }
}

closed_enum! {
    /// Whether a replica is kept on the node the volume is attached to.
    pub enum DataLocality {
        Disabled = "disabled",
        BestEffort = "best-effort",
        StrictLocal = "strict-local",
    }
}

closed_enum! {
    /// Who may use a volume at the same time.
    pub enum AccessMode {
        ReadWriteOnce = "rwo",
        ReadWriteOncePod = "rwop",
        ReadWriteMany = "rwx",
    }
}

closed_enum! {
    /// How eagerly replicas are moved to spread them evenly.
    pub enum ReplicaAutoBalance {
        Ignored = "ignored",
        Disabled = "disabled",
        LeastEffort = "least-effort",
        BestEffort = "best-effort",
    }
}

closed_enum! {
    /// A choice per volume; ignored follows the global setting.
    pub enum VolumeToggle {
        Ignored = "ignored",
        Disabled = "disabled",
        Enabled = "enabled",
    }
}

closed_enum! {
    /// How checksums of snapshots are kept; ignored follows the global setting.
    pub enum SnapshotDataIntegrity {
        Ignored = "ignored",
        Disabled = "disabled",
        Enabled = "enabled",
        FastCheck = "fast-check",
    }
}

closed_enum! {
    /// How a volume is cloned from another.
    pub enum CloneMode {
        Unset = "",
        FullCopy = "full-copy",
        LinkedClone = "linked-clone",
    }
}

closed_enum! {
    /// How data is spread over nodes.
    pub enum DataLayoutType {
        Replicated = "replicated",
        Sharded = "sharded",
        Unset = "",
    }
}

closed_enum! {
    /// How data is protected.
    pub enum DataLayoutMode {
        Raid1 = "raid1",
        ErasureCoding = "erasureCoding",
        Unset = "",
    }
}

open_enum! {
    /// How far the cloning into a new volume has come.
    pub enum CloneState {
        Unset = "",
        Initiated = "initiated",
        CopyCompletedAwaitingHealthy = "copy-completed-awaiting-healthy",
        Completed = "completed",
        Failed = "failed",
    }
}

open_enum! {
    /// How far a live switch to another engine has come.
    pub enum SwitchoverState {
        Unset = "",
        Preparing = "preparing",
        SwitchingOver = "switching-over",
        Finalizing = "finalizing",
        Reverting = "reverting",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "Volume",
    plural = "volumes",
    namespaced,
    status = "VolumeStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A replicated block volume.",
    shortname = "lhv",
    printcolumn(name = "Data Engine", type_ = "string", json_path = ".spec.dataEngine"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Robustness", type_ = "string", json_path = ".status.robustness"),
    printcolumn(
        name = "Scheduled",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Scheduled')].status"
    ),
    printcolumn(name = "Size", type_ = "string", json_path = ".spec.size"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.currentNodeID"),
    printcolumn(name = "Switchover", type_ = "string", json_path = ".status.switchoverState", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSpec {
    /// Bytes.
    pub size: Option<IntString>,
    pub frontend: Option<Frontend>,
    /// Depth of each queue of the ublk frontend.
    pub ublk_queue_depth: Option<i64>,
    /// Number of queues of the ublk frontend.
    pub ublk_number_of_queue: Option<i64>,
    /// Number of I/O queues over NVMe/TCP; 0 follows the global setting.
    pub nvme_tcp_nr_io_queues: Option<i64>,
    /// URL of the backup to restore from.
    pub from_backup: Option<String>,
    pub restore_volume_recurring_job: Option<VolumeToggle>,
    /// Snapshot or volume to clone from.
    pub data_source: Option<String>,
    pub clone_mode: Option<CloneMode>,
    pub data_locality: Option<DataLocality>,
    /// Minutes until a failed replica is given up.
    pub stale_replica_timeout: Option<i64>,
    /// Node the volume is attached to.
    #[serde(rename = "nodeID")]
    pub node_id: Option<String>,
    /// Node the engine runs on; nodeID when empty.
    #[serde(rename = "engineNodeID")]
    pub engine_node_id: Option<String>,
    /// Node a live migration goes to.
    #[serde(rename = "migrationNodeID")]
    pub migration_node_id: Option<String>,
    /// Engine image.
    pub image: Option<String>,
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "BackingImage is immutable"}]))]
    pub backing_image: Option<String>,
    /// Whether the volume follows backups of another cluster.
    #[serde(rename = "Standby")]
    pub standby: Option<bool>,
    pub disk_selector: Option<Vec<String>>,
    pub node_selector: Option<Vec<String>>,
    /// Failure domains replicas must be in; a node matches one term.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "TopologyRequirement is immutable"}]))]
    pub topology_requirement: Option<Vec<TopologyTerm>>,
    /// Attach without a block device, for maintenance.
    pub disable_frontend: Option<bool>,
    pub revision_counter_disabled: Option<bool>,
    pub unmap_mark_snap_chain_removed: Option<VolumeToggle>,
    pub replica_soft_anti_affinity: Option<VolumeToggle>,
    pub replica_zone_soft_anti_affinity: Option<VolumeToggle>,
    pub replica_disk_soft_anti_affinity: Option<VolumeToggle>,
    /// Who attached the volume last.
    pub last_attached_by: Option<String>,
    pub access_mode: Option<AccessMode>,
    /// Whether two nodes may attach it during a live migration.
    pub migratable: Option<bool>,
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "Encrypted is immutable"}]))]
    pub encrypted: Option<bool>,
    pub number_of_replicas: Option<i64>,
    pub replica_auto_balance: Option<ReplicaAutoBalance>,
    pub snapshot_data_integrity: Option<SnapshotDataIntegrity>,
    pub backup_compression_method: Option<CompressionMethod>,
    /// Bytes per block of a backup.
    #[schemars(extend("enum" = ["2097152", "16777216"]))]
    pub backup_block_size: Option<IntString>,
    pub data_engine: Option<DataEngine>,
    pub snapshot_max_count: Option<i64>,
    /// Bytes all snapshots together may take; 0 for no limit.
    pub snapshot_max_size: Option<IntString>,
    pub freeze_filesystem_for_snapshot: Option<VolumeToggle>,
    pub backup_target_name: Option<String>,
    pub offline_rebuilding: Option<VolumeToggle>,
    /// Megabytes per second; 0 for no limit.
    #[schemars(extend("minimum" = 0))]
    pub replica_rebuilding_bandwidth_limit: Option<i64>,
    /// Files copied at the same time; 0 follows the global setting.
    #[schemars(extend("minimum" = 0), extend("maximum" = 5))]
    pub rebuild_concurrent_sync_limit: Option<i64>,
    /// RFC 3339 time of a request to compute checksums.
    pub snapshot_hashing_requested_at: Option<String>,
    /// Fixed at creation.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "DataLayout is immutable"}]))]
    pub data_layout: Option<DataLayout>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// A failure domain; empty fields match any.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyTerm {
    pub zone: Option<String>,
    pub region: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// How data is laid out over nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataLayout {
    #[serde(rename = "type")]
    pub type_: Option<DataLayoutType>,
    pub mode: Option<DataLayoutMode>,
    /// For erasure coding.
    #[schemars(extend("minimum" = 0))]
    pub data_chunks: Option<i64>,
    /// For erasure coding.
    #[schemars(extend("minimum" = 0))]
    pub parity_chunks: Option<i64>,
    #[serde(rename = "stripSizeKB")]
    #[schemars(extend("minimum" = 0))]
    pub strip_size_kb: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub state: Option<VolumeState>,
    pub robustness: Option<Robustness>,
    #[serde(rename = "currentNodeID")]
    pub current_node_id: Option<String>,
    #[serde(rename = "currentEngineNodeID")]
    pub current_engine_node_id: Option<String>,
    pub current_image: Option<String>,
    pub kubernetes_status: Option<KubernetesStatus>,
    /// Scheduled, Restore, TooManySnapshots, WaitForBackingImage, OfflineRebuilding.
    pub conditions: Option<Vec<Condition>>,
    pub last_backup: Option<String>,
    pub last_backup_at: Option<String>,
    #[serde(rename = "currentMigrationNodeID")]
    pub current_migration_node_id: Option<String>,
    pub frontend_disabled: Option<bool>,
    pub restore_required: Option<bool>,
    pub restore_initiated: Option<bool>,
    pub clone_status: Option<CloneStatus>,
    pub remount_requested_at: Option<String>,
    pub expansion_required: Option<bool>,
    pub is_standby: Option<bool>,
    /// Bytes in use by all snapshots and the head.
    pub actual_size: Option<i64>,
    pub last_degraded_at: Option<String>,
    pub last_auto_salvaged_at: Option<String>,
    pub share_endpoint: Option<String>,
    pub share_state: Option<ShareManagerState>,
    pub last_on_demand_snapshot_hashing_complete_at: Option<String>,
    pub switchover_state: Option<SwitchoverState>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Where a clone comes from and how far it is.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CloneStatus {
    pub source_volume: Option<String>,
    pub snapshot: Option<String>,
    pub state: Option<CloneState>,
    pub attempt_count: Option<i64>,
    pub next_allowed_attempt_at: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Who uses the volume in Kubernetes, now or last.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesStatus {
    pub pv_name: Option<String>,
    pub pv_status: Option<String>,
    pub namespace: Option<String>,
    pub pvc_name: Option<String>,
    #[serde(rename = "lastPVCRefAt")]
    pub last_pvc_ref_at: Option<String>,
    pub workloads_status: Option<Vec<WorkloadStatus>>,
    pub last_pod_ref_at: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// A pod that uses the volume.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    pub pod_name: Option<String>,
    pub pod_status: Option<String>,
    pub workload_name: Option<String>,
    pub workload_type: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
