//! The replicated block engine, usable without the rest of Granary: a replica keeps a volume's bytes in a directory
//! of sparse layers, an engine keeps several replicas identical and serves reads and writes from them.
//! This crate knows nothing of Kubernetes, and nothing of how a guest reaches the volume.

pub mod disk;
pub mod engine;
pub mod geometry;
pub mod ids;
pub mod name;
pub mod reader;
pub mod replica;
pub mod size;
pub mod store;
pub mod wire;

#[cfg(test)]
mod simulation;
