//! Node: a node of the cluster as storage: its disks, tags and space.
//! Has the name of the Kubernetes node. Health data of disks is carried unread.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Condition;
use crate::wire::{Extra, closed_enum};

closed_enum! {
    /// What a disk of a node is.
    pub enum DiskType {
        Filesystem = "filesystem",
        Block = "block",
    }
}

closed_enum! {
    /// How a block disk is driven.
    pub enum DiskDriver {
        Unset = "",
        Auto = "auto",
        Aio = "aio",
        Nvme = "nvme",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "Node",
    plural = "nodes",
    namespaced,
    status = "NodeStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A node and its disks.",
    shortname = "lhn",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "AllowScheduling", type_ = "boolean", json_path = ".spec.allowScheduling"),
    printcolumn(
        name = "Schedulable",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Schedulable')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    pub name: Option<String>,
    /// By a name of the user.
    pub disks: Option<BTreeMap<String, DiskSpec>>,
    /// Whether new replicas may come here.
    pub allow_scheduling: Option<bool>,
    /// Whether all replicas shall leave.
    pub eviction_requested: Option<bool>,
    /// Matched by nodeSelector of volumes.
    pub tags: Option<Vec<String>>,
    /// Millicores; 0 follows the global setting.
    #[serde(rename = "instanceManagerCPURequest")]
    pub instance_manager_cpu_request: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskSpec {
    pub disk_type: Option<DiskType>,
    /// Directory, or block device.
    pub path: Option<String>,
    pub disk_driver: Option<DiskDriver>,
    /// Whether new replicas may come here.
    pub allow_scheduling: Option<bool>,
    /// Whether all replicas shall leave.
    pub eviction_requested: Option<bool>,
    /// Bytes left to others.
    pub storage_reserved: Option<i64>,
    /// Matched by diskSelector of volumes.
    pub tags: Option<Vec<String>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Ready, Schedulable, MountPropagation and others.
    pub conditions: Option<Vec<Condition>>,
    /// By the name in spec.disks.
    pub disk_status: Option<BTreeMap<String, DiskStatus>>,
    pub region: Option<String>,
    pub zone: Option<String>,
    pub snapshot_check_status: Option<SnapshotCheckStatus>,
    pub auto_evicting: Option<bool>,
    pub cpu_policy: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskStatus {
    /// Ready, Schedulable, Error.
    pub conditions: Option<Vec<Condition>>,
    /// Bytes free.
    pub storage_available: Option<i64>,
    /// Bytes promised to replicas.
    pub storage_scheduled: Option<i64>,
    /// Bytes in all.
    pub storage_maximum: Option<i64>,
    /// Bytes by replica name.
    pub scheduled_replica: Option<BTreeMap<String, i64>>,
    /// Bytes by backing image name.
    pub scheduled_backing_image: Option<BTreeMap<String, i64>>,
    #[serde(rename = "diskUUID")]
    pub disk_uuid: Option<String>,
    pub disk_name: Option<String>,
    pub disk_path: Option<String>,
    pub disk_type: Option<String>,
    pub disk_driver: Option<String>,
    pub filesystem_type: Option<String>,
    pub instance_manager_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotCheckStatus {
    pub last_periodic_checked_at: Option<Time>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
