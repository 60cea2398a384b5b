//! Volumes: what a volume, its engine and its replicas look like ([`seen`]), what should be done about it
//! ([`state::step`], one function without I/O), and in which words that is told ([`decision`]).

mod apply;
mod attached;
mod controller;
pub mod decision;
pub mod seen;
pub mod state;
#[cfg(test)]
mod table;
mod view;
#[cfg(test)]
mod world;

pub use controller::reconcile;
