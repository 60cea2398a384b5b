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
