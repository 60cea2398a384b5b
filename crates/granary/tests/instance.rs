//! `granary instance-manager` as a process, with the engines and replicas that it runs: used, replaced, killed, found
//! again, and asked by a client in another language.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "instance/adoption.rs"]
mod adoption;
#[path = "instance/clients.rs"]
mod clients;
#[path = "instance/cluster.rs"]
mod cluster;
#[path = "instance/encryption.rs"]
mod encryption;
#[path = "instance/life.rs"]
mod life;
#[path = "instance/mistakes.rs"]
mod mistakes;
#[path = "instance/python.rs"]
mod python;
#[path = "instance/replacing.rs"]
mod replacing;
#[allow(dead_code, reason = "shared with the tests of engines")]
#[path = "engine/stamps.rs"]
mod stamps;
