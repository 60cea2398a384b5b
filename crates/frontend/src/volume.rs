//! What a frontend needs of a volume.

use std::future::Future;

use bytes::Bytes;
use rustix::io::Errno;
use tokio::sync::watch;

/// A volume on the thread that serves it. Requests may overlap and finish in any order; offsets and lengths are bytes
/// and need not be aligned, but lie within the size (frontends check). Futures stay on the thread and are
/// not cancelled half-way: a request that was begun goes on even when nobody waits for it any more.
pub trait Volume: Clone + 'static {
    /// The size in bytes; changes when the volume is expanded.
    fn size(&self) -> watch::Receiver<u64>;

    fn read(&self, offset: u64, len: u32) -> impl Future<Output = Result<Bytes, VolumeError>>;

    /// `durable`: on stable storage before the answer (FUA).
    fn write(&self, offset: u64, data: Bytes, durable: bool)
    -> impl Future<Output = Result<(), VolumeError>>;

    /// The range reads as zero afterwards. `allocate`: and a later write to it will not run out of space.
    fn zero(
        &self,
        offset: u64,
        len: u64,
        allocate: bool,
        durable: bool,
    ) -> impl Future<Output = Result<(), VolumeError>>;

    /// Every request answered before is on stable storage.
    fn flush(&self) -> impl Future<Output = Result<(), VolumeError>>;

    /// Which parts hold data, without gaps from `offset`; may end before `len` when the answer grows long.
    fn allocation(
        &self,
        offset: u64,
        len: u64,
    ) -> impl Future<Output = Result<Vec<AllocationRun>, VolumeError>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationRun {
    pub len: u64,
    /// Not allocated; reads as zero.
    pub hole: bool,
}

/// What a guest can be told; each has the errno that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    #[error("input/output error")]
    Io,
    #[error("no space left on the volume's storage")]
    NoSpace,
    #[error("the request lies outside the volume or is malformed")]
    Invalid,
    #[error("the volume is shutting down")]
    ShuttingDown,
}

impl VolumeError {
    pub(crate) fn errno(self) -> Errno {
        match self {
            Self::Io => Errno::IO,
            Self::NoSpace => Errno::NOSPC,
            Self::Invalid => Errno::INVAL,
            Self::ShuttingDown => Errno::SHUTDOWN,
        }
    }
}
