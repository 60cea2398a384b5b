//! VolumeSnapshotClass: which driver takes snapshots, with which parameters, and what becomes of them.
//! The kind has no `spec`: its fields sit at the top level.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::{Extra, closed_enum, extra_of_root};

closed_enum! {
    /// What happens to the snapshot on the storage when its VolumeSnapshot is deleted. A value that was
    /// never chosen must not destroy data, hence the default.
    #[derive(Default)]
    pub enum DeletionPolicy {
        Delete = "Delete",
        #[default]
        Retain = "Retain",
    }
}

/// The top-level fields of a VolumeSnapshotClass.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "snapshot.storage.k8s.io",
    version = "v1",
    kind = "VolumeSnapshotClass",
    plural = "volumesnapshotclasses",
    no_spec,
    derive = "Default",
    derive = "PartialEq",
    doc = "How a driver takes snapshots.",
    shortname = "vsclass",
    shortname = "vsclasses",
    printcolumn(name = "Driver", type_ = "string", json_path = ".driver"),
    printcolumn(name = "DeletionPolicy", type_ = "string", json_path = ".deletionPolicy"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSnapshotClassSpec {
    /// Name of the CSI driver.
    pub driver: String,
    /// Passed to the driver as they are.
    pub parameters: Option<BTreeMap<String, String>>,
    /// Whether the snapshot on the storage goes with the VolumeSnapshot.
    pub deletion_policy: DeletionPolicy,
    #[serde(flatten, deserialize_with = "extra_of_root")]
    #[schemars(skip)]
    pub extra: Extra,
}
