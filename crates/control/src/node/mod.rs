//! Node: its instance manager exists, and its status says what is promised on each disk. What a disk is and how much
//! of it is free is told by the node agent, never found out here.

mod accounts;
mod controller;

pub use controller::reconcile;
