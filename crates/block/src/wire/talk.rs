//! One message at a time over a stream, for the first words of a connection.

use std::future::poll_fn;
use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use super::frame::{Frame, FrameError, Header, Limits};
use super::incoming::Incoming;
use super::outgoing::Outgoing;

/// A stream whose peer is not known yet. The data path takes its parts over once it is.
pub struct Talk<S> {
    pub stream: S,
    pub incoming: Incoming,
    pub outgoing: Outgoing,
}

#[derive(Debug, thiserror::Error)]
pub enum TalkError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the peer closed the connection")]
    Closed,
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Talk<S> {
    pub fn with_stranger(stream: S) -> Self {
        Self { stream, incoming: Incoming::new(Limits::HANDSHAKE), outgoing: Outgoing::default() }
    }

    pub async fn say(&mut self, kind: u8, payload: Vec<u8>) -> io::Result<()> {
        self.outgoing.push(Header { kind, ..Header::default() }, &[], &Bytes::from(payload));
        self.flush().await
    }

    pub async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.outgoing.poll_write(cx, &mut self.stream)).await
    }

    pub async fn hear(&mut self) -> Result<Frame, TalkError> {
        loop {
            if let Some(frame) = self.incoming.next_frame()? {
                return Ok(frame);
            }
            if !poll_fn(|cx| self.incoming.poll_fill(cx, &mut self.stream)).await? {
                return Err(TalkError::Closed);
            }
        }
    }
}
