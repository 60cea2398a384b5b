//! An NBD client: another server's export as a volume. Requests are pipelined and may finish in any order.
//! It does not reconnect: when the connection is lost every request fails, and the owner decides.

mod driver;
mod greeting;
mod pending;
mod replies;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use rustls::ClientConfig;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{oneshot, watch};

use self::driver::{Driver, Queue};
use self::greeting::{ServerExport, negotiate};
use self::pending::Outcome;
use super::listener::tuned;
use super::stream::Stream;
use super::url::{Address, NbdUrl};
use super::wire::{command, command_flag, export_flag};
use crate::zeroes::zeroes;
use crate::{AllocationRun, Volume, VolumeError};

/// A zero or status request of the protocol has 32 bits for its length; whole blocks are asked for.
const MAX_RANGE: u64 = 1 << 31;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cannot reach {url}: {source}")]
    Socket { url: String, source: io::Error },
    #[error("{url}: {reason}")]
    Refused { url: String, reason: String },
}

/// One connection, shared by its clones.
#[derive(Clone)]
pub struct NbdClient {
    queue: Rc<RefCell<Queue>>,
    size: Rc<watch::Sender<u64>>,
    export: Rc<ServerExport>,
}

impl NbdClient {
    /// Connects and asks for the export. `tls` is needed for `nbds://` addresses and says whom to trust.
    /// Needs a `LocalSet`, on which the connection is then driven.
    pub async fn connect(url: &NbdUrl, tls: Option<Arc<ClientConfig>>) -> Result<Self, ConnectError> {
        let failed = |source| ConnectError::Socket { url: url.to_string(), source };
        if url.tls && tls.is_none() {
            let reason = "needs TLS, and no authority to trust was given".to_owned();
            return Err(ConnectError::Refused { url: url.to_string(), reason });
        }
        let (stream, host) = match &url.address {
            Address::Unix(path) => {
                (Stream::Unix(UnixStream::connect(path).await.map_err(failed)?), "localhost")
            }
            Address::Tcp { host, port } => {
                let socket = TcpStream::connect((host.as_str(), *port)).await.map_err(failed)?;
                (Stream::Tcp(tuned(socket).map_err(failed)?), host.as_str())
            }
        };
        let tls = tls.filter(|_| url.tls).map(|config| (config, host.to_owned()));
        let (stream, export) = negotiate(stream, &url.export, tls)
            .await
            .map_err(|error| ConnectError::Refused { url: url.to_string(), reason: error.to_string() })?;
        let queue = Rc::new(RefCell::new(Queue::new(export.structured)));
        tokio::task::spawn_local(Driver::new(stream, queue.clone()).run());
        let size = Rc::new(watch::Sender::new(export.size));
        Ok(Self { queue, size, export: Rc::new(export) })
    }

    /// Whether the server forbids writing.
    pub fn is_read_only(&self) -> bool {
        self.has(export_flag::READ_ONLY)
    }

    /// Whether several connections to this export see one another's writes.
    pub fn can_multi_conn(&self) -> bool {
        self.has(export_flag::CAN_MULTI_CONN)
    }

    fn has(&self, flag: u16) -> bool {
        self.export.flags & flag != 0
    }

    /// Sends one request and waits for its answer.
    async fn call(
        &self,
        command: u16,
        flags: u16,
        offset: u64,
        len: u32,
        payload: Bytes,
    ) -> Result<Outcome, VolumeError> {
        let (sender, receiver) = oneshot::channel();
        self.queue.borrow_mut().push(command, flags, offset, len, payload, sender)?;
        receiver.await.unwrap_or(Err(VolumeError::Io))
    }

    fn durable_flag(&self, durable: bool) -> u16 {
        if durable && self.has(export_flag::SEND_FUA) { command_flag::FUA } else { 0 }
    }

    /// For servers without FUA: the flush that makes up for it.
    async fn settle(&self, durable: bool) -> Result<(), VolumeError> {
        if durable && !self.has(export_flag::SEND_FUA) { self.flush().await } else { Ok(()) }
    }
}

impl Volume for NbdClient {
    fn size(&self) -> watch::Receiver<u64> {
        self.size.subscribe()
    }

    async fn read(&self, offset: u64, len: u32) -> Result<Bytes, VolumeError> {
        if len <= self.export.max_payload {
            return self.call(command::READ, 0, offset, len, Bytes::new()).await.map(Outcome::into_data);
        }
        let mut whole = BytesMut::with_capacity(len as usize);
        while (whole.len() as u32) < len {
            let step = self.export.max_payload.min(len - whole.len() as u32);
            let part = self.call(command::READ, 0, offset + whole.len() as u64, step, Bytes::new()).await?;
            whole.extend_from_slice(&part.into_data());
        }
        Ok(whole.freeze())
    }

    async fn write(&self, offset: u64, mut data: Bytes, durable: bool) -> Result<(), VolumeError> {
        let (flags, mut at) = (self.durable_flag(durable), offset);
        while !data.is_empty() {
            let part = data.split_to(data.len().min(self.export.max_payload as usize));
            let len = part.len() as u32;
            self.call(command::WRITE, flags, at, len, part).await?;
            at += u64::from(len);
        }
        self.settle(durable).await
    }

    async fn zero(&self, offset: u64, len: u64, allocate: bool, durable: bool) -> Result<(), VolumeError> {
        let (mut at, end) = (offset, offset + len);
        if !self.has(export_flag::SEND_WRITE_ZEROES) {
            while at < end {
                let step = (end - at).min(1 << 20);
                self.write(at, zeroes(step as usize), false).await?;
                at += step;
            }
            return if durable { self.flush().await } else { Ok(()) };
        }
        let no_hole = if allocate { command_flag::NO_HOLE } else { 0 };
        while at < end {
            let step = (end - at).min(MAX_RANGE);
            let flags = no_hole | self.durable_flag(durable);
            self.call(command::WRITE_ZEROES, flags, at, step as u32, Bytes::new()).await?;
            at += step;
        }
        self.settle(durable).await
    }

    async fn flush(&self) -> Result<(), VolumeError> {
        if !self.has(export_flag::SEND_FLUSH) {
            return Ok(());
        }
        self.call(command::FLUSH, 0, 0, 0, Bytes::new()).await.map(|_| ())
    }

    async fn allocation(&self, offset: u64, len: u64) -> Result<Vec<AllocationRun>, VolumeError> {
        if !self.export.allocation || len == 0 {
            return Ok(vec![AllocationRun { len, hole: false }]);
        }
        let asked = len.min(MAX_RANGE) as u32;
        let mut runs = self.call(command::BLOCK_STATUS, 0, offset, asked, Bytes::new()).await?.into_runs();
        // The last run a server names may reach beyond the question.
        let mut left = len;
        for run in &mut runs {
            run.len = run.len.min(left);
            left -= run.len;
        }
        Ok(runs)
    }
}

impl Drop for NbdClient {
    fn drop(&mut self) {
        // The driver holds one as well; with the last user gone it says goodbye.
        if Rc::strong_count(&self.export) == 1 {
            self.queue.borrow_mut().close();
        }
    }
}
