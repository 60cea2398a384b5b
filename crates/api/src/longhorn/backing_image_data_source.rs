//! BackingImageDataSource: how the first copy of a backing image is made.
//! Has the name of its backing image, and ends once the file has been handed over.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{BackingImageSourceType, BackingImageState};
use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "BackingImageDataSource",
    plural = "backingimagedatasources",
    namespaced,
    status = "BackingImageDataSourceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The pod that makes the first copy of a backing image.",
    shortname = "lhbids",
    printcolumn(name = "UUID", type_ = "string", json_path = ".spec.uuid"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.currentState"),
    printcolumn(name = "SourceType", type_ = "string", json_path = ".spec.sourceType"),
    printcolumn(name = "Size", type_ = "string", json_path = ".status.size"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.nodeID"),
    printcolumn(name = "DiskUUID", type_ = "string", json_path = ".spec.diskUUID"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BackingImageDataSourceSpec {
    #[serde(rename = "nodeID")]
    pub node_id: Option<String>,
    pub uuid: Option<String>,
    #[serde(rename = "diskUUID")]
    pub disk_uuid: Option<String>,
    pub disk_path: Option<String>,
    pub checksum: Option<String>,
    pub source_type: Option<BackingImageSourceType>,
    /// Depend on sourceType.
    pub parameters: Option<BTreeMap<String, String>>,
    /// Set once a backing image manager has taken the file over.
    pub file_transferred: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackingImageDataSourceStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    /// Parameters in use, with what was found out.
    pub running_parameters: Option<BTreeMap<String, String>>,
    pub current_state: Option<BackingImageState>,
    pub ip: Option<String>,
    /// Address for data traffic.
    #[serde(rename = "storageIP")]
    pub storage_ip: Option<String>,
    pub size: Option<i64>,
    pub progress: Option<i64>,
    pub checksum: Option<String>,
    pub message: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
