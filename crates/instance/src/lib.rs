//! The instance manager: runs engines and replicas as processes of one machine ([`process`]), and stands between
//! managers and the engines it runs (`services`). [`client`] is the manager's side.
//! It must never touch a volume's data, and never decide which engine or replica should exist.

pub mod client;
mod error;
pub mod frontend;
pub mod process;
pub mod server;
mod services;
mod tls;
mod version;
pub mod wire;

pub use error::Refusal;
pub use server::{ServeError, Server};
pub use tls::TlsError;
