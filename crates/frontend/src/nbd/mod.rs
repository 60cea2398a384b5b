//! The Network Block Device protocol: a server for one volume, and a client that is a volume.

mod action;
mod budget;
mod client;
mod connection;
mod frozen;
mod handshake;
mod inbox;
mod listener;
mod meta_context;
mod negotiation;
mod outbox;
mod reply;
mod server;
mod stream;
mod tls;
mod url;
mod wire;

pub use client::{ConnectError, NbdClient};
pub use frozen::FrozenServer;
pub use listener::ListenError;
pub use server::{Export, Server};
pub use tls::{ServerTls, TlsError, TlsFiles, client_config};
pub use url::{Address, DEFAULT_PORT, NbdUrl, UrlError};
