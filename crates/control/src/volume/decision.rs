//! What is to be done about a volume, and why it is not what it should be.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use granary_api::longhorn::{Robustness, VolumeState};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub state: VolumeState,
    pub robustness: Robustness,
    pub actions: Vec<Action>,
    /// None: the volume is as it is wanted.
    pub waiting: Option<Reason>,
    /// When to decide again although nothing has changed.
    pub look_again: Option<Duration>,
    /// Since when copies are missing.
    pub degraded_since: Option<i64>,
    /// It is larger than its replicas, and grows when it is attached.
    pub needs_expansion: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    CreateEngine,
    /// On whatever disk the scheduler finds.
    CreateReplica,
    StartReplica(String),
    /// Also clears away a process that failed.
    StopReplica(String),
    StartEngine {
        node: String,
        replicas: BTreeMap<String, String>,
    },
    /// Also clears away a process that failed.
    StopEngine,
    /// The replicas a running engine shall have; it fills those it did not have.
    SetReplicas(BTreeMap<String, String>),
    MarkHealthy(String),
    MarkFailed(String),
    /// A failed replica gets another chance.
    Retry(String),
    /// All have failed; these failed last.
    Salvage(Vec<String>),
    Expand(u64),
    DeleteReplica(String),
    DeleteEngine,
    /// Nothing is left of the volume but its object.
    Release,
}

/// Becomes the reason and message of the condition `Settled`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    NoReplicas,
    NodeUnreachable(String),
    EngineOnOtherNode(String),
    EngineFailed(String),
    EngineStarting,
    EngineStopping,
    ReplicasStarting(Vec<String>),
    ReplicasStopping(Vec<String>),
    /// Which, and what each says.
    ReplicasDown(Vec<(String, String)>),
    AllReplicasFailed,
    ReplicasMissing(usize),
    Rebuilding(Vec<String>),
    Expanding,
    PartsRemain,
}

impl Reason {
    /// As conditions spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoReplicas => "NoReplicas",
            Self::NodeUnreachable(_) => "NodeUnreachable",
            Self::EngineOnOtherNode(_) => "EngineOnOtherNode",
            Self::EngineFailed(_) => "EngineFailed",
            Self::EngineStarting => "EngineStarting",
            Self::EngineStopping => "EngineStopping",
            Self::ReplicasStarting(_) => "ReplicasStarting",
            Self::ReplicasStopping(_) => "ReplicasStopping",
            Self::ReplicasDown(_) => "ReplicasDown",
            Self::AllReplicasFailed => "AllReplicasFailed",
            Self::ReplicasMissing(_) => "ReplicasMissing",
            Self::Rebuilding(_) => "Rebuilding",
            Self::Expanding => "Expanding",
            Self::PartsRemain => "PartsRemain",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReplicas => f.write_str("no replica has a place yet; see the condition Scheduled"),
            Self::NodeUnreachable(node) => write!(
                f,
                "the instance manager of node {node} does not answer; bring the node back, or attach elsewhere"
            ),
            Self::EngineOnOtherNode(node) => write!(f, "the engine on node {node} is stopped first"),
            Self::EngineFailed(why) => write!(f, "the engine ended and is started again: {why}"),
            Self::EngineStarting => f.write_str("the engine is starting"),
            Self::EngineStopping => f.write_str("the engine is stopping"),
            Self::ReplicasStarting(names) => write!(f, "replicas are starting: {}", names.join(", ")),
            Self::ReplicasStopping(names) => write!(f, "replicas are stopping: {}", names.join(", ")),
            Self::ReplicasDown(down) => {
                f.write_str("no replica runs: ")?;
                for (index, (name, why)) in down.iter().enumerate() {
                    write!(f, "{}{name}: {why}", if index == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
            Self::AllReplicasFailed => {
                f.write_str("every replica has failed; turn auto-salvage on to use those that failed last")
            }
            Self::ReplicasMissing(count) => write!(f, "{count} replicas are missing"),
            Self::Rebuilding(names) => write!(f, "replicas are being filled: {}", names.join(", ")),
            Self::Expanding => f.write_str("the volume is growing"),
            Self::PartsRemain => f.write_str("its engine and replicas are being removed"),
        }
    }
}
