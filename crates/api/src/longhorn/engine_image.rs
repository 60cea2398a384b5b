//! EngineImage: a version of the engine and the nodes it is on.
//! Version fields are those the engine binary reports.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Condition;
use crate::wire::{Extra, open_enum};

open_enum! {
    /// Whether the image is on all nodes.
    pub enum EngineImageState {
        Deploying = "deploying",
        Deployed = "deployed",
        Incompatible = "incompatible",
        Error = "error",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "EngineImage",
    plural = "engineimages",
    namespaced,
    status = "EngineImageStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A version of the engine.",
    shortname = "lhei",
    printcolumn(name = "Incompatible", type_ = "boolean", json_path = ".status.incompatible"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(name = "RefCount", type_ = "integer", json_path = ".status.refCount"),
    printcolumn(name = "BuildDate", type_ = "date", json_path = ".status.buildDate"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct EngineImageSpec {
    #[schemars(length(min = 1))]
    pub image: String,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineImageStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub state: Option<EngineImageState>,
    pub ref_count: Option<i64>,
    /// Since when nothing uses the image.
    pub no_ref_since: Option<String>,
    pub incompatible: Option<bool>,
    /// ready.
    pub conditions: Option<Vec<Condition>>,
    pub node_deployment_map: Option<BTreeMap<String, bool>>,
    #[serde(flatten)]
    pub versions: EngineVersionDetails,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// What the engine binary says of itself.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineVersionDetails {
    pub version: Option<String>,
    pub git_commit: Option<String>,
    pub build_date: Option<String>,
    #[serde(rename = "cliAPIVersion")]
    pub cli_api_version: Option<i64>,
    #[serde(rename = "cliAPIMinVersion")]
    pub cli_api_min_version: Option<i64>,
    #[serde(rename = "controllerAPIVersion")]
    pub controller_api_version: Option<i64>,
    #[serde(rename = "controllerAPIMinVersion")]
    pub controller_api_min_version: Option<i64>,
    pub data_format_version: Option<i64>,
    pub data_format_min_version: Option<i64>,
}
