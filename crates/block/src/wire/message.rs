//! The vocabulary between an engine and a replica. The four data requests have a fixed binary form; everything else
//! is rare and travels as JSON, with binary payload beside it where there is any.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::geometry::Range;
use crate::ids::{EngineId, Generation, LayerId, ReplicaId};

/// What an engine asks. The engine never has two overlapping writes in flight, so a replica may work on requests in
/// any order and at the same time.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Read {
        range: Range,
    },
    /// Answered when the replica's operating system has it; `durable`: when its disk has it.
    Write {
        offset: u64,
        data: Bytes,
        durable: bool,
    },
    /// The range reads as zero afterwards, on every replica alike. Space is given back unless `allocate`.
    Zero {
        range: Range,
        allocate: bool,
        durable: bool,
    },
    /// Everything answered before this was sent is on disk when this is answered.
    Flush,
    Control(Control),
    /// [`Control`] with bytes: the content of the runs named in it, one after the other.
    ControlWith(Control, Bytes),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Control {
    Ping,
    /// Who are you and what do you hold? Answered to anybody with the key.
    Info,
    /// From now on only this connection may change the replica. Refused with `Fenced` unless `generation` is newer
    /// than the stored one. The record is on disk before the answer.
    Open {
        engine: EngineId,
        record: Membership,
    },
    /// Replaces the record of who is in sync; same rule of generations. Ends a rebuild when it names this replica.
    SetMembership {
        record: Membership,
    },
    /// Everything is flushed and every replica agrees: clears the intents and marks the volume clean, durably.
    Close,
    /// `set` is on disk before the answer; `clear` may follow later.
    Intents {
        set: Vec<Regions>,
        clear: Vec<Regions>,
    },
    /// Syncs and freezes the head as a snapshot and goes on with an empty layer `new_head`. All or nothing.
    Snapshot {
        snapshot: SnapshotSpec,
        new_head: LayerId,
    },
    /// Marks it removed: it is no longer listed, and the next purge gives its space back.
    RemoveSnapshot {
        name: String,
    },
    /// The head's content becomes that of the snapshot; the old head is dropped, other snapshots stay.
    Revert {
        name: String,
        new_head: LayerId,
    },
    /// Starts folding removed layers into their children; progress is in `Info`.
    Purge,
    Expand {
        size: u64,
    },
    /// Starts a rebuild of this replica to that tree of layers: keeps layers whose identity and content version
    /// match and that are complete, makes the missing ones empty and incomplete, and remembers durably that the
    /// replica is not usable. The connection becomes the one that may write. Writes go to `head` from then on.
    /// Refused with `Fenced` unless the record is newer than the stored one, or the same while a rebuild is
    /// unfinished. The record tells who is in sync meanwhile: whoever finds this replica first knows whom to ask.
    Adopt {
        engine: EngineId,
        record: Membership,
        size: u64,
        layers: Vec<Layer>,
        head: LayerId,
    },
    /// A layer under rebuild has all its content; it is synced before the answer.
    LayerComplete {
        layer: LayerId,
    },
    /// What one layer itself holds in a range (never what it inherits). Answers may end early; never empty.
    LayerRuns {
        layer: LayerId,
        range: Range,
    },
    /// [`LayerRuns`](Control::LayerRuns) with the content of its data runs as payload. At most `MAX_IO` bytes of range.
    LayerRead {
        layer: LayerId,
        range: Range,
    },
    /// One digest of 16 bytes for each `chunk` of the range, over runs and content, as payload.
    LayerDigests {
        layer: LayerId,
        range: Range,
        chunk: u64,
    },
    /// Makes the layer hold exactly this in the ranges named; the payload is the content of the data runs.
    LayerWrite {
        layer: LayerId,
        runs: Vec<Run>,
    },
    /// Like [`LayerDigests`](Control::LayerDigests), over the volume's content through all layers: equal content
    /// has equal digests, whatever layer holds it.
    Digests {
        range: Range,
        chunk: u64,
    },
    /// Which parts of the volume hold data, through all layers. Answers may end early; never empty.
    Allocation {
        range: Range,
    },
    /// What the volume was at a snapshot's layer, through all layers down to the backing image; with `since`, a layer
    /// below it, only what the layers above that say. With `content` at most `MAX_IO` bytes of range, answered with
    /// the content of the data runs as payload; without it answers may end early, and are never empty.
    ///
    /// Answered to anybody with the key, since a snapshot never changes; not by a replica that is being rebuilt.
    /// `NotFound`: a layer is not there, or its snapshot was removed. From version 2 of the protocol on.
    SnapshotRead {
        layer: LayerId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<LayerId>,
        range: Range,
        content: bool,
    },
    /// Digest of the volume's content as of a snapshot (`None`: now), independent of how layers were folded.
    /// `progress` is in `Info`; answered when done.
    Checksum {
        snapshot: Option<String>,
    },
}

/// Who is in sync. Kept by every replica; the newest generation is the truth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    pub generation: Generation,
    /// Who wrote it down: generations alone cannot tell an engine's own attempts from another engine's record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineId>,
    pub members: Vec<Member>,
    /// The engine acknowledges writes only while at least this many are in sync; so fewer cannot have gone on
    /// without the others.
    pub min_in_sync: u32,
    /// Replicas that left and may come back: since then the members have kept every intent, so that what these
    /// missed is known to the region.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<Away>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Away {
    pub replica: ReplicaId,
    /// The generation it was in sync with.
    pub generation: Generation,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    pub replica: ReplicaId,
    /// Where it was last reached; for messages to people only.
    pub address: String,
    /// The boot of its machine since which it has lost nothing.
    #[serde(default)]
    pub boot: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotSpec {
    pub name: String,
    pub created: jiff::Timestamp,
    pub user_created: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// One layer of the tree: the head, a snapshot, or the backing image at the bottom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layer {
    pub id: LayerId,
    pub parent: Option<LayerId>,
    /// Removed layers that were folded into this one, oldest first. Identity and this list together name a content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absorbed: Vec<LayerId>,
    /// `None` for the head.
    pub snapshot: Option<SnapshotSpec>,
    #[serde(default)]
    pub removed: bool,
    /// False while a rebuild fills it.
    pub complete: bool,
    /// The layer is the backing image: read-only, outside the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing: Option<String>,
    /// The volume's size when the layer was the head; beyond it a layer holds nothing.
    pub size: u64,
    /// Bytes on disk. Not part of its identity.
    #[serde(default)]
    pub allocated: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaInfo {
    pub replica: ReplicaId,
    pub size: u64,
    pub membership: Membership,
    /// The last engine closed the volume in order.
    pub clean: bool,
    /// A rebuild was begun and has not ended: never read from it.
    pub rebuilding: bool,
    /// Changes when the machine was restarted, that is, when writes that were not flushed may be gone.
    pub boot: String,
    pub layers: Vec<Layer>,
    pub head: LayerId,
    pub intents: Vec<Regions>,
    pub free: u64,
    pub purge: Progress,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    pub running: bool,
    pub done: u64,
    pub total: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A run of intent regions, first and count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regions(pub u64, pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub range: Range,
    pub kind: RunKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunKind {
    /// The layer says nothing: what is below shows through.
    Absent,
    /// The layer says zero, whatever is below.
    Zero,
    Data,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Done,
    Data(Bytes),
    Info(Box<ReplicaInfo>),
    Runs(Vec<Run>),
    RunsWith(Vec<Run>, Bytes),
    Digests(Bytes),
    Checksum(String),
    Failed(Failure),
}

/// Why a replica did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// The disk is (nearly) full and nothing of the request was applied: the replica stays what it was.
    NoSpace,
    /// The disk failed; what was applied is unknown and the replica must leave.
    Io,
    /// A newer engine owns the replica, or this connection never opened it.
    Fenced,
    Invalid,
    NotFound,
    Exists,
    /// Something that excludes it is running; try again later.
    Busy,
    /// The chain has as many layers as are allowed.
    ChainFull,
}
