//! The two ends of a job: the snapshot that is backed up and the volume that is restored to.
//! Nothing here knows what kind of volume it is.

use std::io;

use async_trait::async_trait;

use crate::extents::Extent;

/// A snapshot that does not change while it is read.
#[async_trait]
pub trait Source: Send + Sync {
    fn size(&self) -> u64;

    /// Where there may be data. Whatever is left out reads as zeroes.
    async fn allocated(&self) -> io::Result<Vec<Extent>>;

    /// Everything that may differ from the named snapshot, also where data was discarded. `None` if that is not
    /// known, because the snapshot is gone or is not one that this snapshot came from: then everything is read.
    async fn changed_since(&self, snapshot: &str) -> io::Result<Option<Vec<Extent>>>;

    /// Fills the buffer; the range lies within the size.
    async fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// A volume that nobody else writes to until the job is done.
#[async_trait]
pub trait Target: Send + Sync {
    fn size(&self) -> u64;

    async fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    async fn write_zeroes(&self, offset: u64, length: u64) -> io::Result<()>;

    /// What was written survives a crash when this returns.
    async fn flush(&self) -> io::Result<()>;
}
