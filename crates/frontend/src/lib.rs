//! How a block volume is reached, whatever holds its bytes: NBD, a FUSE file, a kernel block device.
//! Frontends serve a [`Volume`]; they know nothing of replicas, and a volume knows nothing of them.
//! All of a volume's frontends run on its one thread, so that a request crosses none.

mod blocking;
pub mod device;
mod file_volume;
mod frontends;
pub mod fuse;
pub mod handover;
mod in_flight;
mod modules;
pub mod nbd;
mod orders;
mod spec;
pub mod ublk;
mod volume;
mod zeroes;

pub use file_volume::FileVolume;
pub use frontends::{FrontendError, Frontends, FrozenFrontends, VolumeIdentity};
pub use spec::{FrontendSpec, SpecError};
pub use volume::{AllocationRun, Volume, VolumeError};
pub use zeroes::{are_zeroes, zeroes};
