//! The volume controllers with real instance managers: from a Volume object to a block device, and back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "control/house.rs"]
mod house;
#[path = "control/life_of_a_volume.rs"]
mod life_of_a_volume;
