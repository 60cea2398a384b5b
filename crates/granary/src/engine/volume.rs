//! The engine's volume as frontends want it. Only changes names; adds nothing.

use bytes::Bytes;
use granary_block::engine::GuestError;
use granary_block::engine::runtime::EngineVolume;
use granary_frontend::{AllocationRun, Volume, VolumeError};
use tokio::sync::watch;

#[derive(Clone)]
pub struct Served(pub EngineVolume);

fn told(error: GuestError) -> VolumeError {
    match error {
        GuestError::Io => VolumeError::Io,
        GuestError::NoSpace => VolumeError::NoSpace,
        GuestError::Invalid => VolumeError::Invalid,
        GuestError::ShuttingDown => VolumeError::ShuttingDown,
    }
}

impl Volume for Served {
    fn size(&self) -> watch::Receiver<u64> {
        self.0.size()
    }

    async fn read(&self, offset: u64, len: u32) -> Result<Bytes, VolumeError> {
        self.0.read(offset, len).await.map_err(told)
    }

    async fn write(&self, offset: u64, data: Bytes, durable: bool) -> Result<(), VolumeError> {
        self.0.write(offset, data, durable).await.map_err(told)
    }

    async fn zero(&self, offset: u64, len: u64, allocate: bool, durable: bool) -> Result<(), VolumeError> {
        self.0.zero(offset, len, allocate, durable).await.map_err(told)
    }

    async fn flush(&self) -> Result<(), VolumeError> {
        self.0.flush().await.map_err(told)
    }

    async fn allocation(&self, offset: u64, len: u64) -> Result<Vec<AllocationRun>, VolumeError> {
        let runs = self.0.allocation(offset, len).await.map_err(told)?;
        Ok(runs.into_iter().map(|(len, hole)| AllocationRun { len, hole }).collect())
    }
}
