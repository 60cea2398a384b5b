//! The replica role: who may write (fencing by generation and connection), and the service over a store.

pub mod counters;
mod habit;
mod lanes;
pub mod limits;
mod link;
mod mailbox;
pub mod rules;
pub mod server;
pub mod service;
