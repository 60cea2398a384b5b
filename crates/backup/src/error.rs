//! What can go wrong with a backup, told so that a person knows which object it is about and what to do.

use std::io;

use crate::checksum::Checksum;
use crate::compression::{Damage, UnknownCompression};
use crate::config::{BlockSize, InvalidBlockSize};
use crate::lock::LockKind;
use crate::names::{BackupName, InvalidName, VolumeName};
use crate::store::StoreError;
use crate::url::InvalidUrl;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where a block belongs and where it should be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockPlace {
    pub volume: VolumeName,
    pub offset: u64,
    pub block: Checksum,
    pub key: String,
}

impl std::fmt::Display for BlockPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "block {} of volume {} at offset {} ({})", self.block, self.volume, self.offset, self.key)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Name(#[from] InvalidName),
    #[error(transparent)]
    Url(#[from] InvalidUrl),
    #[error("the target holds no backups of volume {0}")]
    NoVolume(VolumeName),
    #[error("volume {volume} has no backup {backup}")]
    NoBackup { volume: VolumeName, backup: BackupName },
    #[error("volume {volume} has a backup {backup} already; choose another name or delete that one")]
    BackupExists { volume: VolumeName, backup: BackupName },
    #[error("backup {backup} of volume {volume} is still being made")]
    InProgress { volume: VolumeName, backup: BackupName },
    #[error("{key} cannot be understood; if it stays so, delete the backup it belongs to")]
    Config { key: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{0} is missing in the store; a backup with backup-mode=full writes what is still readable anew")]
    BlockMissing(BlockPlace),
    #[error("{place} is damaged; a backup with backup-mode=full writes what is still readable anew")]
    BlockDamaged { place: BlockPlace, source: Damage },
    #[error(
        "volume {volume} is in use by {holder} ({kind}), last seen {seconds} s ago; try again when that has ended"
    )]
    Locked { volume: VolumeName, holder: String, kind: LockKind, seconds: i64 },
    #[error(
        "the lock {lock} on volume {volume} was lost: the target could not be reached for too long; try again"
    )]
    LockLost { volume: VolumeName, lock: String },
    #[error("cancelled")]
    Cancelled,
    #[error("cannot read the volume at offset {offset}")]
    Source { offset: u64, source: io::Error },
    #[error("cannot find out what the volume holds")]
    Extents(#[source] io::Error),
    #[error("cannot write the restored volume at offset {offset}")]
    Target { offset: u64, source: io::Error },
    #[error("cannot flush the restored volume")]
    Flush(#[source] io::Error),
    #[error("the backup needs {needed} bytes but the volume to restore to has {size}")]
    TooSmall { needed: u64, size: u64 },
    #[error(
        "backup {backup} of volume {volume} is made of blocks of {theirs} bytes, but {ours} were asked for; use the same size, or delete the backups first"
    )]
    BlockSizeDiffers { volume: VolumeName, backup: BackupName, theirs: BlockSize, ours: BlockSize },
    #[error(transparent)]
    BlockSize(#[from] InvalidBlockSize),
    #[error(transparent)]
    Compression(#[from] UnknownCompression),
    #[error("cannot pack a block")]
    Pack(#[source] io::Error),
    #[error("a task of the job ended early")]
    Task(#[from] tokio::task::JoinError),
}
