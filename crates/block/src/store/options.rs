//! What a caller may choose when a replica's directory is created, opened or cloned.

use crate::ids::{LayerId, ReplicaId};

/// More layers than this make reads slow and removal long.
const MAX_LAYERS: usize = 250;

/// Room for metadata, masks and intents when the data has filled the rest.
const RESERVE: u64 = 64 << 20;

#[derive(Clone, Debug)]
pub struct CreateOptions {
    /// Bytes, a multiple of the block size.
    pub size: u64,
    pub replica: ReplicaId,
    pub head: LayerId,
    pub backing: Option<BackingOptions>,
    pub limits: Limits,
}

impl CreateOptions {
    /// An empty volume with identities of its own.
    pub fn new(size: u64) -> Self {
        Self {
            size,
            replica: ReplicaId::random(),
            head: LayerId::random(),
            backing: None,
            limits: Limits::default(),
        }
    }
}

/// A raw image outside the directory, below everything else. It is only read, and may be shorter than the volume.
#[derive(Clone, Debug)]
pub struct BackingOptions {
    pub path: String,
    pub layer: LayerId,
}

#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub limits: Limits,
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// Layers a volume may have, the head and removed ones included.
    pub layers: usize,
    /// Bytes of the file system that data never takes. On a small file system a sixteenth of it, if that is less.
    pub reserve: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { layers: MAX_LAYERS, reserve: RESERVE }
    }
}

#[derive(Clone, Debug)]
pub struct CloneOptions {
    pub replica: ReplicaId,
    pub head: LayerId,
}

impl Default for CloneOptions {
    fn default() -> Self {
        Self { replica: ReplicaId::random(), head: LayerId::random() }
    }
}
