//! What goes into the engine's core and what comes out.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::engine::metrics::Metrics;
use crate::engine::slots::Slot;
use crate::ids::{Generation, ReplicaId};
use crate::wire::message::{Layer, ReplicaInfo, Reply, Request, SnapshotSpec};

/// Chosen by whoever asks; comes back with the answer.
pub type GuestId = u64;

/// One connection to one replica. A new connection has a new number, so that late words of an old one are known as
/// such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    pub slot: Slot,
    pub number: u64,
}

#[derive(Debug)]
pub enum Event {
    Guest {
        id: GuestId,
        op: GuestOp,
    },
    /// A connection was made, the key was proved, and this is what the replica said.
    Connected {
        link: Link,
        info: Box<ReplicaInfo>,
    },
    Reply {
        link: Link,
        id: u64,
        reply: Reply,
    },
    /// A connection ended or could not be made.
    Lost {
        link: Link,
        reason: String,
    },
    Command {
        id: u64,
        command: Command,
    },
    /// Time passed; see [`Engine::next_tick`](crate::engine::Engine::next_tick).
    Tick,
}

#[derive(Debug)]
pub enum Effect {
    Answer {
        id: GuestId,
        result: Result<Answer, GuestError>,
    },
    Send {
        link: Link,
        id: u64,
        request: Request,
    },
    /// End the connection; no `Lost` is expected for it.
    Disconnect {
        link: Link,
    },
    /// Connect to the replica of this slot, again if need be, until `Connected` or `Lost` can be said.
    Dial {
        link: Link,
        address: String,
    },
    CommandDone {
        id: u64,
        result: Result<CommandReply, CommandError>,
    },
    /// The volume serves (for the first time).
    Ready,
    Resized {
        size: u64,
    },
    /// Nothing more will come: the volume was closed, a newer engine owns it, or it cannot start.
    Stopped {
        reason: StopReason,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    #[error("the volume was closed")]
    Closed,
    #[error("a newer engine serves this volume; this one must end")]
    Fenced,
    #[error("{0}")]
    CannotStart(String),
}

/// Offsets and lengths in bytes, not necessarily aligned.
#[derive(Clone, Debug)]
pub enum GuestOp {
    Read { offset: u64, len: u32 },
    Write { offset: u64, data: Bytes, durable: bool },
    Zero { offset: u64, len: u64, allocate: bool, durable: bool },
    Flush,
    Allocation { offset: u64, len: u64 },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Done,
    Data(Bytes),
    /// Length and whether it is a hole, from the offset asked for; may end early.
    Allocation(Vec<(u64, bool)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuestError {
    #[error("input/output error")]
    Io,
    #[error("no space left on the replicas' disks")]
    NoSpace,
    #[error("outside the volume")]
    Invalid,
    #[error("the volume is shutting down")]
    ShuttingDown,
}

/// What an operator or an instance manager asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Command {
    Status,
    Metrics,
    CreateSnapshot {
        snapshot: SnapshotSpec,
    },
    RemoveSnapshot {
        name: String,
    },
    Revert {
        name: String,
    },
    Purge,
    Expand {
        size: u64,
    },
    AddReplica {
        address: String,
    },
    RemoveReplica {
        address: String,
    },
    SetQos {
        iops: u64,
        bandwidth: u64,
    },
    SetRebuildRate {
        bytes_per_second: u64,
    },
    /// Compares the content of all replicas as of a snapshot, or now.
    Verify {
        snapshot: Option<String>,
    },
    /// Flush, agree, and stop.
    Close,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CommandReply {
    Done,
    Status(Box<Status>),
    Metrics(Box<Metrics>),
    /// Digest per replica address.
    Checksums(Vec<(String, String)>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Exists(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Busy(String),
    #[error("{0}")]
    Failed(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub volume: String,
    pub size: u64,
    pub generation: Generation,
    /// starting, serving, degraded, stalled, stopped
    pub state: String,
    /// What a person should know or do, when there is something.
    pub message: String,
    pub replicas: Vec<ReplicaStatus>,
    pub layers: Vec<Layer>,
    pub head: Option<crate::ids::LayerId>,
    pub purging: bool,
    pub iops_limit: u64,
    pub bandwidth_limit: u64,
    pub rebuild_rate: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaStatus {
    pub address: String,
    pub replica: Option<ReplicaId>,
    /// inSync, rebuilding, away, waiting
    pub state: String,
    pub reason: String,
    pub rebuild: Option<RebuildStatus>,
    pub reads: u64,
    pub writes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebuildStatus {
    /// full, or delta: only what changed while the replica was away.
    pub kind: String,
    pub bytes_copied: u64,
    pub bytes_compared: u64,
    pub bytes_total: u64,
    pub layer: u32,
    pub layers: u32,
}
