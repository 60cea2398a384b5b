//! Replica: its process is started and stopped on its node. Which replicas there are is the volume's business.

mod controller;

pub use controller::reconcile;
