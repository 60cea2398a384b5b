//! InstanceManager: the pod that runs engines and replicas on a node.
//! Fields that only the SPDK data engine has are carried unread.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Condition, InstanceState};
use crate::wire::{Extra, closed_enum, open_enum};

open_enum! {
    /// State of an instance manager pod.
    pub enum InstanceManagerState {
        Error = "error",
        Running = "running",
        Stopped = "stopped",
        Starting = "starting",
        Unknown = "unknown",
    }
}

closed_enum! {
    /// What an instance manager runs.
    pub enum InstanceManagerType {
        AllInOne = "aio",
        Engine = "engine",
        Replica = "replica",
    }
}

open_enum! {
    /// What a process of an instance manager is.
    pub enum InstanceType {
        Engine = "engine",
        Replica = "replica",
        EngineFrontend = "engine-frontend",
        Unset = "",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "InstanceManager",
    plural = "instancemanagers",
    namespaced,
    status = "InstanceManagerStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The pod that runs the engines and replicas of a node.",
    shortname = "lhim",
    printcolumn(name = "Data Engine", type_ = "string", json_path = ".spec.dataEngine"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.currentState"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.nodeID"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct InstanceManagerSpec {
    pub image: Option<String>,
    #[serde(rename = "nodeID")]
    pub node_id: Option<String>,
    #[serde(rename = "type")]
    pub type_: Option<InstanceManagerType>,
    /// v1 or v2.
    pub data_engine: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceManagerStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub current_state: Option<InstanceManagerState>,
    /// NodeReady, PodReady, SettingSynced.
    pub conditions: Option<Vec<Condition>>,
    pub instance_engines: Option<BTreeMap<String, InstanceProcess>>,
    pub instance_engine_frontends: Option<BTreeMap<String, InstanceProcess>>,
    pub instance_replicas: Option<BTreeMap<String, InstanceProcess>>,
    pub ip: Option<String>,
    pub api_min_version: Option<i64>,
    pub api_version: Option<i64>,
    pub proxy_api_min_version: Option<i64>,
    pub proxy_api_version: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// One process of an instance manager.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceProcess {
    pub spec: Option<InstanceProcessSpec>,
    pub status: Option<InstanceProcessStatus>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceProcessSpec {
    pub name: Option<String>,
    pub data_engine: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceProcessStatus {
    pub endpoint: Option<String>,
    pub frontend: Option<String>,
    pub error_msg: Option<String>,
    pub conditions: Option<BTreeMap<String, bool>>,
    pub listen: Option<String>,
    pub port_end: Option<i32>,
    pub port_start: Option<i32>,
    pub target_port_end: Option<i32>,
    pub target_port_start: Option<i32>,
    pub state: Option<InstanceState>,
    #[serde(rename = "type")]
    pub type_: Option<InstanceType>,
    pub resource_version: Option<i64>,
    #[serde(rename = "ublkID")]
    pub ublk_id: Option<i32>,
    pub uuid: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
