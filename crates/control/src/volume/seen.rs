//! A snapshot of one volume and all it consists of, reduced to what decides. Times are seconds since 1970.

use std::collections::{BTreeMap, BTreeSet};

use granary_api::longhorn::VolumeState;

#[derive(Clone, Debug)]
pub struct Seen {
    pub now: i64,
    /// What the volume was last said to be.
    pub last: VolumeState,
    /// `spec.nodeID`.
    pub wanted_node: Option<String>,
    /// Bytes.
    pub size: u64,
    pub wanted_replicas: usize,
    pub is_deleted: bool,
    /// `status.lastDegradedAt`, while it is degraded.
    pub degraded_since: Option<i64>,
    pub engine: Option<Engine>,
    pub replicas: Vec<Replica>,
    /// Nodes whose instance manager answers.
    pub reachable: BTreeSet<String>,
    pub policy: Policy,
}

#[derive(Clone, Debug)]
pub struct Policy {
    /// Seconds to wait for a failed replica to return before a new one is made.
    pub replenishment_wait: i64,
    /// Seconds until a failed replica is given up.
    pub stale_after: i64,
    pub auto_salvage: bool,
}

/// A process, as far as its instance manager tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    Stopped,
    Starting,
    Running,
    Stopping,
    /// It ended by itself, or never started.
    Failed {
        why: String,
        at: i64,
    },
    /// Nobody can tell.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In sync.
    ReadWrite,
    /// Being filled.
    WriteOnly,
    Failed,
}

#[derive(Clone, Debug)]
pub struct Engine {
    /// Where it was told to run.
    pub node: Option<String>,
    /// It was told to run.
    pub is_wanted: bool,
    pub run: Run,
    /// Bytes that it serves; 0 before it ever ran.
    pub size: u64,
    pub is_expanding: bool,
    /// Addresses it was told, by replica.
    pub told: BTreeMap<String, String>,
    /// What it says of its replicas.
    pub modes: BTreeMap<String, Mode>,
}

#[derive(Clone, Debug)]
pub struct Replica {
    pub name: String,
    pub node: String,
    /// It was told to run.
    pub is_wanted: bool,
    pub run: Run,
    /// Of the data service, while it runs.
    pub address: Option<String>,
    /// It had everything at some time.
    pub was_healthy: bool,
    pub failed_at: Option<i64>,
    /// Attempts to use it again since it was last healthy.
    pub retries: u32,
    pub is_evicted: bool,
    pub is_deleted: bool,
}

impl Seen {
    pub fn is_reachable(&self, node: &str) -> bool {
        self.reachable.contains(node)
    }

    /// Replicas that may hold the volume's data: neither failed nor on their way out.
    pub fn usable(&self) -> impl Iterator<Item = &Replica> {
        self.replicas.iter().filter(|replica| replica.failed_at.is_none() && !replica.is_deleted)
    }

    /// Those an engine may start with. A replica that never had everything joins a volume that was written by
    /// being filled, after the start.
    pub fn trusted(&self) -> Vec<&Replica> {
        let is_new = self.replicas.iter().all(|replica| !replica.was_healthy);
        self.usable().filter(|replica| is_new || replica.was_healthy).collect()
    }

    /// There are replicas, and each of them failed.
    pub fn is_lost(&self) -> bool {
        let mut remaining = self.replicas.iter().filter(|replica| !replica.is_deleted).peekable();
        remaining.peek().is_some() && remaining.all(|replica| replica.failed_at.is_some())
    }
}

impl Run {
    /// There is no process, and none is coming.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Stopped)
    }
}
