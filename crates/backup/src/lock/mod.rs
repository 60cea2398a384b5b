//! Locks on a volume's backups, kept as objects beside them: many may back up or restore at a time, but whoever
//! deletes is alone. The objects are those of Longhorn, so that both can work on one target.

mod lease;
mod rules;

pub use lease::{Lease, LockTimings};
pub use rules::LockKind;
