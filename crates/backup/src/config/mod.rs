//! The two kinds of JSON documents of a backup store, read in every form that is about and written in the exact one.

mod backup;
mod block_size;
mod go;
mod volume;

pub use backup::{BackupConfig, BlockMapping};
pub use block_size::{BLOCK_SIZE_PARAMETER, BlockSize, InvalidBlockSize};
pub use volume::VolumeConfig;
