//! One client in the transmission phase: receives, begins, gathers and sends, all in one task and one loop.
//! It keeps what a client can make it hold bounded, and it ends only when nothing it began is still running.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::sync::watch;

use super::action::{Action, Rules};
use super::budget::Share;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::reply::{Answer, Reply};
use super::stream::Stream;
use super::wire::{NbdError, Request, command};
use crate::in_flight::InFlight;
use crate::orders::{Order, Orders};

/// Payload a client may have with us, from the request to the end of its answer; one request more may exceed it.
const MAX_BYTES: usize = 64 << 20;
/// Clients that do not follow the protocol are told about no more often than this.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(1);

/// Whether more requests are begun, and if not, why.
///
/// Open ─goodbye, end of stream→ Leaving;  Open ─order→ Stopping, Freezing;  any ─socket fails→ Broken
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The client is done; answers are still sent.
    Leaving,
    Stopping,
    Freezing,
    /// Nothing can be sent any more; only what runs is waited for.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Goodbye,
    SocketFailed,
    Ordered(Order),
}

impl Phase {
    fn next(self, event: Event) -> Self {
        match (self, event) {
            (_, Event::SocketFailed) | (Self::Broken, _) => Self::Broken,
            (Self::Open, Event::Goodbye) => Self::Leaving,
            (Self::Open, Event::Ordered(Order::Stop)) => Self::Stopping,
            (Self::Open, Event::Ordered(Order::Freeze)) => Self::Freezing,
            // A server that gave up on a handover may still stop.
            (Self::Freezing, Event::Ordered(Order::Stop)) => Self::Stopping,
            (phase, Event::Goodbye | Event::Ordered(_)) => phase,
        }
    }
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The client left, or the server stopped.
    Closed,
    /// The socket goes on elsewhere.
    Frozen { input: BytesMut, output: Bytes },
}

pub(crate) struct Connection<'a, B, F> {
    stream: &'a mut Stream,
    orders: &'a Orders,
    size: watch::Receiver<u64>,
    rules: Rules,
    begin: B,
    phase: Phase,
    inbox: Inbox,
    outbox: Outbox,
    in_flight: InFlight<F>,
    /// Payload of the requests in flight.
    bytes: usize,
    share: Share,
}

impl<'a, B, F> Connection<'a, B, F>
where
    B: Fn(Request, Action, Bytes) -> F,
    F: Future<Output = Reply>,
{
    /// `begin` starts a checked request on the volume.
    pub fn new(
        stream: &'a mut Stream,
        orders: &'a Orders,
        size: watch::Receiver<u64>,
        rules: Rules,
        share: Share,
        begin: B,
    ) -> Self {
        Self {
            stream,
            orders,
            size,
            rules,
            begin,
            phase: Phase::Open,
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            in_flight: InFlight::new(),
            bytes: 0,
            share,
        }
    }

    /// Goes on where another process stopped.
    pub fn resuming(mut self, input: BytesMut, output: Bytes) -> Self {
        self.inbox = Inbox::with(input);
        self.outbox = Outbox::with(output);
        self
    }

    pub async fn run(mut self) -> io::Result<Ended> {
        poll_fn(|cx| self.poll(cx)).await?;
        Ok(match self.phase {
            Phase::Freezing => {
                Ended::Frozen { input: self.inbox.into_bytes(), output: self.outbox.into_bytes() }
            }
            _ => Ended::Closed,
        })
    }

    /// Ready when the connection has ended and nothing is in flight.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.orders.register(cx);
        self.phase = self.phase.next(Event::Ordered(self.orders.current()));
        loop {
            let waiting = self.begin_received()?;
            self.gather(cx);
            self.send(cx);
            self.share.set(self.held());
            if waiting && self.has_room() {
                continue;
            }
            if self.has_ended() {
                return Poll::Ready(Ok(()));
            }
            if waiting || self.phase != Phase::Open {
                return Poll::Pending;
            }
            match self.inbox.poll_fill(self.stream, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => self.phase = self.phase.next(Event::Goodbye),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => self.socket_failed(&error),
            }
        }
    }

    /// What this client makes us hold. An answer counts until it is sent, or a client that never reads could have any
    /// number of them made.
    fn held(&self) -> usize {
        self.bytes + self.outbox.len()
    }

    fn has_room(&mut self) -> bool {
        let held = self.held();
        self.share.set(held);
        self.phase == Phase::Open && !self.in_flight.is_full() && held < MAX_BYTES && self.share.has_room()
    }

    /// Begins what has arrived; whether something may be left because there is no room.
    fn begin_received(&mut self) -> io::Result<bool> {
        while matches!(self.phase, Phase::Open | Phase::Stopping) {
            if self.phase == Phase::Open && !self.has_room() {
                return Ok(true);
            }
            match self.inbox.next() {
                Ok(Some((request, payload))) => self.accept(request, payload),
                Ok(None) => break,
                Err(error) => {
                    complain(&error);
                    self.phase = self.phase.next(Event::SocketFailed);
                }
            }
        }
        Ok(false)
    }

    fn accept(&mut self, request: Request, payload: Bytes) {
        if self.phase == Phase::Stopping {
            return self.answer(Reply { request, outcome: Err(NbdError::Shutdown) });
        }
        if self.size.has_changed().unwrap_or(false) {
            self.rules.size = *self.size.borrow_and_update();
        }
        match Action::of(&request, &self.rules) {
            Ok(Action::Disconnect) => self.phase = self.phase.next(Event::Goodbye),
            Ok(Action::Nothing) => self.answer(Reply { request, outcome: Ok(Answer::Done) }),
            Ok(action) => {
                self.bytes += footprint(&request);
                self.in_flight.start((self.begin)(request, action, payload));
            }
            Err(error) => self.answer(Reply { request, outcome: Err(error) }),
        }
    }

    fn answer(&mut self, reply: Reply) {
        reply.encode(self.rules.session.structured, &mut self.outbox);
    }

    fn gather(&mut self, cx: &mut Context<'_>) {
        let (outbox, bytes) = (&mut self.outbox, &mut self.bytes);
        let structured = self.rules.session.structured;
        self.in_flight.poll(cx, |reply| {
            *bytes -= footprint(&reply.request);
            reply.encode(structured, outbox);
        });
    }

    fn send(&mut self, cx: &mut Context<'_>) {
        if self.phase == Phase::Broken || self.outbox.is_empty() {
            return;
        }
        match self.outbox.poll_send(self.stream, cx) {
            Poll::Ready(Err(error)) => self.socket_failed(&error),
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
    }

    fn has_ended(&self) -> bool {
        self.in_flight.is_empty()
            && match self.phase {
                Phase::Open => false,
                Phase::Leaving | Phase::Stopping => self.outbox.is_empty(),
                Phase::Freezing | Phase::Broken => true,
            }
    }

    fn socket_failed(&mut self, error: &io::Error) {
        tracing::debug!(%error, "an NBD client is gone");
        self.phase = self.phase.next(Event::SocketFailed);
    }
}

/// One line now and then, however many clients misbehave.
fn complain(error: &dyn std::error::Error) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let Ok(mut last) = LAST.lock() else { return };
    if last.is_none_or(|last| last.elapsed() >= COMPLAINT_INTERVAL) {
        *last = Some(Instant::now());
        tracing::warn!(%error, "an NBD client does not follow the protocol; its connection is closed");
    }
}

/// The payload of a request, whichever way it goes.
fn footprint(request: &Request) -> usize {
    if matches!(request.command, command::READ | command::WRITE) { request.len as usize } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_goes_through_its_phases_one_way() {
        use Event::{Goodbye, Ordered, SocketFailed};
        use Phase::{Broken, Freezing, Leaving, Open, Stopping};
        let (serve, stop, freeze) = (Ordered(Order::Serve), Ordered(Order::Stop), Ordered(Order::Freeze));
        for (phase, event, expected) in [
            (Open, serve, Open),
            (Open, Goodbye, Leaving),
            (Open, stop, Stopping),
            (Open, freeze, Freezing),
            (Leaving, freeze, Leaving),
            (Leaving, stop, Leaving),
            (Stopping, freeze, Stopping),
            (Freezing, serve, Freezing),
            (Freezing, stop, Stopping),
            (Freezing, SocketFailed, Broken),
            (Open, SocketFailed, Broken),
            (Broken, stop, Broken),
            (Broken, Goodbye, Broken),
        ] {
            assert_eq!(phase.next(event), expected, "{phase:?} on {event:?}");
        }
    }
}
