//! Engine and replicas in one process, on a simulated network, disks and clock. A seed decides everything: what the
//! guest does, which messages are late or lost, who crashes and what the disks forget. The same seed is the same story.

mod guest;
mod random;
mod stories;
mod world;
