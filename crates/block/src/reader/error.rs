//! Why a snapshot cannot be read: what is wrong with one replica, and what that means for all of them.

use std::fmt;
use std::time::Duration;

use crate::geometry::Range;
use crate::ids::LayerId;
use crate::wire::address::Address;
use crate::wire::connection::{ConnectionError, DialError};
use crate::wire::message::{Failure, FailureKind};

/// Why one replica does not serve the snapshot. Reads on after "replica ADDRESS".
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("refused the key: use the key file it was started with")]
    KeyRefused,
    /// Names the replica itself.
    #[error(transparent)]
    Dial(DialError),
    #[error("runs an older version that does not let snapshots be read: upgrade it")]
    TooOld,
    #[error("is being rebuilt: its snapshots can be read when that has ended")]
    Rebuilding,
    #[error("has no such snapshot")]
    NoSnapshot,
    #[error("no longer tells layer {0}, with which the snapshot is compared, from others")]
    NoBase(LayerId),
    #[error("answered: {0}")]
    Failed(Failure),
    #[error("was lost: {0}")]
    Lost(ConnectionError),
    #[error("did not answer within {0:?}")]
    Silent(Duration),
    #[error("does not behave like a replica: {0}")]
    Nonsense(&'static str),
}

impl Problem {
    /// Whether it may pass without anybody changing anything.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_temporary(),
            Self::Failed(failure) => failure.kind == FailureKind::Busy,
            Self::Rebuilding | Self::Lost(_) | Self::Silent(_) => true,
            Self::KeyRefused | Self::TooOld | Self::NoSnapshot | Self::NoBase(_) | Self::Nonsense(_) => false,
        }
    }
}

impl From<DialError> for Problem {
    fn from(error: DialError) -> Self {
        match error {
            DialError::KeyRefused { .. } => Self::KeyRefused,
            error => Self::Dial(error),
        }
    }
}

/// Which replica has which.
#[derive(Debug, Default)]
pub struct Problems(pub Vec<(Address, Problem)>);

impl Problems {
    pub fn any(&self, is: impl Fn(&Problem) -> bool) -> bool {
        self.0.iter().any(|(_, problem)| is(problem))
    }

    pub(super) fn note(&mut self, address: &Address, problem: Problem) {
        self.0.retain(|(known, _)| known != address);
        self.0.push((address.clone(), problem));
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (address, problem)) in self.0.iter().enumerate() {
            f.write_str(if position == 0 { "" } else { "; " })?;
            match problem {
                Problem::Dial(error) => write!(f, "{error}")?,
                problem => write!(f, "replica {address} {problem}")?,
            }
        }
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    #[error("volume {volume} has no snapshot {snapshot}: {problems}")]
    NotFound { volume: String, snapshot: String, problems: Problems },
    #[error(
        "the replicas of volume {volume} do not agree which layer snapshot {snapshot} is ({said}): leave out those \
         that were left behind, or let the volume's engine rebuild them first"
    )]
    Disagreement { volume: String, snapshot: String, said: String },
    #[error("snapshot {snapshot} of volume {volume} was removed while it was read")]
    Removed { volume: String, snapshot: String },
    #[error("snapshot {snapshot} of volume {volume} cannot be read: {problems}")]
    Unavailable { volume: String, snapshot: String, problems: Problems },
    #[error(
        "snapshot {snapshot} does not stand on layer {since} (any more), so what changed since is not known: read it \
         as a whole"
    )]
    NotBelow { snapshot: String, since: LayerId },
    #[error("range {}+{} is not made of whole 4 KiB blocks within the snapshot of {size} bytes",
        .range.offset, .range.len)]
    OutOfRange { range: Range, size: u64 },
}
