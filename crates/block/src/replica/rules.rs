//! Who may do what. A pure decision over who owns the replica, what its record says and who asks; it never touches
//! the store.

use crate::ids::Generation;
use crate::wire::message::{Control, Failure, FailureKind, Request};

/// One connection, for as long as the replica's process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(pub u64);

/// The connection that may work with the replica, and at what.
///
/// ```text
/// Nobody ── open ──→ Serving ── close, end of the connection ──→ Nobody
///    └──── adopt ──→ Filling ── membership that names us ──→ Serving
/// ```
///
/// From every state a newer generation on any connection opens or adopts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    #[default]
    Nobody,
    /// The replica is in sync, and reads and writes are served.
    Serving(SessionId),
    /// A rebuild fills the replica: nothing may be served from it.
    Filling(SessionId),
}

/// What the store's record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub generation: Generation,
    pub rebuilding: bool,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Anybody with the key.
    Nothing,
    /// To become the owner of a replica that is in sync, with a newer generation.
    Open(Generation),
    /// To become the owner of a replica that will be filled.
    Adopt(Generation),
    /// To be the owner, with a newer generation.
    Record(Generation),
    /// To be the owner.
    Ownership,
    /// To be the owner of a replica that is in sync.
    Serving,
    /// To be the owner of a replica that is being filled.
    Filling,
    /// A replica that is in sync or was: its snapshots are what they are, whoever owns it.
    Frozen,
}

/// What each request needs. Content is compared on replicas in both states; served from those in sync only.
pub fn need(request: &Request) -> Need {
    match request {
        Request::Read { .. } => Need::Serving,
        Request::Write { .. } | Request::Zero { .. } | Request::Flush => Need::Ownership,
        Request::Control(control) | Request::ControlWith(control, _) => match control {
            Control::Ping | Control::Info => Need::Nothing,
            Control::Open { record, .. } => Need::Open(record.generation),
            Control::Adopt { record, .. } => Need::Adopt(record.generation),
            Control::SetMembership { record } => Need::Record(record.generation),
            Control::Intents { .. }
            | Control::Snapshot { .. }
            | Control::RemoveSnapshot { .. }
            | Control::Expand { .. }
            | Control::LayerRuns { .. }
            | Control::LayerRead { .. }
            | Control::LayerDigests { .. }
            | Control::Digests { .. } => Need::Ownership,
            Control::Close
            | Control::Revert { .. }
            | Control::Purge
            | Control::Allocation { .. }
            | Control::Checksum { .. } => Need::Serving,
            Control::LayerComplete { .. } | Control::LayerWrite { .. } => Need::Filling,
            Control::SnapshotRead { .. } => Need::Frozen,
        },
    }
}

impl Owner {
    pub const fn session(self) -> Option<SessionId> {
        match self {
            Self::Nobody => None,
            Self::Serving(session) | Self::Filling(session) => Some(session),
        }
    }

    /// Whether the request may be carried out, and if not, what to answer.
    pub fn admit(self, session: SessionId, need: Need, record: Record) -> Result<(), Failure> {
        let newer = |generation: Generation| generation > record.generation;
        match need {
            Need::Nothing => Ok(()),
            Need::Frozen if record.rebuilding => Err(refuse(
                FailureKind::Busy,
                "the replica is being rebuilt: read its snapshots when that has ended, or those of another",
            )),
            Need::Frozen => Ok(()),
            Need::Open(_) if record.rebuilding => Err(refuse(
                FailureKind::Invalid,
                "the replica has an unfinished rebuild: rebuild it before it is used",
            )),
            // A rebuild that was cut off goes on with the generation it began with.
            Need::Adopt(generation) if record.rebuilding && generation == record.generation => Ok(()),
            Need::Open(generation) | Need::Adopt(generation) if newer(generation) => Ok(()),
            Need::Open(generation) | Need::Adopt(generation) => Err(stale(generation, record)),
            _ if self.session() != Some(session) => Err(fenced(self)),
            Need::Record(generation) if !newer(generation) => Err(stale(generation, record)),
            Need::Serving => self.serves(),
            Need::Filling => self.fills(),
            Need::Record(_) | Need::Ownership => Ok(()),
        }
    }

    /// [`Owner::admit`] for [`Need::Serving`] without a look at the record: the hot path.
    pub fn admit_read(self, session: SessionId) -> Result<(), Failure> {
        if self.session() == Some(session) { self.serves() } else { Err(fenced(self)) }
    }

    /// [`Owner::admit`] for [`Need::Ownership`] without a look at the record: the hot path.
    pub fn admit_write(self, session: SessionId) -> Result<(), Failure> {
        if self.session() == Some(session) { Ok(()) } else { Err(fenced(self)) }
    }

    fn serves(self) -> Result<(), Failure> {
        match self {
            Self::Filling(_) => Err(refuse(
                FailureKind::Invalid,
                "the replica is being rebuilt: ask one that is in sync until a membership names it",
            )),
            Self::Nobody | Self::Serving(_) => Ok(()),
        }
    }

    fn fills(self) -> Result<(), Failure> {
        match self {
            Self::Filling(_) => Ok(()),
            Self::Nobody | Self::Serving(_) => Err(refuse(
                FailureKind::Invalid,
                "the replica is in sync: adopt a tree of layers before filling it",
            )),
        }
    }
}

fn fenced(owner: Owner) -> Failure {
    refuse(
        FailureKind::Fenced,
        if owner == Owner::Nobody {
            "this connection has not opened the replica"
        } else {
            "another connection owns the replica: a newer engine has opened it"
        },
    )
}

fn stale(generation: Generation, record: Record) -> Failure {
    let stored = record.generation;
    refuse(FailureKind::Fenced, &format!("generation {generation} is not newer than the replica's {stored}"))
}

pub(super) fn refuse(kind: FailureKind, message: &str) -> Failure {
    Failure { kind, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureKind::{Busy, Fenced, Invalid};

    const US: SessionId = SessionId(1);
    const OTHER: SessionId = SessionId(2);

    /// For each owner: may we open, adopt, record, change, read, fill? At a newer generation than the stored one.
    #[test]
    fn the_table_of_who_may_do_what() {
        type Row = (Owner, bool, [Option<FailureKind>; 6]);
        let rows: [Row; 7] = [
            (Owner::Nobody, false, [None, None, Some(Fenced), Some(Fenced), Some(Fenced), Some(Fenced)]),
            (
                Owner::Nobody,
                true,
                [Some(Invalid), None, Some(Fenced), Some(Fenced), Some(Fenced), Some(Fenced)],
            ),
            (Owner::Serving(US), false, [None, None, None, None, None, Some(Invalid)]),
            (Owner::Filling(US), true, [Some(Invalid), None, None, None, Some(Invalid), None]),
            (
                Owner::Serving(OTHER),
                false,
                [None, None, Some(Fenced), Some(Fenced), Some(Fenced), Some(Fenced)],
            ),
            (
                Owner::Filling(OTHER),
                true,
                [Some(Invalid), None, Some(Fenced), Some(Fenced), Some(Fenced), Some(Fenced)],
            ),
            // The rebuild ended and the record followed.
            (Owner::Serving(US), false, [None, None, None, None, None, Some(Invalid)]),
        ];
        let newer = Generation(6);
        let needs = [
            Need::Open(newer),
            Need::Adopt(newer),
            Need::Record(newer),
            Need::Ownership,
            Need::Serving,
            Need::Filling,
        ];
        for (owner, rebuilding, expected) in rows {
            let record = Record { generation: Generation(5), rebuilding };
            for (need, expected) in needs.into_iter().zip(expected) {
                let refused = owner.admit(US, need, record).err().map(|failure| failure.kind);
                assert_eq!(refused, expected, "{need:?} with {owner:?}, rebuilding: {rebuilding}");
            }
            assert_eq!(owner.admit(US, Need::Nothing, record), Ok(()));
            let frozen = owner.admit(US, Need::Frozen, record).err().map(|failure| failure.kind);
            assert_eq!(frozen, rebuilding.then_some(Busy), "snapshots with {owner:?}");
            assert_eq!(owner.admit(US, Need::Serving, record), owner.admit_read(US));
            assert_eq!(owner.admit(US, Need::Ownership, record), owner.admit_write(US));
        }
    }

    #[test]
    fn only_a_newer_generation_counts() {
        let serving = Record { generation: Generation(5), rebuilding: false };
        for (generation, admitted) in [(4, false), (5, false), (6, true)] {
            let generation = Generation(generation);
            for need in [Need::Open(generation), Need::Adopt(generation), Need::Record(generation)] {
                assert_eq!(Owner::Serving(US).admit(US, need, serving).is_ok(), admitted, "{need:?}");
            }
        }
        let filling = Record { rebuilding: true, ..serving };
        for (generation, admitted) in [(4, false), (5, true), (6, true)] {
            let need = Need::Adopt(Generation(generation));
            assert_eq!(Owner::Nobody.admit(US, need, filling).is_ok(), admitted, "{need:?}");
        }
    }
}
