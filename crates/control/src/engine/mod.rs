//! Engine: its process is started and stopped on its node, told which replicas it has, and asked how it is.

mod controller;
mod running;

pub use controller::{Controller, reconcile};
