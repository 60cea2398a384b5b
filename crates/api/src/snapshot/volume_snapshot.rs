//! VolumeSnapshot: a user's wish for a snapshot of a claim, or for one that already exists on the storage.
//! Its source never changes; which content it is bound to is the controller's business.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::VolumeSnapshotError;
use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "snapshot.storage.k8s.io",
    version = "v1",
    kind = "VolumeSnapshot",
    plural = "volumesnapshots",
    namespaced,
    status = "VolumeSnapshotStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A snapshot of a volume, asked for by a user.",
    shortname = "vs",
    printcolumn(name = "ReadyToUse", type_ = "boolean", json_path = ".status.readyToUse"),
    printcolumn(name = "SourcePVC", type_ = "string", json_path = ".spec.source.persistentVolumeClaimName"),
    printcolumn(
        name = "SourceSnapshotContent",
        type_ = "string",
        json_path = ".spec.source.volumeSnapshotContentName"
    ),
    printcolumn(name = "RestoreSize", type_ = "string", json_path = ".status.restoreSize"),
    printcolumn(name = "SnapshotClass", type_ = "string", json_path = ".spec.volumeSnapshotClassName"),
    printcolumn(
        name = "SnapshotContent",
        type_ = "string",
        json_path = ".status.boundVolumeSnapshotContentName"
    ),
    printcolumn(name = "CreationTime", type_ = "date", json_path = ".status.creationTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSnapshotSpec {
    pub source: VolumeSnapshotSource,
    /// The default class of the source's driver when absent.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "size(self) > 0", "message": "volumeSnapshotClassName must not be the empty string when set"}
    ]))]
    pub volume_snapshot_class_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Exactly one member is set, and stays as it is.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(oldSelf.persistentVolumeClaimName) || has(self.persistentVolumeClaimName)",
        "message": "persistentVolumeClaimName is required once set"
    },
    {
        "rule": "!has(oldSelf.volumeSnapshotContentName) || has(self.volumeSnapshotContentName)",
        "message": "volumeSnapshotContentName is required once set"
    },
    {
        "rule": "(has(self.volumeSnapshotContentName) && !has(self.persistentVolumeClaimName)) || (!has(self.volumeSnapshotContentName) && has(self.persistentVolumeClaimName))",
        "message": "exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set"
    }
]))]
pub struct VolumeSnapshotSource {
    /// A claim in the same namespace, to be snapshotted.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "persistentVolumeClaimName is immutable"}
    ]))]
    pub persistent_volume_claim_name: Option<String>,
    /// A content that stands for an existing snapshot.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "volumeSnapshotContentName is immutable"}
    ]))]
    pub volume_snapshot_content_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSnapshotStatus {
    pub bound_volume_snapshot_content_name: Option<String>,
    pub creation_time: Option<Time>,
    pub ready_to_use: Option<bool>,
    /// The smallest volume that can be made from this snapshot.
    pub restore_size: Option<Quantity>,
    pub error: Option<VolumeSnapshotError>,
    pub volume_group_snapshot_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
