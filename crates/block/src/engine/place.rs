//! The engine's view of one replica: where it is, how it stands, and what it has missed.

use roaring::RoaringTreemap;

use crate::engine::event::Link;
use crate::ids::{Generation, ReplicaId};
use crate::wire::message::ReplicaInfo;

/// ```text
///            connect            admit
///   Away ───────────▶ Waiting ─────────▶ InSync
///    ▲                   │ adopt            ▲
///    │ lose (from any)   ▼       join       │
///    └────────────── Rebuilding ────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not connected.
    Away,
    /// Connected; nothing is sent to it until it is decided what it is.
    Waiting,
    /// Has every acknowledged write.
    InSync,
    /// Gets every write, is never read from, and is being filled.
    Rebuilding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Connect,
    Admit,
    Adopt,
    Join,
    Lose,
}

impl Standing {
    /// `None`: this cannot happen to a replica that stands so.
    pub const fn after(self, turn: Turn) -> Option<Self> {
        match (self, turn) {
            (Self::Away, Turn::Connect) => Some(Self::Waiting),
            (Self::Waiting, Turn::Admit) | (Self::Rebuilding, Turn::Join) => Some(Self::InSync),
            (Self::Waiting, Turn::Adopt) => Some(Self::Rebuilding),
            (_, Turn::Lose) => Some(Self::Away),
            _ => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Waiting => "waiting",
            Self::InSync => "inSync",
            Self::Rebuilding => "rebuilding",
        }
    }
}

/// What a replica lacks that is not in sync.
#[derive(Clone, Debug, Default)]
pub enum Missed {
    /// Nothing is known: all of it has to be compared.
    #[default]
    Everything,
    /// Exactly these blocks, since it left at that generation.
    Blocks(RoaringTreemap, Generation),
    /// Whatever the intents mark: it left at that generation, before it was made equal to the others.
    Marked(Generation),
}

#[derive(Debug)]
pub struct Place {
    pub address: String,
    pub link: Option<Link>,
    pub standing: Standing,
    pub replica: Option<ReplicaId>,
    /// What it said when the connection was made.
    pub info: Option<Box<ReplicaInfo>>,
    /// The connection was opened for writing.
    pub opened: bool,
    /// The boot it was last in sync in.
    pub boot: Option<String>,
    pub missed: Missed,
    pub reason: String,
    pub redial_at: Option<u64>,
    pub redial_wait: u64,
    pub last_heard: u64,
    pub pinged: bool,
    pub reads_out: u32,
    pub reads: u64,
    pub writes: u64,
    pub removed: bool,
}

impl Place {
    pub fn new(address: String) -> Self {
        Self {
            address,
            link: None,
            standing: Standing::Away,
            replica: None,
            info: None,
            opened: false,
            boot: None,
            missed: Missed::Everything,
            reason: String::new(),
            redial_at: None,
            redial_wait: 0,
            last_heard: 0,
            pinged: false,
            reads_out: 0,
            reads: 0,
            writes: 0,
            removed: false,
        }
    }

    pub fn turn(&mut self, turn: Turn) {
        match self.standing.after(turn) {
            Some(next) => self.standing = next,
            None => debug_assert!(false, "{:?} cannot {turn:?}", self.standing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_read_from_only_after_it_was_admitted_or_rebuilt() {
        use Standing::{Away, InSync, Rebuilding, Waiting};
        use Turn::{Admit, Adopt, Connect, Join, Lose};
        let turns = [Connect, Admit, Adopt, Join, Lose];
        for (from, outcomes) in [
            (Away, [Some(Waiting), None, None, None, Some(Away)]),
            (Waiting, [None, Some(InSync), Some(Rebuilding), None, Some(Away)]),
            (InSync, [None, None, None, None, Some(Away)]),
            (Rebuilding, [None, None, None, Some(InSync), Some(Away)]),
        ] {
            for (turn, outcome) in turns.iter().zip(outcomes) {
                assert_eq!(from.after(*turn), outcome, "{from:?} {turn:?}");
            }
        }
    }
}
