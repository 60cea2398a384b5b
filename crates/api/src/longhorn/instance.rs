//! What Engine and Replica have in common: a process of an instance manager, wanted and seen.
//! Flattened into their spec and status, so it has no map for unknown members of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Condition, DataEngine};
use crate::wire::{IntString, open_enum};

open_enum! {
    /// State of an engine or replica process.
    pub enum InstanceState {
        Running = "running",
        Stopped = "stopped",
        Error = "error",
        Starting = "starting",
        Stopping = "stopping",
        Suspended = "suspended",
        Unknown = "unknown",
        Terminated = "terminated",
    }
}

/// What engines and replicas have in common.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSpec {
    pub volume_name: Option<String>,
    /// Bytes.
    pub volume_size: Option<IntString>,
    #[serde(rename = "nodeID")]
    pub node_id: Option<String>,
    pub image: Option<String>,
    /// Running or stopped.
    pub desire_state: Option<InstanceState>,
    pub log_requested: Option<bool>,
    /// Start from whatever replica is best.
    pub salvage_requested: Option<bool>,
    pub data_engine: Option<DataEngine>,
}

/// What is known of an engine or replica process.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub instance_manager_name: Option<String>,
    pub current_state: Option<InstanceState>,
    pub current_image: Option<String>,
    /// Address for control traffic.
    pub ip: Option<String>,
    /// Address for data traffic.
    #[serde(rename = "storageIP")]
    pub storage_ip: Option<String>,
    pub port: Option<i64>,
    pub starting: Option<bool>,
    pub started: Option<bool>,
    pub log_fetched: Option<bool>,
    pub salvage_executed: Option<bool>,
    pub conditions: Option<Vec<Condition>>,
    #[serde(rename = "ublkID")]
    pub ublk_id: Option<i32>,
    pub uuid: Option<String>,
}
