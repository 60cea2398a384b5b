//! `granary engine` and `granary engine-ctl` as processes, with real replicas: used, killed, stopped, replaced.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "engine/clients.rs"]
mod clients;
#[path = "engine/cloning.rs"]
mod cloning;
#[path = "engine/cluster.rs"]
mod cluster;
#[path = "engine/control.rs"]
mod control;
#[path = "engine/failures.rs"]
mod failures;
#[path = "engine/handover.rs"]
mod handover;
#[path = "engine/hostile.rs"]
mod hostile;
#[path = "engine/lab.rs"]
mod lab;
#[path = "engine/large.rs"]
mod large;
#[path = "engine/machine_room.rs"]
mod machine_room;
#[path = "engine/programs.rs"]
mod programs;
#[path = "engine/rounds.rs"]
mod rounds;
#[path = "engine/snapshots.rs"]
mod snapshots;
#[path = "engine/stamps.rs"]
mod stamps;
