//! One connection to an engine: takes all requests the socket has, does at once what cannot block, hands the rest to
//! the lanes, and writes all answers together. Holds a bounded amount of memory whatever the peer does.

use std::future::Future;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};

use super::counters::Counters;
use super::habit::Habit;
use super::lanes::{Job, Lane, Lanes, Work};
use super::limits;
use super::mailbox::{Done, Mailbox};
use super::service::{Service, Session};
use crate::geometry::Range;
use crate::wire::codec::decode_request;
use crate::wire::connection::IDLE_LIMIT;
use crate::wire::frame::{Frame, FrameError};
use crate::wire::incoming::Incoming;
use crate::wire::message::{Control, Failure, FailureKind, Reply, Request};
use crate::wire::outgoing::Outgoing;
use crate::wire::stream::Stream;
use crate::wire::talk::Talk;

/// Requests of one connection that may be in the lanes.
const MAX_IN_FLIGHT: usize = 1024;

/// Bytes those may keep: what they brought and what their answers will be.
pub(super) const MAX_HELD: usize = 16 << 20;

/// Answers the socket has not taken; no request is looked at while there are more. Little enough to be in the
/// processor's cache when they are written.
pub(super) const MAX_UNREAD: usize = 1 << 20;

/// What a control request's answer may come to, as far as its budget is concerned.
const CONTROL_COST: usize = 1 << 20;

/// A payload below this is copied when its request must wait: it must not keep a whole read buffer alive.
const KEEP_WHOLE: usize = 64 << 10;

/// A flush of this much at most is done on the spot when nothing else is asked: two changes of thread would cost as much
/// as the disk.
const FLUSH_HERE: usize = 256 << 10;

/// A disk that took longer than this is left to the flusher's thread for a while: pings are answered meanwhile.
const QUICK: Duration = Duration::from_millis(5);
const SLOW_AT_FIRST: Duration = Duration::from_millis(50);
const SLOW_AT_MOST: Duration = Duration::from_secs(2);

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub enum LinkEnd {
    #[error("the engine closed it")]
    Closed,
    #[error("nothing moved for {IDLE_LIMIT:?}")]
    Idle,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

pub struct Link {
    service: Arc<Service>,
    session: Arc<Session>,
    lanes: Arc<Lanes>,
    counters: Arc<Counters>,
    stream: Stream,
    incoming: Incoming,
    outgoing: Outgoing,
    mailbox: Arc<Mailbox>,
    /// Reused between polls.
    done: Vec<Done>,
    in_flight: usize,
    held: usize,
    /// Bytes written since the last flush was asked for.
    unflushed: usize,
    habit: Habit,
    /// Written by a guest that flushes often, and not on its way to the disk yet.
    ahead: Option<Range>,
    /// Until then a flush is not done on the spot.
    slow_until: Instant,
    /// How long the next slow flush keeps flushes from being done on the spot.
    slow_for: Duration,
    last_move: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Link {
    pub fn new(
        talk: Talk<Stream>,
        session: Session,
        service: Arc<Service>,
        lanes: Arc<Lanes>,
        counters: Arc<Counters>,
    ) -> Self {
        let now = Instant::now();
        Self {
            service,
            session: Arc::new(session),
            lanes,
            counters,
            stream: talk.stream,
            incoming: talk.incoming,
            outgoing: talk.outgoing,
            mailbox: Arc::default(),
            done: Vec::new(),
            in_flight: 0,
            held: 0,
            unflushed: 0,
            habit: Habit::default(),
            ahead: None,
            slow_until: now,
            slow_for: SLOW_AT_FIRST,
            last_move: now,
            alarm: Box::pin(sleep_until(now + IDLE_LIMIT)),
        }
    }

    /// Serves until the connection ends.
    pub async fn run(mut self) -> LinkEnd {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// One round: answers that came, requests that are here, all of it out in one write, then the next read.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<LinkEnd> {
        match self.rounds(cx) {
            Ok(()) => self.poll_idle(cx),
            Err(end) => Poll::Ready(end),
        }
    }

    /// Goes on until nothing moves; then the task is woken by the socket, the mailbox or the alarm.
    fn rounds(&mut self, cx: &mut Context<'_>) -> Result<(), LinkEnd> {
        loop {
            self.mailbox.collect(&mut self.done, cx.waker());
            let answered = !self.done.is_empty();
            for Done { id, reply, cost } in mem::take(&mut self.done) {
                self.in_flight -= 1;
                self.held -= cost;
                self.outgoing.reply(id, &reply);
            }
            let starved = self.serve()?;
            let pending = self.outgoing.pending();
            self.counters.note_held((self.held + pending) as u64);
            let written = self.outgoing.poll_write(cx, &mut self.stream)?;
            let sent = self.outgoing.pending() < pending;
            if let Some(range) = self.ahead.take() {
                self.service.store().send_ahead(range);
            }
            let mut read = false;
            if starved {
                match self.incoming.poll_fill(cx, &mut self.stream)? {
                    Poll::Ready(true) => {
                        Counters::add(&self.counters.batches, 1);
                        read = true;
                    }
                    Poll::Ready(false) => return Err(LinkEnd::Closed),
                    Poll::Pending => {}
                }
            }
            if read || sent {
                self.last_move = Instant::now();
            }
            // With room again, requests that were left lying can be looked at; with answers taken, more may be there.
            if !(read || answered || (!starved && sent && written.is_ready())) {
                return Ok(());
            }
        }
    }

    /// Looks at the requests that have been read, as long as there is room for their answers. `true`: there are no
    /// more, and the socket may be read.
    fn serve(&mut self) -> Result<bool, FrameError> {
        let mut served = 0;
        let starved = loop {
            if !self.has_room() {
                break false;
            }
            match self.incoming.next_frame()? {
                Some(frame) => self.take(frame),
                None => break true,
            }
            served += 1;
        };
        if served > 0 {
            Counters::add(&self.counters.requests, served);
        }
        Ok(starved)
    }

    fn has_room(&self) -> bool {
        self.in_flight < MAX_IN_FLIGHT && self.held < MAX_HELD && self.outgoing.pending() < MAX_UNREAD
    }

    fn take(&mut self, frame: Frame) {
        let meta = frame.meta.len();
        let (id, request) = match decode_request(frame) {
            Ok(decoded) => decoded,
            Err(error) => {
                let failure = Failure { kind: FailureKind::Invalid, message: error.to_string() };
                return self.outgoing.reply(error.id(), &Reply::Failed(failure));
            }
        };
        match request {
            Request::Read { range } => self.read(id, range),
            Request::Write { offset, data, durable } => {
                let written = self.service.write(&self.session, offset, &data);
                self.unflushed = self.unflushed.saturating_add(data.len());
                self.ahead = self.habit.written().then_some(Range::new(offset, data.len() as u64));
                drop(data);
                match written {
                    Ok(()) if durable => self.flush(id),
                    written => self.answer(id, written),
                }
            }
            Request::Flush => match self.service.may_flush(&self.session) {
                Ok(()) => self.flush(id),
                refused => self.answer(id, refused),
            },
            Request::Control(Control::Ping) => self.outgoing.reply(id, &Reply::Done),
            request => {
                let (lane, cost) = weigh(&request, meta);
                self.submit(lane, id, Work::Handle(unshare(request)), cost);
            }
        }
    }

    /// From memory straight into the answer, or by way of a lane.
    fn read(&mut self, id: u64, range: Range) {
        let len = match limits::io(range, self.service.store().size()) {
            Ok(len) => len,
            Err(failure) => return self.outgoing.reply(id, &Reply::Failed(failure)),
        };
        let mut refused = None;
        let (service, session) = (&self.service, &self.session);
        let filled =
            self.outgoing.data_in_place(id, len, |into| match service.read_cached(session, range, into)? {
                Ok(()) => Some(()),
                Err(failure) => {
                    refused = Some(failure);
                    None
                }
            });
        match (filled, refused) {
            (Some(()), _) => {}
            (None, Some(failure)) => self.outgoing.reply(id, &Reply::Failed(failure)),
            (None, None) => {
                Counters::add(&self.counters.uncached, 1);
                self.submit(Lane::Quick, id, Work::Handle(Request::Read { range }), len);
            }
        }
    }

    fn flush(&mut self, id: u64) {
        Counters::add(&self.counters.flushes_asked, 1);
        self.habit.flushed();
        self.ahead = None;
        let little = mem::take(&mut self.unflushed) <= FLUSH_HERE;
        let now = Instant::now();
        if !little || self.in_flight > 0 || !self.incoming.is_drained() || now < self.slow_until {
            return self.submit(Lane::Flush, id, Work::Flush, 0);
        }
        let flushed = self.service.store().flush().map_err(Failure::from);
        Counters::add(&self.counters.flushes_done, 1);
        if now.elapsed() > QUICK {
            self.slow_until = Instant::now() + self.slow_for;
            self.slow_for = (self.slow_for * 2).min(SLOW_AT_MOST);
        } else {
            self.slow_for = SLOW_AT_FIRST;
        }
        self.answer(id, flushed);
    }

    fn answer(&mut self, id: u64, result: Result<(), Failure>) {
        self.outgoing.reply(id, &result.map_or_else(Reply::Failed, |()| Reply::Done));
    }

    fn submit(&mut self, lane: Lane, id: u64, work: Work, cost: usize) {
        self.in_flight += 1;
        self.held += cost;
        let job = Job { session: self.session.clone(), mailbox: self.mailbox.clone(), id, work, cost };
        self.lanes.submit(lane, job);
    }

    /// A peer from which nothing comes and to which nothing can be sent is gone, whatever its kernel says.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<LinkEnd> {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let due = self.last_move + IDLE_LIMIT;
            if due <= Instant::now() {
                return Poll::Ready(LinkEnd::Idle);
            }
            self.outgoing.shrink();
            self.alarm.as_mut().reset(due);
        }
        Poll::Pending
    }
}

impl Drop for Link {
    /// The replica is free once what this connection had under way has ended.
    fn drop(&mut self) {
        let job = Job {
            session: self.session.clone(),
            mailbox: self.mailbox.clone(),
            id: 0,
            work: Work::End,
            cost: 0,
        };
        self.lanes.submit(Lane::Control, job);
    }
}

/// Which lane, and how much memory the request and its answer may take.
fn weigh(request: &Request, meta: usize) -> (Lane, usize) {
    // Decoded, a text takes a few times its length.
    let meta = meta * 4;
    match request {
        Request::Read { range } => (Lane::Quick, range.len as usize),
        Request::Write { data, .. } => (Lane::Quick, data.len()),
        Request::Zero { .. } | Request::Flush => (Lane::Quick, 0),
        Request::ControlWith(_, data) => (Lane::Quick, meta + data.len().max(KEEP_WHOLE)),
        Request::Control(control) => match control {
            Control::Intents { .. } => (Lane::Quick, meta),
            Control::LayerWrite { .. } => (Lane::Quick, meta),
            Control::LayerRuns { .. }
            | Control::LayerRead { .. }
            | Control::LayerDigests { .. }
            | Control::Digests { .. }
            | Control::Allocation { .. } => (Lane::Quick, meta + CONTROL_COST),
            Control::Checksum { .. } => (Lane::Long, meta),
            _ => (Lane::Control, meta + CONTROL_COST),
        },
    }
}

fn unshare(request: Request) -> Request {
    match request {
        Request::ControlWith(control, data) if data.len() < KEEP_WHOLE => {
            Request::ControlWith(control, Bytes::copy_from_slice(&data))
        }
        request => request,
    }
}
