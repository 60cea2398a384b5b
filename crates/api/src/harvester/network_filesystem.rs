//! NetworkFilesystem: a volume exported over NFS to guests outside the cluster.
//! `perferredNodes` is misspelt on the wire, and must stay so.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::TimedCondition;
use crate::wire::{Extra, closed_enum};

closed_enum! {
    /// Whether the export is, or shall be, reachable.
    #[derive(Default)]
    pub enum NetworkFilesystemState {
        #[default]
        Disabled = "Disabled",
        Enabling = "Enabling",
        Enabled = "Enabled",
        Disabling = "Disabling",
        Unknown = "Unknown",
    }
}

closed_enum! {
    /// Whether a client that mounts the endpoint would be served.
    pub enum EndpointStatus {
        Ready = "Ready",
        NotReady = "NotReady",
        Reconciling = "Reconciling",
        Unknown = "Unknown",
    }
}

closed_enum! {
    /// Protocol of the export.
    pub enum NetworkFilesystemType {
        Nfs = "NFS",
        Unknown = "Unknown",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "harvesterhci.io",
    version = "v1beta1",
    kind = "NetworkFilesystem",
    plural = "networkfilesystems",
    namespaced,
    status = "NetworkFilesystemStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A volume exported to guests over the network.",
    shortname = "netfilesystem",
    shortname = "netfilesystems",
    printcolumn(name = "DesiredState", type_ = "string", json_path = ".spec.desiredState"),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
    printcolumn(name = "EndpointStatus", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Type", type_ = "string", json_path = ".status.type")
)]
#[serde(rename_all = "camelCase")]
pub struct NetworkFilesystemSpec {
    /// The volume to export.
    #[serde(rename = "networkFSName")]
    pub network_fs_name: String,
    pub desired_state: NetworkFilesystemState,
    /// Node that shall serve the export.
    #[serde(rename = "perferredNodes")]
    pub preferred_nodes: Option<String>,
    /// What provides the volume, such as Longhorn.
    pub provisioner: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkFilesystemStatus {
    #[schemars(extend("default" = ""))]
    pub endpoint: Option<String>,
    #[schemars(extend("default" = "Disabled"))]
    pub state: Option<NetworkFilesystemState>,
    #[serde(rename = "type")]
    #[schemars(extend("default" = "NFS"))]
    pub type_: Option<NetworkFilesystemType>,
    #[schemars(extend("default" = "NotReady"))]
    pub status: Option<EndpointStatus>,
    /// Options a client should mount with.
    pub mount_opts: Option<String>,
    /// Ready, NotReady, Reconciling, EndpointChanged.
    #[schemars(extend("default" = []))]
    pub conditions: Option<Vec<TimedCondition>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
