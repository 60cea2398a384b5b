//! ShareManager: the pod that exports one RWX volume over NFS.
//! Has the name of its volume.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::{Extra, open_enum};

open_enum! {
    /// State of a share manager pod.
    pub enum ShareManagerState {
        Unknown = "unknown",
        Starting = "starting",
        Running = "running",
        Stopping = "stopping",
        Stopped = "stopped",
        Error = "error",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "ShareManager",
    plural = "sharemanagers",
    namespaced,
    status = "ShareManagerStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The pod that exports an RWX volume.",
    shortname = "lhsm",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.ownerID"),
    printcolumn(name = "Image", type_ = "string", json_path = ".status.currentImage"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ShareManagerSpec {
    pub image: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShareManagerStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub state: Option<ShareManagerState>,
    pub current_image: Option<String>,
    /// `nfs://host/volume`.
    pub endpoint: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
