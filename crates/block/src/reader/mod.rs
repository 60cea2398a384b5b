//! Reads a snapshot from outside the engine: for clones and backups, beside a volume in use or one that nobody serves.
//! Owns no replica and changes none; what it reads never changes either.

mod chunk;
mod error;
mod exchange;
mod snapshot;
mod source;
#[cfg(test)]
mod tests;
mod walk;

pub use chunk::Chunk;
pub use error::{Problem, Problems, ReaderError};
pub use snapshot::SnapshotReader;
pub use source::Source;
pub use walk::Walk;
