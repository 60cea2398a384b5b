//! Where a copy of a volume goes: a function of nodes, disks, rules and the copies there are. No I/O.

mod model;
mod place;
mod reason;
#[cfg(test)]
mod tests;
mod view;

pub use model::{Copy, Disk, Node, Place, Request, Rules};
pub use place::place;
pub use reason::{NoPlace, Obstacle, Where};
