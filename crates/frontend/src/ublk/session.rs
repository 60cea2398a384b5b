//! Serving a device on the volume's own thread: takes requests from its queue, begins them on the volume and answers.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::abi::{Operation, Request};
use super::queue::{DataPath, Queue};
use crate::in_flight::InFlight;
use crate::orders::{Order, Orders};
use crate::{Volume, VolumeError};

/// How a session ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Ordered,
    /// Somebody else stopped the device.
    Stopped,
}

struct Answer {
    tag: u16,
    result: i32,
}

/// Serves until the device is stopped or an order comes, and returns with nothing in flight. Requests that have come
/// and were not begun stay in the queue.
pub(super) async fn serve<V: Volume>(queue: &mut Queue, volume: V, orders: &Orders) -> io::Result<Ended> {
    let data = queue.data();
    let begin = |tag, request| perform(volume.clone(), data.clone(), tag, request);
    let mut session = Session { queue, begin, in_flight: InFlight::new() };
    poll_fn(|cx| session.poll(cx, orders)).await
}

struct Session<'a, B, F> {
    queue: &'a mut Queue,
    begin: B,
    in_flight: InFlight<F>,
}

impl<B, F> Session<'_, B, F>
where
    B: Fn(u16, Request) -> F,
    F: Future<Output = Answer>,
{
    fn poll(&mut self, cx: &mut Context<'_>, orders: &Orders) -> Poll<io::Result<Ended>> {
        orders.register(cx);
        let ordered = orders.current() != Order::Serve;
        // There are never more requests than places for them: a tag comes again only when it was answered.
        while !ordered && let Poll::Ready(request) = self.queue.poll_request(cx) {
            let (tag, request) = request?;
            self.in_flight.start((self.begin)(tag, request));
        }
        let (queue, mut failed) = (&mut *self.queue, None);
        self.in_flight.poll(cx, |Answer { tag, result }| {
            failed = queue.answer(tag, result).err().or(failed.take());
        });
        if let Some(error) = failed {
            return Poll::Ready(Err(error));
        }
        // Requests that come with this make the ring readable, which wakes us.
        queue.submit()?;
        match self.in_flight.is_empty() {
            true if ordered => Poll::Ready(Ok(Ended::Ordered)),
            true if self.queue.is_over() => Poll::Ready(Ok(Ended::Stopped)),
            _ => Poll::Pending,
        }
    }
}

const _: () = assert!(super::DEPTH as usize <= crate::in_flight::CAPACITY, "each tag needs a place");

async fn perform<V: Volume>(volume: V, data: Arc<DataPath>, tag: u16, request: Request) -> Answer {
    let result = match operate(&volume, &data, tag, request).await {
        Ok(done) => done,
        Err(error) => -error.errno().raw_os_error(),
    };
    Answer { tag, result }
}

/// How many bytes were read or written; nobody asks for those of other operations.
async fn operate<V: Volume>(
    volume: &V,
    data: &DataPath,
    tag: u16,
    Request { operation, offset, len }: Request,
) -> Result<i32, VolumeError> {
    let lies_within = offset.checked_add(len).is_some_and(|end| end <= *volume.size().borrow());
    match operation {
        // It has no place, and says so with one beyond all volumes.
        Operation::Flush => volume.flush().await?,
        _ if !lies_within => return Err(VolumeError::Invalid),
        Operation::Read => {
            let read = volume.read(offset, len as u32).await?;
            data.give(tag, &read).map_err(|error| not_copied(&error))?;
            return Ok(read.len() as i32);
        }
        Operation::Write { durable } => {
            let written = data.take(tag, len as usize).map_err(|error| not_copied(&error))?;
            volume.write(offset, written, durable).await?;
            return Ok(len as i32);
        }
        Operation::Discard => volume.zero(offset, len, false, false).await?,
        Operation::WriteZeroes { allocate, durable } => volume.zero(offset, len, allocate, durable).await?,
        Operation::Unknown(_) => return Err(VolumeError::Invalid),
    }
    Ok(0)
}

fn not_copied(error: &io::Error) -> VolumeError {
    tracing::error!(%error, "the data of a request could not be copied");
    VolumeError::Io
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;
    use crate::{FileVolume, zeroes};

    /// A file has data at the same offsets as a queue.
    fn data() -> DataPath {
        DataPath::new(memfd_create("data", MemfdFlags::CLOEXEC).unwrap())
    }

    async fn result(
        volume: &FileVolume,
        data: &Arc<DataPath>,
        operation: Operation,
        offset: u64,
        len: u64,
    ) -> i32 {
        perform(volume.clone(), data.clone(), 7, Request { operation, offset, len }).await.result
    }

    #[tokio::test]
    async fn each_operation_does_to_the_volume_what_it_says() {
        let directory = tempfile::tempdir().unwrap();
        let volume = FileVolume::create(&directory.path().join("disk"), 1 << 20).unwrap();
        let data = Arc::new(data());
        let (write, read) = (Operation::Write { durable: true }, Operation::Read);

        data.give(7, &[5; 8192]).unwrap();
        assert_eq!(result(&volume, &data, write, 4096, 8192).await, 8192);
        assert_eq!(volume.read(4096, 8192).await.unwrap(), vec![5; 8192]);

        volume.write(512, Bytes::from(vec![6; 512]), false).await.unwrap();
        assert_eq!(result(&volume, &data, read, 512, 512).await, 512);
        assert_eq!(data.take(7, 512).unwrap(), vec![6; 512]);

        assert_eq!(result(&volume, &data, Operation::Discard, 4096, 4096).await, 0);
        let zero = Operation::WriteZeroes { allocate: true, durable: false };
        assert_eq!(result(&volume, &data, zero, 8192, 4096).await, 0);
        assert_eq!(volume.read(4096, 8192).await.unwrap(), zeroes(8192));
    }

    #[tokio::test]
    async fn a_flush_has_no_place_and_everything_else_has_one_within_the_volume() {
        let directory = tempfile::tempdir().unwrap();
        let volume = FileVolume::create(&directory.path().join("disk"), 1 << 20).unwrap();
        let data = Arc::new(data());
        assert_eq!(result(&volume, &data, Operation::Flush, u64::MAX, 0).await, 0);
        for (operation, offset, len) in [
            (Operation::Read, (1 << 20) - 512, 1024),
            (Operation::Write { durable: false }, u64::MAX, 512),
            (Operation::Discard, 1 << 20, 512),
            (Operation::Unknown(9), 0, 512),
        ] {
            assert_eq!(result(&volume, &data, operation, offset, len).await, -22, "{operation:?}");
        }
    }
}
