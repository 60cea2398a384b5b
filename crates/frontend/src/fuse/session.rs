//! A mounted file system of one file, on the volume's own thread: takes requests from the kernel, begins them on the
//! volume and answers. The kernel's descriptor can move to another process between two requests.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use rustix::io::{Errno, read, writev};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::abi::{self, Attributes, FILE, Operation, ROOT, Request, fallocate_mode, put_directory_entry};
use crate::in_flight::InFlight;
use crate::orders::{Order, Orders};
use crate::{Volume, VolumeError};

/// The name of the one file.
pub const FILE_NAME: &str = "volume";
/// The largest read or write the kernel sends.
const MAX_WRITE: usize = 1 << 20;
/// What one read of the descriptor must have room for.
const ROOM: usize = MAX_WRITE + 4096;
/// A payload is a slice of this; several share it.
const CHUNK: usize = 4 * ROOM;

/// How a session ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Unmounted,
    Ordered,
}

/// Only these leave the session; the answer is a list of bytes or an error number.
struct Reply {
    unique: u64,
    body: Result<Bytes, Errno>,
}

/// Serves until the file system is unmounted or an order comes, and returns with nothing in flight.
pub(super) async fn serve<V: Volume>(
    device: &AsyncFd<OwnedFd>,
    volume: V,
    orders: &Orders,
) -> io::Result<Ended> {
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let file = Rc::new(File { volume, began });
    let begin = |request| perform(file.clone(), request);
    let mut session =
        Session { device, begin, in_flight: InFlight::new(), buffer: BytesMut::new(), ended: None };
    poll_fn(|cx| session.poll(cx, orders)).await
}

struct Session<'a, B, F> {
    device: &'a AsyncFd<OwnedFd>,
    begin: B,
    in_flight: InFlight<F>,
    buffer: BytesMut,
    ended: Option<Ended>,
}

impl<B, F> Session<'_, B, F>
where
    B: Fn(Request) -> F,
    F: Future<Output = Option<Reply>>,
{
    fn poll(&mut self, cx: &mut Context<'_>, orders: &Orders) -> Poll<io::Result<Ended>> {
        orders.register(cx);
        if orders.current() != Order::Serve {
            self.ended.get_or_insert(Ended::Ordered);
        }
        loop {
            let received = self.receive(cx)?;
            let device = self.device;
            let mut failed = None;
            self.in_flight.poll(cx, |reply| {
                if let Some(reply) = reply
                    && let Err(error) = answer(device, &reply)
                {
                    failed = Some(error);
                }
            });
            if let Some(error) = failed {
                return Poll::Ready(Err(error));
            }
            if self.in_flight.is_empty()
                && let Some(ended) = self.ended.take()
            {
                return Poll::Ready(Ok(ended));
            }
            if received.is_pending() || self.ended.is_some() || self.in_flight.is_full() {
                return Poll::Pending;
            }
        }
    }

    /// Begins what the kernel has for us; ready when there may be more.
    fn receive(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        while self.ended.is_none() && !self.in_flight.is_full() {
            let Poll::Ready(guard) = self.device.poll_read_ready(cx) else { return Ok(Poll::Pending) };
            let mut guard = guard?;
            if self.buffer.len() < ROOM {
                self.buffer = BytesMut::zeroed(CHUNK);
            }
            match read(self.device.get_ref(), &mut self.buffer[..]) {
                Ok(len) => {
                    let message = self.buffer.split_to(len).freeze();
                    match Request::decode(message) {
                        Some(Request { operation: Operation::Destroy, .. }) => {
                            self.ended = Some(Ended::Unmounted);
                        }
                        Some(request) => self.in_flight.start((self.begin)(request)),
                        None => tracing::warn!("the kernel sent a FUSE request that makes no sense"),
                    }
                }
                // The next turn of the loop asks to be woken.
                Err(Errno::AGAIN) => guard.clear_ready(),
                // The request was taken back before we read it.
                Err(Errno::NOENT | Errno::INTR) => {}
                Err(Errno::NODEV) => self.ended = Some(Ended::Unmounted),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Poll::Ready(()))
    }
}

fn answer(device: &AsyncFd<OwnedFd>, reply: &Reply) -> io::Result<()> {
    let (error, body) = match &reply.body {
        Ok(body) => (0, &body[..]),
        Err(error) => (error.raw_os_error(), &[][..]),
    };
    let header = abi::reply_header(reply.unique, error, body.len());
    match writev(device.get_ref(), &[IoSlice::new(&header), IoSlice::new(body)]) {
        // The one who asked was interrupted, or the mount is gone.
        Ok(_) | Err(Errno::NOENT | Errno::NODEV) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The directory and its file.
struct File<V> {
    volume: V,
    began: u64,
}

/// `None` when the kernel wants no answer.
async fn perform<V: Volume>(file: Rc<File<V>>, request: Request) -> Option<Reply> {
    if request.operation == Operation::Ignore {
        return None;
    }
    let body = file.operate(request.node, request.operation).await;
    Some(Reply { unique: request.unique, body })
}

impl<V: Volume> File<V> {
    async fn operate(&self, node: u64, operation: Operation) -> Result<Bytes, Errno> {
        match operation {
            Operation::Init { minor, max_readahead, flags } => {
                Ok(abi::init_reply(minor, max_readahead, flags, MAX_WRITE as u32).into())
            }
            Operation::Lookup { name } if node == ROOT && name == FILE_NAME => {
                Ok(self.attributes(FILE).entry_reply().into())
            }
            Operation::Lookup { .. } => Err(Errno::NOENT),
            Operation::GetAttributes => Ok(self.attributes(node).reply().into()),
            Operation::SetAttributes { size } if size.is_none_or(|size| size == self.size()) => {
                Ok(self.attributes(node).reply().into())
            }
            // Whoever owns the volume expands it; its users cannot.
            Operation::SetAttributes { .. } => Err(Errno::PERM),
            Operation::Open => {
                let mut reply = vec![0; 8];
                reply.extend_from_slice(&(if node == FILE { abi::OPEN_FLAGS } else { 0 }).to_ne_bytes());
                reply.resize(16, 0);
                Ok(reply.into())
            }
            Operation::Read { offset, len } => self.read(offset, len).await,
            Operation::Write { offset, data } => self.write(offset, data).await,
            Operation::Flush => done(self.volume.flush().await),
            Operation::Fallocate { offset, len, mode } => self.fallocate(offset, len, mode).await,
            Operation::Seek { offset, whence } => self.seek(offset, whence).await,
            Operation::ReadDirectory { offset } => Ok(list(offset)),
            Operation::StatFs => Ok(self.statfs()),
            Operation::Accept | Operation::Ignore | Operation::Destroy => Ok(Bytes::new()),
            Operation::Unknown(_) => Err(Errno::NOSYS),
        }
    }

    fn size(&self) -> u64 {
        *self.volume.size().borrow()
    }

    fn attributes(&self, node: u64) -> Attributes {
        let size = if node == FILE { self.size() } else { 0 };
        Attributes { node, size, time: self.began }
    }

    async fn read(&self, offset: u64, len: u32) -> Result<Bytes, Errno> {
        let left = self.size().saturating_sub(offset);
        let len = u64::from(len).min(left) as u32;
        if len == 0 {
            return Ok(Bytes::new());
        }
        self.volume.read(offset, len).await.map_err(VolumeError::errno)
    }

    async fn write(&self, offset: u64, data: Bytes) -> Result<Bytes, Errno> {
        let len = data.len() as u32;
        if offset.checked_add(u64::from(len)).is_none_or(|end| end > self.size()) {
            return Err(Errno::NOSPC);
        }
        self.volume.write(offset, data, false).await.map_err(VolumeError::errno)?;
        let mut reply = len.to_ne_bytes().to_vec();
        reply.resize(8, 0);
        Ok(reply.into())
    }

    async fn fallocate(&self, offset: u64, len: u64, mode: u32) -> Result<Bytes, Errno> {
        let allocate = match mode & !fallocate_mode::KEEP_SIZE {
            fallocate_mode::PUNCH_HOLE => false,
            fallocate_mode::ZERO_RANGE => true,
            _ => return Err(Errno::OPNOTSUPP),
        };
        let end = offset.saturating_add(len).min(self.size());
        if offset >= end {
            return Ok(Bytes::new());
        }
        done(self.volume.zero(offset, end - offset, allocate, false).await)
    }

    async fn seek(&self, offset: u64, whence: u32) -> Result<Bytes, Errno> {
        let hole = match whence {
            abi::SEEK_DATA => false,
            abi::SEEK_HOLE => true,
            _ => return Err(Errno::INVAL),
        };
        let (mut at, size) = (offset, self.size());
        while at < size {
            for run in self.volume.allocation(at, size - at).await.map_err(VolumeError::errno)? {
                if run.hole == hole && run.len > 0 {
                    return Ok(Bytes::copy_from_slice(&at.to_ne_bytes()));
                }
                at += run.len;
            }
        }
        // After the last byte there is a hole, and no data.
        if hole && offset < size { Ok(Bytes::copy_from_slice(&size.to_ne_bytes())) } else { Err(Errno::NXIO) }
    }

    fn statfs(&self) -> Bytes {
        let mut reply = Vec::with_capacity(80);
        reply.extend_from_slice(&(self.size() / 4096).to_ne_bytes());
        reply.resize(40, 0);
        for value in [4096_u32, 255, 4096] {
            reply.extend_from_slice(&value.to_ne_bytes());
        }
        reply.resize(80, 0);
        reply.into()
    }
}

fn list(offset: u64) -> Bytes {
    const DIRECTORY: u32 = 4;
    const REGULAR: u32 = 8;
    let mut out = Vec::new();
    let entries = [(ROOT, DIRECTORY, "."), (ROOT, DIRECTORY, ".."), (FILE, REGULAR, FILE_NAME)];
    for (index, (node, kind, name)) in (0..).zip(entries).skip(offset as usize) {
        put_directory_entry(&mut out, node, index + 1, kind, name);
    }
    out.into()
}

fn done(result: Result<(), VolumeError>) -> Result<Bytes, Errno> {
    result.map(|()| Bytes::new()).map_err(VolumeError::errno)
}

/// The kernel's descriptor for tokio, which must never block in it.
#[allow(unsafe_code)]
pub(super) fn watch(device: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(&device, true)?;
    // SAFETY: an `OwnedFd` has one number for as long as it lives, and nothing else closes it.
    Ok(unsafe { AsyncFd::register_with_interest(device, Interest::READABLE) }?)
}
