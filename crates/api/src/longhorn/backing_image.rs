//! BackingImage: a read-only image that volumes are based on, with copies on several disks.
//! Sizes are JSON numbers here, unlike in volumes.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::DataEngine;
use crate::wire::{Extra, closed_enum, open_enum};

open_enum! {
    /// State of one copy of a backing image.
    pub enum BackingImageState {
        Pending = "pending",
        Starting = "starting",
        ReadyForTransfer = "ready-for-transfer",
        Ready = "ready",
        InProgress = "in-progress",
        Failed = "failed",
        FailedAndCleanup = "failed-and-cleanup",
        Unknown = "unknown",
    }
}

closed_enum! {
    /// Where a backing image comes from.
    pub enum BackingImageSourceType {
        Download = "download",
        Upload = "upload",
        ExportFromVolume = "export-from-volume",
        Restore = "restore",
        Clone = "clone",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "BackingImage",
    plural = "backingimages",
    namespaced,
    status = "BackingImageStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "An image that volumes are based on.",
    shortname = "lhbi",
    printcolumn(name = "UUID", type_ = "string", json_path = ".status.uuid"),
    printcolumn(name = "SourceType", type_ = "string", json_path = ".spec.sourceType"),
    printcolumn(name = "Size", type_ = "string", json_path = ".status.size"),
    printcolumn(name = "VirtualSize", type_ = "string", json_path = ".status.virtualSize"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BackingImageSpec {
    /// Superseded by diskFileSpecMap.
    pub disks: Option<BTreeMap<String, String>>,
    /// By disk UUID.
    pub disk_file_spec_map: Option<BTreeMap<String, BackingImageDiskFileSpec>>,
    /// SHA-512 in hex.
    pub checksum: Option<String>,
    pub source_type: Option<BackingImageSourceType>,
    pub source_parameters: Option<BTreeMap<String, String>>,
    /// Copies kept on different disks.
    pub min_number_of_copies: Option<i64>,
    pub disk_selector: Option<Vec<String>>,
    pub node_selector: Option<Vec<String>>,
    /// Key for encrypted images.
    pub secret: Option<String>,
    pub secret_namespace: Option<String>,
    #[schemars(extend("default" = "v1"))]
    pub data_engine: Option<DataEngine>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// What is wanted of the copy on one disk.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackingImageDiskFileSpec {
    pub eviction_requested: Option<bool>,
    pub data_engine: Option<DataEngine>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackingImageStatus {
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub uuid: Option<String>,
    /// Bytes of the file.
    pub size: Option<i64>,
    /// Bytes as seen by a guest.
    pub virtual_size: Option<i64>,
    /// Bytes on disk.
    pub real_size: Option<i64>,
    pub checksum: Option<String>,
    /// By disk UUID.
    pub disk_file_status_map: Option<BTreeMap<String, BackingImageDiskFileStatus>>,
    /// When a disk last needed its copy.
    pub disk_last_ref_at_map: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// The copy on one disk.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackingImageDiskFileStatus {
    pub data_engine: Option<DataEngine>,
    pub state: Option<BackingImageState>,
    pub progress: Option<i64>,
    pub message: Option<String>,
    pub last_state_transition_time: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
