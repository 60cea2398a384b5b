//! Replica: one copy of a volume, on one disk of one node.
//! Whether it may be trusted is told by healthyAt and failedAt, both times in RFC 3339.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{InstanceSpec, InstanceStatus};
use crate::wire::{Extra, IntString};

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "Replica",
    plural = "replicas",
    namespaced,
    status = "ReplicaStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "One copy of a volume.",
    shortname = "lhr",
    printcolumn(name = "Data Engine", type_ = "string", json_path = ".spec.dataEngine"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.currentState"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.nodeID"),
    printcolumn(name = "Disk", type_ = "string", json_path = ".spec.diskID"),
    printcolumn(name = "InstanceManager", type_ = "string", json_path = ".status.instanceManagerName"),
    printcolumn(name = "Image", type_ = "string", json_path = ".status.currentImage"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSpec {
    #[serde(flatten)]
    pub instance: InstanceSpec,
    /// The engine that writes to it.
    pub engine_name: Option<String>,
    /// The second engine during a live migration.
    pub migration_engine_name: Option<String>,
    /// When it became writable after creation or rebuild; emptied before a rebuild.
    pub healthy_at: Option<String>,
    /// The same, but never emptied.
    pub last_healthy_at: Option<String>,
    /// When it failed; emptied before a rebuild or salvage.
    pub failed_at: Option<String>,
    /// The same, but never emptied.
    pub last_failed_at: Option<String>,
    #[serde(rename = "diskID")]
    pub disk_id: Option<String>,
    pub disk_path: Option<String>,
    /// Directory below replicas/ on the disk.
    pub data_directory_name: Option<String>,
    pub backing_image: Option<String>,
    pub active: Option<bool>,
    /// The only node it may be on.
    pub hard_node_affinity: Option<String>,
    pub revision_counter_disabled: Option<bool>,
    pub unmap_mark_disk_chain_removed_enabled: Option<bool>,
    /// Rebuilds that failed so far.
    pub rebuild_retry_count: Option<i64>,
    pub eviction_requested: Option<bool>,
    pub snapshot_max_count: Option<i64>,
    /// Bytes all snapshots together may take; 0 for no limit.
    pub snapshot_max_size: Option<IntString>,
    pub linked_clone_src_replica_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaStatus {
    #[serde(flatten)]
    pub instance: InstanceStatus,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
