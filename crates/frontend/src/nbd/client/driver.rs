//! The task that owns the client's socket: sends what was queued and gives answers to those who wait.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::super::outbox::Outbox;
use super::super::stream::Stream;
use super::super::wire::{Request, command};
use super::pending::{Answer, Pending};
use super::replies::{Message, Replies};
use crate::VolumeError;

/// What users and the driver share.
pub(super) struct Queue {
    outbox: Outbox,
    pending: HashMap<u64, Pending>,
    next_cookie: u64,
    structured: bool,
    /// The driver, when it sleeps.
    waker: Option<Waker>,
    closing: bool,
    /// The connection is lost; nothing can be asked any more.
    lost: bool,
}

impl Queue {
    pub fn new(structured: bool) -> Self {
        Self {
            outbox: Outbox::default(),
            pending: HashMap::new(),
            next_cookie: 0,
            structured,
            waker: None,
            closing: false,
            lost: false,
        }
    }

    pub fn push(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        len: u32,
        payload: Bytes,
        answer: Answer,
    ) -> Result<(), VolumeError> {
        if self.lost || self.closing {
            return Err(VolumeError::Io);
        }
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        Request { flags, command, cookie, offset, len }.encode(self.outbox.head());
        self.outbox.payload(payload);
        self.pending.insert(cookie, Pending::new(command, offset, len, answer));
        self.wake();
        Ok(())
    }

    /// What was asked is still answered; then the server is told goodbye.
    pub fn close(&mut self) {
        self.closing = true;
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// How much data follows a simple reply. With structured replies it never carries any.
    fn data_len(&self, cookie: u64) -> usize {
        if self.structured { 0 } else { self.pending.get(&cookie).map_or(0, Pending::data_len) }
    }

    fn answer(&mut self, message: Message) -> io::Result<()> {
        let nonsense = || io::Error::other("the server's answer does not fit any request");
        let (cookie, done) = (message.cookie, message.done);
        let pending = self.pending.get_mut(&cookie).ok_or_else(nonsense)?;
        pending.take(message).map_err(|_| nonsense())?;
        if done && let Some(pending) = self.pending.remove(&cookie) {
            pending.finish();
        }
        Ok(())
    }
}

pub(super) struct Driver {
    stream: Stream,
    queue: Rc<RefCell<Queue>>,
    replies: Replies,
    said_goodbye: bool,
}

impl Driver {
    pub fn new(stream: Stream, queue: Rc<RefCell<Queue>>) -> Self {
        Self { stream, queue, replies: Replies::default(), said_goodbye: false }
    }

    pub async fn run(mut self) {
        if let Err(error) = poll_fn(|cx| self.poll(cx)).await {
            tracing::warn!(%error, "the connection to an NBD server is lost");
        }
        let mut queue = self.queue.borrow_mut();
        queue.lost = true;
        queue.pending.drain().for_each(|(_, pending)| pending.abandon());
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut queue = self.queue.borrow_mut();
            while let Some(message) = self.replies.next(|cookie| queue.data_len(cookie))? {
                queue.answer(message)?;
            }
            if queue.closing && queue.pending.is_empty() && !self.said_goodbye {
                let goodbye =
                    Request { flags: 0, command: command::DISCONNECT, cookie: 0, offset: 0, len: 0 };
                goodbye.encode(queue.outbox.head());
                self.said_goodbye = true;
            }
            queue.waker = Some(cx.waker().clone());
            if !queue.outbox.is_empty()
                && let Poll::Ready(sent) = queue.outbox.poll_send(&mut self.stream, cx)
            {
                sent?;
            }
            if self.said_goodbye && queue.outbox.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match self.replies.poll_fill(&mut self.stream, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Poll::Ready(received) => received?,
            };
        }
    }
}
