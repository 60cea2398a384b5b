//! How a block volume is reached, whatever holds its bytes: NBD, a FUSE file, a kernel block device.
//! Frontends serve a [`Volume`]; they know nothing of replicas, and a volume knows nothing of them.

mod volume;

pub use volume::{AllocationRun, Volume, VolumeError};
