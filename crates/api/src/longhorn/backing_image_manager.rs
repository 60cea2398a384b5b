//! BackingImageManager: the pod that keeps and exchanges the backing images of one disk.
//! One for each disk that holds any.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::BackingImageState;
use crate::wire::{Extra, open_enum};

open_enum! {
    /// State of a backing image manager pod.
    pub enum BackingImageManagerState {
        Error = "error",
        Running = "running",
        Stopped = "stopped",
        Starting = "starting",
        Unknown = "unknown",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "BackingImageManager",
    plural = "backingimagemanagers",
    namespaced,
    status = "BackingImageManagerStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The pod that keeps the backing images of a disk.",
    shortname = "lhbim",
    printcolumn(name = "State", type_ = "string", json_path = ".status.currentState"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.nodeID"),
    printcolumn(name = "DiskUUID", type_ = "string", json_path = ".spec.diskUUID"),
    printcolumn(name = "DiskPath", type_ = "string", json_path = ".spec.diskPath"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BackingImageManagerSpec {
    pub image: Option<String>,
    #[serde(rename = "nodeID")]
    pub node_id: Option<String>,
    #[serde(rename = "diskUUID")]
    pub disk_uuid: Option<String>,
    pub disk_path: Option<String>,
    /// UUID by name.
    pub backing_images: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackingImageManagerStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub current_state: Option<BackingImageManagerState>,
    /// By name.
    pub backing_image_file_map: Option<BTreeMap<String, BackingImageFileInfo>>,
    pub ip: Option<String>,
    /// Address for data traffic.
    #[serde(rename = "storageIP")]
    pub storage_ip: Option<String>,
    pub api_min_version: Option<i64>,
    pub api_version: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// One image file of a manager.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackingImageFileInfo {
    pub name: Option<String>,
    pub uuid: Option<String>,
    pub size: Option<i64>,
    pub virtual_size: Option<i64>,
    pub real_size: Option<i64>,
    pub state: Option<BackingImageState>,
    pub current_checksum: Option<String>,
    pub message: Option<String>,
    pub sending_reference: Option<i64>,
    pub sender_manager_address: Option<String>,
    pub progress: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
