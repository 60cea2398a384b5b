//! InstanceManager: one for each node, in a pod of its own; what it says of its processes is passed on as its status.

mod address;
mod controller;
mod follow;
mod pod;

pub use address::storage_ip;
pub use controller::{Controller, reconcile};
