//! The engine's side of a connection to a replica: dialled, proved, and then two halves that move many messages with
//! few system calls. Keeps no record of what is in flight and has no timers: that is the engine's.

use std::future::poll_fn;
use std::io;
use std::ops::RangeInclusive;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::address::Address;
use super::checksum::Seal;
use super::codec::{CodecError, decode_reply};
use super::frame::FrameError;
use super::handshake::{self, HandshakeError, Refusal};
use super::incoming::Incoming;
use super::key::Key;
use super::message::{Control, ReplicaInfo, Reply, Request};
use super::outgoing::Outgoing;
use super::stream::{ReadHalf, Stream, WriteHalf};
use super::talk::{Talk, TalkError};

/// A replica ends a connection on which it heard nothing for this long; an engine with nothing to say sends a
/// [`Control::Ping`] well before.
pub const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// How often an engine should ping: a few may get lost in a stall before the replica gives up.
pub const PING_INTERVAL: Duration = Duration::from_secs(5);

/// A proved connection.
pub struct Connection {
    pub sender: Sender,
    pub receiver: Receiver,
    /// What both sides know of the protocol.
    pub version: u16,
}

/// Queues requests and writes them in batches. Dropping it tells the replica that nothing more will come.
pub struct Sender {
    stream: WriteHalf,
    outgoing: Outgoing,
}

/// Gives the replies as they come, in any order.
pub struct Receiver {
    stream: ReadHalf,
    incoming: Incoming,
}

/// Why there is no connection. The first four do not get better by trying again.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("replica {address} refused the key: give the engine the key file the replica was started with")]
    KeyRefused { address: Address },
    #[error("{address} does not have the volume's key: it is not one of this volume's replicas, or a fake")]
    Impostor { address: Address },
    #[error("replica {address} belongs to another volume than {volume}")]
    WrongVolume { address: Address, volume: String },
    #[error("replica {address} speaks versions {} to {} of the protocol, this engine {} to {}: upgrade the older one",
        .theirs.start(), .theirs.end(), handshake::VERSIONS.start(), handshake::VERSIONS.end())]
    Version { address: Address, theirs: RangeInclusive<u16> },
    #[error("replica {address} has too many connections")]
    Busy { address: Address },
    #[error("replica {address} cannot be reached: {source}")]
    Unreachable { address: Address, source: io::Error },
    #[error("replica {address} did not answer within {deadline:?}")]
    TimedOut { address: Address, deadline: Duration },
    #[error("what answers at {address} does not behave like a replica: {reason}")]
    Protocol { address: Address, reason: String },
}

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    #[error("the replica closed the connection")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl Connection {
    /// Connects, proves the key both ways and asks who the replica is. All within the deadline.
    pub async fn dial(
        address: &Address,
        volume: &str,
        key: &Key,
        deadline: Duration,
    ) -> Result<(Self, ReplicaInfo), DialError> {
        tokio::time::timeout(deadline, Self::dial_patiently(address, volume, key))
            .await
            .unwrap_or_else(|_| Err(DialError::TimedOut { address: address.clone(), deadline }))
    }

    async fn dial_patiently(
        address: &Address,
        volume: &str,
        key: &Key,
    ) -> Result<(Self, ReplicaInfo), DialError> {
        let stream = Stream::connect(address)
            .await
            .map_err(|source| DialError::Unreachable { address: address.clone(), source })?;
        let mut talk = Talk::with_stranger(stream);
        let version = handshake::engine(&mut talk, key, volume)
            .await
            .map_err(|error| DialError::of_handshake(address, volume, error))?;
        let info = introduce(&mut talk).await.map_err(|error| DialError::of_connection(address, error))?;
        let Talk { stream, incoming, outgoing } = talk;
        let (read, write) = stream.split();
        let sender = Sender { stream: write, outgoing };
        Ok((Self { sender, receiver: Receiver { stream: read, incoming }, version }, info))
    }

    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }
}

async fn introduce(talk: &mut Talk<Stream>) -> Result<ReplicaInfo, ConnectionError> {
    talk.outgoing.request(0, &Request::Control(Control::Info));
    talk.flush().await?;
    let frame = talk.hear().await.map_err(|error| match error {
        TalkError::Io(error) => ConnectionError::Io(error),
        TalkError::Closed => ConnectionError::Closed,
        TalkError::Frame(error) => ConnectionError::Frame(error),
    })?;
    match decode_reply(frame)? {
        (0, Reply::Info(info)) => Ok(*info),
        (0, Reply::Failed(failure)) => Err(io::Error::other(failure).into()),
        (id, _) => Err(CodecError::Shape { id }.into()),
    }
}

impl Sender {
    /// Queues a request. `id` comes back with the reply; ids in flight must differ. The bytes leave with the next
    /// [`Sender::poll_flush`].
    pub fn queue(&mut self, id: u64, request: &Request) {
        self.outgoing.request(id, request);
    }

    /// [`Sender::queue`] for a request that goes to several replicas, one after the other.
    pub fn queue_sealed(&mut self, id: u64, request: &Request, seal: &mut Seal) {
        self.outgoing.request_sealed(id, request, seal);
    }

    /// Bytes as they are, for tests of what a replica does with them.
    #[cfg(test)]
    pub(crate) fn queue_raw(&mut self, bytes: &[u8]) {
        self.outgoing.append(bytes);
    }

    /// Bytes queued that the socket has not taken: what the engine bounds.
    pub fn pending(&self) -> usize {
        self.outgoing.pending()
    }

    /// Writes all that is queued; pending when the socket is full. May be dropped and called again at any time.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outgoing.poll_write(cx, &mut self.stream)
    }

    /// [`Sender::poll_flush`] as a future; nothing is lost when it is dropped.
    pub async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }
}

impl Receiver {
    /// Adds to `replies` all that have come, and waits for at least one. What has been added stays added when this
    /// ends with an error; errors are final.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        replies: &mut Vec<(u64, Reply)>,
    ) -> Poll<Result<(), ConnectionError>> {
        let before = replies.len();
        loop {
            while let Some(frame) = self.incoming.next_frame()? {
                replies.push(decode_reply(frame)?);
            }
            if replies.len() > before {
                return Poll::Ready(Ok(()));
            }
            if !ready!(self.incoming.poll_fill(cx, &mut self.stream))? {
                return Poll::Ready(Err(ConnectionError::Closed));
            }
        }
    }

    /// [`Receiver::poll_receive`] as a future; nothing is lost when it is dropped.
    pub async fn receive(&mut self, replies: &mut Vec<(u64, Reply)>) -> Result<(), ConnectionError> {
        poll_fn(|cx| self.poll_receive(cx, replies)).await
    }
}

impl DialError {
    /// Whether the same attempt may succeed later without anybody changing anything.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Unreachable { .. } | Self::TimedOut { .. })
    }

    fn of_handshake(address: &Address, volume: &str, error: HandshakeError) -> Self {
        let address = address.clone();
        match error {
            HandshakeError::Refused(Refusal::Key) => Self::KeyRefused { address },
            HandshakeError::Refused(Refusal::Volume) => {
                Self::WrongVolume { address, volume: volume.to_owned() }
            }
            HandshakeError::Refused(Refusal::Busy) => Self::Busy { address },
            HandshakeError::Impostor => Self::Impostor { address },
            HandshakeError::Version { theirs } => Self::Version { address, theirs },
            HandshakeError::Talk(TalkError::Io(source)) => Self::Unreachable { address, source },
            HandshakeError::Talk(TalkError::Closed) => {
                Self::Unreachable { address, source: io::ErrorKind::ConnectionReset.into() }
            }
            error @ (HandshakeError::Refused(Refusal::Version)
            | HandshakeError::Talk(TalkError::Frame(_))
            | HandshakeError::Unexpected
            | HandshakeError::Name) => Self::Protocol { address, reason: error.to_string() },
        }
    }

    fn of_connection(address: &Address, error: ConnectionError) -> Self {
        let address = address.clone();
        match error {
            ConnectionError::Io(source) => Self::Unreachable { address, source },
            ConnectionError::Closed => {
                Self::Unreachable { address, source: io::ErrorKind::ConnectionReset.into() }
            }
            error => Self::Protocol { address, reason: error.to_string() },
        }
    }
}
