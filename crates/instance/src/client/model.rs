//! What an engine tells, in one form for every way it is asked.

use std::collections::BTreeMap;

/// Why something was not done. What a caller can do differs between the kinds, not within them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Exists(String),
    /// Nobody answers; asking again later may help.
    #[error("{0}")]
    Unavailable(String),
    /// It cannot be done like this, or not now.
    #[error("{0}")]
    Refused(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    pub name: String,
    pub size: u64,
    /// Where it is reached; empty when it is not.
    pub endpoint: String,
    pub replicas: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub name: String,
    pub parent: String,
    pub children: Vec<String>,
    pub removed: bool,
    pub user_created: bool,
    pub created: String,
    pub size: u64,
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaMode {
    /// In sync.
    ReadWrite,
    /// Being filled.
    WriteOnly,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// `HOST:PORT`, without a scheme.
    pub address: String,
    pub mode: ReplicaMode,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuild {
    pub address: String,
    pub percent: u8,
}
