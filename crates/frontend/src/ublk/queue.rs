//! A device's queue: which requests there are, their data, and their answers, over one io_uring.
//! The kernel takes commands only from the thread that began, so a queue stays on the volume's thread while it serves.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, pread, pwrite};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::abi::{self, COMMIT_AND_FETCH, DESCRIPTOR_LEN, FETCH, Request};

pub(super) struct Queue {
    ring: AsyncFd<IoUring>,
    descriptors: Descriptors,
    data: Arc<DataPath>,
    depth: u16,
    /// How many commands the kernel has ended for good, because the device was stopped.
    aborted: u16,
}

/// How the data of requests is moved.
pub(super) struct DataPath(OwnedFd);

/// The kernel's list of requests, one for each tag.
struct Descriptors {
    start: *mut std::ffi::c_void,
    len: usize,
}

impl Queue {
    /// Opens a device that was added, or whose recovery was begun, and asks for its requests.
    pub fn open(device: &Path, depth: u16) -> io::Result<Self> {
        let file = open(device, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let descriptors = Descriptors::map(&file, depth)?;
        // The kernel need not interrupt us: whatever wakes the runtime makes it look.
        let ring = IoUring::builder().setup_coop_taskrun().setup_single_issuer().build(u32::from(depth))?;
        let ring = watch(ring)?;
        let mut queue = Self { ring, descriptors, data: Arc::new(DataPath::new(file)), depth, aborted: 0 };
        for tag in 0..depth {
            queue.push(FETCH, tag, 0)?;
        }
        queue.submit()?;
        Ok(queue)
    }

    pub fn data(&self) -> Arc<DataPath> {
        self.data.clone()
    }

    /// Whether the device was stopped, and no more requests can come.
    pub fn is_over(&self) -> bool {
        self.aborted == self.depth
    }

    /// The next request and its tag; pending when there is none now.
    pub fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(u16, Request)>> {
        loop {
            let Some(completion) = self.ring.get_mut().completion().next() else {
                // A completion that comes after the look above is announced anew.
                match self.ring.poll_read_ready(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(guard) => guard?.clear_ready(),
                }
                continue;
            };
            let tag = completion.user_data() as u16;
            match completion.result() {
                0 => return Poll::Ready(Ok((tag, self.descriptors.get(tag)))),
                abi::ABORTED => self.aborted += 1,
                error => return Poll::Ready(Err(io::Error::from_raw_os_error(-error))),
            }
            if self.is_over() {
                return Poll::Pending;
            }
        }
    }

    /// Answers a request, with the next [`Self::submit`]: bytes done, or a negative error number.
    pub fn answer(&mut self, tag: u16, result: i32) -> io::Result<()> {
        self.push(COMMIT_AND_FETCH, tag, result)
    }

    pub fn submit(&mut self) -> io::Result<()> {
        let ring = self.ring.get_mut();
        while !ring.submission().is_empty() {
            match ring.submit() {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, command: u32, tag: u16, result: i32) -> io::Result<()> {
        let entry = opcode::UringCmd16::new(types::Fd(self.data.0.as_raw_fd()), command)
            .cmd(abi::queue_command(tag, result))
            .build()
            .user_data(u64::from(tag));
        push(self.ring.get_mut(), &entry)
    }
}

impl DataPath {
    pub fn new(device: OwnedFd) -> Self {
        Self(device)
    }

    /// The data that a request writes.
    pub fn take(&self, tag: u16, len: usize) -> io::Result<Bytes> {
        let mut data = Vec::with_capacity(len);
        while data.len() < len {
            let at = abi::data_offset(tag) + data.len() as u64;
            match pread(&self.0, spare_capacity(&mut data), at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // The allocator may have given more than was asked for.
        data.truncate(len);
        Ok(data.into())
    }

    /// Gives a request the data that it reads.
    pub fn give(&self, tag: u16, data: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < data.len() {
            match pwrite(&self.0, &data[done..], abi::data_offset(tag) + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(given) => done += given,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Descriptors {
    #[allow(unsafe_code)]
    fn map(device: &OwnedFd, depth: u16) -> io::Result<Self> {
        let len = (usize::from(depth) * DESCRIPTOR_LEN).next_multiple_of(rustix::param::page_size());
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nobody.
        let start = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, flags, device, 0) }?;
        Ok(Self { start, len })
    }

    /// Only for a tag whose command has ended with a request.
    ///
    /// # Panics
    /// When the kernel names a tag that the queue does not have.
    #[allow(unsafe_code)]
    fn get(&self, tag: u16) -> Request {
        let at = usize::from(tag) * DESCRIPTOR_LEN;
        assert!(at + DESCRIPTOR_LEN <= self.len, "the queue has no tag {tag}");
        // SAFETY: within the mapping, as was just checked, and bytes need no alignment. The kernel wrote the descriptor
        // before it ended the command, and writes it again only after we have answered.
        Request::decode(unsafe { self.start.byte_add(at).cast::<[u8; DESCRIPTOR_LEN]>().read_volatile() })
    }
}

// SAFETY: the mapping belongs to the process, not to a thread, and is only read.
#[allow(unsafe_code)]
unsafe impl Send for Descriptors {}

impl Drop for Descriptors {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and descriptors are copied out of it, never lent.
        if let Err(error) = unsafe { munmap(self.start, self.len) } {
            tracing::warn!(%error, "the descriptors of a queue stay mapped");
        }
    }
}

/// The ring for tokio: readable when commands have ended.
#[allow(unsafe_code)]
fn watch(ring: IoUring) -> io::Result<AsyncFd<IoUring>> {
    // SAFETY: a ring has one descriptor for as long as it lives, and nothing else closes it.
    Ok(unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) }?)
}

#[allow(unsafe_code)]
fn push(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<()> {
    // SAFETY: the entry names no memory, and the descriptor in it is closed after the ring, or with it.
    unsafe { ring.submission().push(entry) }.map_err(io::Error::other)
}
