//! A server between two processes: its sockets and all that the next process must know to go on.
//! A client notices nothing but a pause.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use super::handshake::Client;
use super::listener::{Listener, stream_from_fd};
use super::negotiation::{Negotiation, Session};
use super::server::{Export, Server};
use super::stream::Stream;
use crate::Volume;
use crate::handover::Parcel;

/// The parcel's version; a process that does not know it refuses, and the old one goes on.
const FORMAT: u32 = 1;

#[derive(Default)]
pub struct FrozenServer {
    pub(super) listeners: Vec<FrozenListener>,
    pub(super) connections: Vec<FrozenConnection>,
}

pub(super) struct FrozenListener {
    pub fd: OwnedFd,
    /// The file of a unix socket.
    pub path: Option<PathBuf>,
}

pub(super) struct FrozenConnection {
    fd: OwnedFd,
    unix: bool,
    state: State,
    input: BytesMut,
    output: Bytes,
}

/// How far a client has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    Negotiating(Negotiation),
    Transmitting(Session),
}

/// What a parcel's header says. Descriptors come in the order of listeners, then connections; the connections'
/// bytes follow one another in the body.
#[derive(Serialize, Deserialize)]
struct Manifest {
    format: u32,
    listeners: Vec<Option<PathBuf>>,
    connections: Vec<ConnectionEntry>,
}

#[derive(Serialize, Deserialize)]
struct ConnectionEntry {
    unix: bool,
    state: State,
    input: usize,
    output: usize,
}

impl FrozenConnection {
    /// `None` under TLS, whose connections end here.
    pub fn new(client: Client, state: State) -> io::Result<Option<Self>> {
        let unix = matches!(client.stream, Stream::Unix(_));
        let Client { stream, input, output } = client;
        Ok(stream.into_fd()?.map(|fd| Self { fd, unix, state, input, output }))
    }
}

impl FrozenServer {
    /// How many clients wait in it.
    pub fn clients(&self) -> usize {
        self.connections.len()
    }

    /// Goes on serving, in this process or in the one it was received by.
    pub fn resume<V: Volume>(self, export: Export<V>) -> io::Result<Server<V>> {
        let server = Server::new(export);
        for listener in self.listeners {
            server.accept_from(Listener::from_fd(listener.fd, listener.path)?);
        }
        for connection in self.connections {
            let stream = stream_from_fd(connection.fd, connection.unix)?;
            server.resume(stream, connection.state, connection.input, connection.output);
        }
        Ok(server)
    }

    /// Copies it into a parcel, so that it can still be resumed here when nobody takes the parcel.
    pub fn to_parcel(&self) -> io::Result<Parcel> {
        let mut parcel = Parcel::default();
        let mut manifest = Manifest { format: FORMAT, listeners: Vec::new(), connections: Vec::new() };
        for listener in &self.listeners {
            parcel.fds.push(listener.fd.try_clone()?);
            manifest.listeners.push(listener.path.clone());
        }
        for FrozenConnection { fd, unix, state, input, output } in &self.connections {
            parcel.fds.push(fd.try_clone()?);
            parcel.body.extend_from_slice(input);
            parcel.body.extend_from_slice(output);
            let (input, output) = (input.len(), output.len());
            manifest.connections.push(ConnectionEntry { unix: *unix, state: state.clone(), input, output });
        }
        parcel.header = serde_json::to_vec(&manifest)?;
        Ok(parcel)
    }

    pub fn from_parcel(parcel: Parcel) -> io::Result<Self> {
        let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the parcel {what}"));
        let manifest: Manifest = serde_json::from_slice(&parcel.header)?;
        if manifest.format != FORMAT {
            return Err(broken(&format!("has format {}, and only {FORMAT} is known", manifest.format)));
        }
        let mut fds = parcel.fds.into_iter();
        let mut fd = || fds.next().ok_or_else(|| broken("has too few descriptors"));
        let mut body = parcel.body;
        let mut bytes = |len: usize| {
            if len <= body.len() { Ok(body.split_to(len)) } else { Err(broken("is too short")) }
        };
        let mut frozen = Self::default();
        for path in manifest.listeners {
            frozen.listeners.push(FrozenListener { fd: fd()?, path });
        }
        for ConnectionEntry { unix, state, input, output } in manifest.connections {
            let (input, output) = (bytes(input)?, bytes(output)?.freeze());
            frozen.connections.push(FrozenConnection { fd: fd()?, unix, state, input, output });
        }
        Ok(frozen)
    }
}
