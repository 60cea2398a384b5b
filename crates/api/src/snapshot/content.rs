//! VolumeSnapshotContent: one snapshot on the storage, as a PersistentVolume is one volume.
//! Made by the controller or, for a snapshot that exists already, by an administrator.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{DeletionPolicy, VolumeSnapshotError};
use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "snapshot.storage.k8s.io",
    version = "v1",
    kind = "VolumeSnapshotContent",
    plural = "volumesnapshotcontents",
    status = "VolumeSnapshotContentStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A snapshot as it is on the storage.",
    shortname = "vsc",
    shortname = "vscs",
    printcolumn(name = "ReadyToUse", type_ = "boolean", json_path = ".status.readyToUse"),
    printcolumn(name = "RestoreSize", type_ = "integer", json_path = ".status.restoreSize"),
    printcolumn(name = "DeletionPolicy", type_ = "string", json_path = ".spec.deletionPolicy"),
    printcolumn(name = "Driver", type_ = "string", json_path = ".spec.driver"),
    printcolumn(name = "VolumeSnapshotClass", type_ = "string", json_path = ".spec.volumeSnapshotClassName"),
    printcolumn(name = "VolumeSnapshot", type_ = "string", json_path = ".spec.volumeSnapshotRef.name"),
    printcolumn(
        name = "VolumeSnapshotNamespace",
        type_ = "string",
        json_path = ".spec.volumeSnapshotRef.namespace"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(oldSelf.sourceVolumeMode) || has(self.sourceVolumeMode)",
        "message": "sourceVolumeMode is required once set"
    }
]))]
pub struct VolumeSnapshotContentSpec {
    /// The VolumeSnapshot this content is bound to.
    #[schemars(extend("x-kubernetes-map-type" = "atomic", "x-kubernetes-validations" = [
        {
            "rule": "has(self.name) && has(self.__namespace__)",
            "message": "both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set"
        }
    ]))]
    pub volume_snapshot_ref: ObjectReference,
    /// Whether the snapshot on the storage goes with the VolumeSnapshot.
    pub deletion_policy: DeletionPolicy,
    /// Name of the CSI driver.
    pub driver: String,
    pub volume_snapshot_class_name: Option<String>,
    pub source: VolumeSnapshotContentSource,
    /// Mode of the volume the snapshot was taken of.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "sourceVolumeMode is immutable"}
    ]))]
    pub source_volume_mode: Option<String>,
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
        "rule": "!has(oldSelf.volumeHandle) || has(self.volumeHandle)",
        "message": "volumeHandle is required once set"
    },
    {
        "rule": "!has(oldSelf.snapshotHandle) || has(self.snapshotHandle)",
        "message": "snapshotHandle is required once set"
    },
    {
        "rule": "(has(self.volumeHandle) && !has(self.snapshotHandle)) || (!has(self.volumeHandle) && has(self.snapshotHandle))",
        "message": "exactly one of volumeHandle and snapshotHandle must be set"
    }
]))]
pub struct VolumeSnapshotContentSource {
    /// CSI id of the volume to snapshot.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "volumeHandle is immutable"}
    ]))]
    pub volume_handle: Option<String>,
    /// CSI id of an existing snapshot.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "snapshotHandle is immutable"}
    ]))]
    pub snapshot_handle: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSnapshotContentStatus {
    /// CSI id of the snapshot.
    pub snapshot_handle: Option<String>,
    /// Nanoseconds since 1970.
    pub creation_time: Option<i64>,
    /// Bytes.
    #[schemars(range(min = 0))]
    pub restore_size: Option<i64>,
    pub ready_to_use: Option<bool>,
    pub error: Option<VolumeSnapshotError>,
    pub volume_group_snapshot_handle: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
