//! The control API of one running engine: what operators and the instance manager ask of it, over gRPC.
//! It translates and transports; what a command does is the engine's business.

mod client;
mod limits;
mod listener;
mod service;
mod snapshots;
mod translate;

/// The messages, the client and the server, as defined in `proto/engine.proto`.
#[allow(clippy::all, clippy::pedantic, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("granary.engine.v1");
}

pub use client::{Client, ConnectError, connect};
pub use limits::SnapshotLimits;
pub use listener::{ListenError, Listener};
pub use service::{Ask, Reached, Service};
pub use snapshots::HEAD;
