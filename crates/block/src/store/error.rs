//! Why the store did not do something. Every message names the object and, where there is one, the next step.

use std::io;

use crate::geometry::Range;
use crate::ids::LayerId;
use crate::wire::message::{Failure, FailureKind};

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "{directory} is in use by {}; stop it first",
        .holder.map_or("another process".to_owned(), |pid| format!("process {pid}"))
    )]
    InUse { directory: String, holder: Option<u32> },
    #[error("{directory} holds no volume (there is no volume.json); create it first")]
    NotAVolume { directory: String },
    #[error("{directory} holds a volume already; open it, or choose another directory")]
    AlreadyAVolume { directory: String },
    #[error("{directory} has files of another volume ({names}); remove them, or choose another directory")]
    NotEmpty { directory: String, names: String },
    #[error(
        "{directory} is in format {found}, this version knows formats up to {known}; use a newer version"
    )]
    UnknownFormat { directory: String, found: u32, known: u32 },
    #[error("{directory} is damaged: {problem}; `granary replica inspect` tells more")]
    Damaged { directory: String, problem: String },
    #[error("{directory} is on a file system that cannot hold a replica: {reason}; use ext4, xfs or btrfs")]
    UnsuitableFileSystem { directory: String, reason: String },
    #[error("backing image {path}: {problem}")]
    Backing { path: String, problem: String },
    #[error(
        "range {}+{} is not made of whole 4 KiB blocks within the volume of {size} bytes", .range.offset, .range.len
    )]
    OutOfRange { range: Range, size: u64 },
    #[error("size {size} is refused: {reason}")]
    Size { size: u64, reason: &'static str },
    #[error("snapshot name {name:?} is refused: {reason}")]
    Name { name: String, reason: &'static str },
    #[error("snapshot {name} exists already; choose another name")]
    SnapshotExists { name: String },
    #[error("there is no snapshot {name}")]
    SnapshotNotFound { name: String },
    #[error("layer {0} exists already")]
    LayerExists(LayerId),
    #[error("there is no layer {0}")]
    LayerNotFound(LayerId),
    #[error("layer {0} is the head, which changes: take a snapshot and read that")]
    LayerChanges(LayerId),
    #[error("the snapshot of layer {0} was removed")]
    LayerRemoved(LayerId),
    #[error("layer {0} is complete and frozen: it is never changed")]
    LayerFrozen(LayerId),
    #[error("the layers do not form a tree with one head: {0}")]
    Tree(String),
    #[error("{0}")]
    Invalid(String),
    #[error("the volume has {layers} layers, and {limit} are allowed; remove snapshots and purge")]
    ChainFull { layers: usize, limit: usize },
    #[error(
        "{directory} has {free} bytes free of which {reserve} are kept back; {needed} more are needed: free some"
    )]
    NoSpace { directory: String, needed: u64, free: u64, reserve: u64 },
    #[error("{what} is running; try again when it has ended")]
    Busy { what: &'static str },
    #[error("{what} was stopped")]
    Stopped { what: &'static str },
    #[error(
        "{from} and {to} are on different file systems, so layers cannot be shared; copy the volume as a stream"
    )]
    CrossDevice { from: String, to: String },
    #[error("{action}: {source}")]
    Io { action: String, source: io::Error },
    #[error("an earlier failure made the replica's content uncertain ({reason}); rebuild it")]
    Poisoned { reason: String },
}

impl StoreError {
    pub fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }

    /// What the other side of a connection needs to decide what to do.
    pub const fn kind(&self) -> FailureKind {
        match self {
            Self::NoSpace { .. } => FailureKind::NoSpace,
            Self::Io { .. } | Self::Poisoned { .. } | Self::Damaged { .. } => FailureKind::Io,
            Self::NotAVolume { .. }
            | Self::SnapshotNotFound { .. }
            | Self::LayerNotFound(_)
            | Self::LayerRemoved(_) => FailureKind::NotFound,
            Self::AlreadyAVolume { .. } | Self::NotEmpty { .. } => FailureKind::Exists,
            Self::SnapshotExists { .. } | Self::LayerExists(_) => FailureKind::Exists,
            Self::InUse { .. } | Self::Busy { .. } | Self::Stopped { .. } => FailureKind::Busy,
            Self::ChainFull { .. } => FailureKind::ChainFull,
            Self::UnknownFormat { .. }
            | Self::UnsuitableFileSystem { .. }
            | Self::Backing { .. }
            | Self::OutOfRange { .. }
            | Self::Size { .. }
            | Self::Name { .. }
            | Self::LayerChanges(_)
            | Self::LayerFrozen(_)
            | Self::Tree(_)
            | Self::Invalid(_)
            | Self::CrossDevice { .. } => FailureKind::Invalid,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self { kind: error.kind(), message: error.to_string() }
    }
}
