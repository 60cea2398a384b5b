//! The running volume as something that can be read and written, for frontends and data movers on the same thread.

use std::rc::Rc;

use bytes::Bytes;
use tokio::sync::watch;

use super::Shared;
use super::answers::ask;
use crate::engine::event::{Answer, GuestError, GuestOp};

#[derive(Clone)]
pub struct EngineVolume {
    shared: Rc<Shared>,
}

impl EngineVolume {
    pub(super) fn new(shared: Rc<Shared>) -> Self {
        Self { shared }
    }

    pub fn size(&self) -> watch::Receiver<u64> {
        self.shared.size.subscribe()
    }

    pub async fn read(&self, offset: u64, len: u32) -> Result<Bytes, GuestError> {
        match ask(&self.shared, GuestOp::Read { offset, len }).await? {
            Answer::Data(data) => Ok(data),
            Answer::Done | Answer::Allocation(_) => Err(GuestError::Io),
        }
    }

    pub async fn write(&self, offset: u64, data: Bytes, durable: bool) -> Result<(), GuestError> {
        ask(&self.shared, GuestOp::Write { offset, data, durable }).await.map(drop)
    }

    pub async fn zero(&self, offset: u64, len: u64, allocate: bool, durable: bool) -> Result<(), GuestError> {
        ask(&self.shared, GuestOp::Zero { offset, len, allocate, durable }).await.map(drop)
    }

    pub async fn flush(&self) -> Result<(), GuestError> {
        ask(&self.shared, GuestOp::Flush).await.map(drop)
    }

    /// Lengths, and whether each is a hole, from `offset` on.
    pub async fn allocation(&self, offset: u64, len: u64) -> Result<Vec<(u64, bool)>, GuestError> {
        match ask(&self.shared, GuestOp::Allocation { offset, len }).await? {
            Answer::Allocation(runs) => Ok(runs),
            Answer::Done | Answer::Data(_) => Err(GuestError::Io),
        }
    }
}
