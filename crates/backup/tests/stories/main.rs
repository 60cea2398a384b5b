//! Whole backups and restores, through the public interface only: on a store in memory that crashes on request, in a
//! directory, and on a real S3 server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod counting;
mod damage;
mod disk;
mod foreign;
mod locks;
mod memory;
mod model;
mod race;
mod s3_server;
mod setup;
mod sparse;
mod stalling;
mod targets;
