//! Block backups in an object store, in the format of Longhorn's backup stores: existing backups restore here, and
//! ours restore there.
//!
//! A [`Repository`] is a target that was opened with one request's credentials. [`Repository::backup`] reads a
//! [`Source`] and writes only blocks that the store does not have; [`Repository::restore`] verifies every block it
//! writes to a [`Target`]; deletions free the blocks that no backup uses any more.
//!
//! What holds whatever happens, also a crash between any two requests to the store:
//! - A backup is listed only when all its blocks are in the store, and its blocks stay as long as it is listed.
//! - What an interrupted job leaves is unused blocks, and [`Repository::sweep`] finds them.

mod backup;
mod catalog;
mod checksum;
mod compression;
mod config;
mod credentials;
mod delete;
mod error;
mod extents;
mod info;
mod inspect;
mod job;
mod layout;
mod lock;
mod names;
mod plan;
mod references;
mod repository;
mod restore;
mod store;
mod sweep;
mod upload;
mod url;
mod volume;

pub use backup::{BackingImage, BackupRequest, BackupSummary, Snapshot};
pub use checksum::{Checksum, InvalidChecksum};
pub use compression::{Compression, Damage, UnknownCompression};
pub use config::{
    BLOCK_SIZE_PARAMETER, BackupConfig, BlockMapping, BlockSize, InvalidBlockSize, VolumeConfig,
};
pub use credentials::{ALLOWED_KEYS, Credentials, InvalidCredentials};
pub use delete::DeleteSummary;
pub use error::{BlockPlace, Error, Result};
pub use extents::Extent;
pub use info::{BackupInfo, VolumeInfo};
pub use job::{Job, Progress};
pub use layout::Layout;
pub use lock::{Lease, LockKind, LockTimings};
pub use names::{BackupName, InvalidName, MAX_NAME, VolumeName};
pub use references::Unsure;
pub use repository::Repository;
pub use restore::{RestoreOnto, RestoreRequest, RestoreSummary};
pub use store::{DirectoryStore, Entry, Listing, OpenError, S3Store, Store, StoreError};
pub use sweep::SweepSummary;
pub use url::{BackupUrl, InvalidUrl, TargetKind, TargetUrl};
pub use volume::{Source, Target};
