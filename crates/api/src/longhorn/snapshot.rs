//! Snapshot: one snapshot in the chain of a volume.
//! Not to be confused with VolumeSnapshot, of which it may be the result.

use std::collections::BTreeMap;

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
    kind = "Snapshot",
    plural = "snapshots",
    namespaced,
    status = "SnapshotStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A snapshot of a volume.",
    shortname = "lhsnap",
    printcolumn(name = "Volume", type_ = "string", json_path = ".spec.volume"),
    printcolumn(name = "CreationTime", type_ = "string", json_path = ".status.creationTime"),
    printcolumn(name = "ReadyToUse", type_ = "boolean", json_path = ".status.readyToUse"),
    printcolumn(name = "RestoreSize", type_ = "string", json_path = ".status.restoreSize"),
    printcolumn(name = "Size", type_ = "string", json_path = ".status.size"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotSpec {
    /// Fixed at creation.
    pub volume: String,
    /// Take one, rather than stand for one that exists.
    pub create_snapshot: Option<bool>,
    /// Kept with the snapshot itself.
    pub labels: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotStatus {
    pub parent: Option<String>,
    pub children: Option<BTreeMap<String, bool>>,
    pub mark_removed: Option<bool>,
    pub user_created: Option<bool>,
    pub requested_time: Option<String>,
    pub creation_time: Option<String>,
    /// Bytes this snapshot takes.
    pub size: Option<i64>,
    pub labels: Option<BTreeMap<String, String>>,
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub error: Option<String>,
    /// Bytes of the volume when it was taken.
    pub restore_size: Option<i64>,
    pub ready_to_use: Option<bool>,
    pub checksum: Option<String>,
    pub checksum_calculated_at: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
