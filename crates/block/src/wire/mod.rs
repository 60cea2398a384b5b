//! What engine and replica say to each other, and how it looks as bytes.
//! Messages here carry meaning only; the engine's and the replica's rules live with them.

pub mod address;
pub mod checksum;
pub mod codec;
pub mod connection;
pub mod frame;
pub mod handshake;
pub mod incoming;
pub mod key;
pub mod message;
pub mod outgoing;
pub mod stream;
pub mod talk;
