//! Who holds the truth when an engine starts. A pure decision over what the replicas say; it never guesses: when a
//! replica that cannot be asked might hold newer data, the answer is to wait or to refuse.

use std::collections::BTreeSet;

use crate::engine::slots::{Slot, SlotSet};
use crate::ids::{Generation, LayerId, ReplicaId};
use crate::wire::message::{Membership, ReplicaInfo};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nobody ever wrote: everybody begins.
    Fresh { members: SlotSet, generation: Generation },
    /// These have every acknowledged write. `reference` has the layers that count.
    Go { members: SlotSet, reference: Slot, generation: Generation, record: Membership },
    /// Not with what is known so far.
    Wait(Refusal),
}

/// Why a volume cannot start; each says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("no replica answers; check that they run and that the addresses and the key are right")]
    Nobody,
    #[error(
        "{0} of the volume's replicas did not answer and the others are new and empty; start them, or name them with \
         --assume-lost if they never held data"
    )]
    FreshButIncomplete(usize),
    #[error(
        "replicas {0} were in sync at generation {1}, do not answer, and may hold newer data; start them, or name \
         them with --assume-lost if they are gone for good"
    )]
    MayBeNewer(String, Generation),
    #[error("only replicas with an unfinished rebuild answer; start the ones that were in sync")]
    OnlyRebuilding,
}

/// What is known when deciding.
#[derive(Debug)]
pub struct Known<'a> {
    pub infos: Vec<(Slot, &'a ReplicaInfo)>,
    /// How many of the configured replicas did not answer.
    pub silent: usize,
    /// Addresses or identities of replicas that somebody said are gone for good.
    pub assume_lost: &'a [String],
    /// How many of the silent ones that names.
    pub silent_lost: usize,
}

pub fn choose(known: &Known<'_>) -> Choice {
    if known.infos.is_empty() {
        return Choice::Wait(Refusal::Nobody);
    }
    let highest = known.infos.iter().map(|(_, info)| info.membership.generation).max().unwrap_or_default();
    // A replica whose record does not name itself was never told that it is in sync; one under rebuild was told who is.
    let speakers = known.infos.iter().filter(|(_, info)| {
        let members = &info.membership.members;
        info.rebuilding && !members.is_empty() || members.iter().any(|member| member.replica == info.replica)
    });
    let Some((_, newest)) = speakers.max_by_key(|(_, info)| info.membership.generation) else {
        return fresh(known, highest);
    };
    let record = &newest.membership;
    let named = |id: ReplicaId| record.members.iter().any(|member| member.replica == id);
    let in_sync: Vec<_> =
        known.infos.iter().filter(|(_, info)| named(info.replica) && !info.rebuilding).copied().collect();
    let missing: Vec<_> = record
        .members
        .iter()
        .filter(|member| !known.infos.iter().any(|(_, info)| info.replica == member.replica))
        .filter(|member| {
            !known
                .assume_lost
                .iter()
                .any(|lost| *lost == member.address || *lost == member.replica.to_string())
        })
        .collect();
    let kept_memory = |info: &ReplicaInfo| {
        record.members.iter().any(|member| member.replica == info.replica && member.boot == info.boot)
    };
    // Machines that restarted may have lost writes that were acknowledged and not flushed; one that is missing may have
    // kept them.
    let forgetful = !in_sync.iter().any(|(_, info)| info.clean || kept_memory(info));
    // Those that are missing can have gone on without the others only if they were enough to acknowledge writes.
    if missing.len() >= record.min_in_sync.max(1) as usize || (forgetful && !missing.is_empty()) {
        let who = missing.iter().map(|member| member.address.as_str()).collect::<Vec<_>>().join(", ");
        return Choice::Wait(Refusal::MayBeNewer(who, record.generation));
    }
    let Some(&(reference, _)) =
        in_sync.iter().max_by_key(|(slot, info)| (lineage(info).len(), kept_memory(info), u8::MAX - slot.0))
    else {
        return Choice::Wait(Refusal::OnlyRebuilding);
    };
    let wanted = in_sync.iter().find(|(slot, _)| *slot == reference).map(|(_, info)| shape(info));
    let members: SlotSet =
        in_sync.iter().filter(|(_, info)| Some(shape(info)) == wanted).map(|(slot, _)| *slot).collect();

    Choice::Go { members, reference, generation: highest.next(), record: record.clone() }
}

fn fresh(known: &Known<'_>, highest: Generation) -> Choice {
    if known.infos.iter().any(|(_, info)| info.rebuilding) {
        return Choice::Wait(Refusal::OnlyRebuilding);
    }
    let unexplained = known.silent.saturating_sub(known.silent_lost);
    if unexplained > 0 {
        return Choice::Wait(Refusal::FreshButIncomplete(unexplained));
    }
    // Clones of one snapshot share their layers; empty directories each have their own head. Whoever has most
    // layers is the reference, and others that differ are rebuilt from it.
    let members = known.infos.iter().map(|(slot, _)| *slot).collect();
    Choice::Fresh { members, generation: highest.next() }
}

/// The snapshots the head stands on, newest first; removed ones are not part of the story any more.
pub fn lineage(info: &ReplicaInfo) -> Vec<LayerId> {
    let find = |id: LayerId| info.layers.iter().find(|layer| layer.id == id);
    let mut line = Vec::new();
    let mut next = Some(info.head);
    while let Some(layer) = next.and_then(find) {
        if !layer.removed && line.len() <= info.layers.len() {
            line.push(layer.id);
        }
        next = layer.parent.filter(|parent| !line.contains(parent));
    }
    line
}

/// What two replicas must have in common to be the same volume at the same moment.
pub fn shape(info: &ReplicaInfo) -> (LayerId, BTreeSet<LayerId>) {
    (info.head, info.layers.iter().filter(|layer| !layer.removed).map(|layer| layer.id).collect())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::wire::message::{Layer, Member, Progress};

    fn id(n: u8) -> ReplicaId {
        ReplicaId(Uuid::from_u128(u128::from(n)))
    }

    fn layer(n: u8) -> LayerId {
        LayerId(Uuid::from_u128(u128::from(n)))
    }

    /// Replica `n` at a generation, with a record that names `members`, standing on `heads` layers.
    fn says(n: u8, generation: u64, members: &[u8], heads: u8) -> ReplicaInfo {
        let layers = (1..=heads)
            .map(|at| Layer {
                id: layer(at),
                parent: (at > 1).then(|| layer(at - 1)),
                absorbed: vec![],
                snapshot: None,
                removed: false,
                complete: true,
                backing: None,
                size: 1 << 20,
                allocated: 0,
            })
            .collect();
        ReplicaInfo {
            replica: id(n),
            size: 1 << 20,
            membership: Membership {
                engine: None,
                generation: Generation(generation),
                members: members
                    .iter()
                    .map(|m| Member { replica: id(*m), address: format!("r{m}"), boot: String::new() })
                    .collect(),
                min_in_sync: 1,
                away: vec![],
            },
            clean: true,
            rebuilding: false,
            boot: String::new(),
            layers,
            head: layer(heads),
            intents: vec![],
            free: 0,
            purge: Progress::default(),
        }
    }

    fn decide(infos: &[ReplicaInfo], silent: usize) -> Choice {
        decide_with(infos, silent, &[])
    }

    fn decide_with(infos: &[ReplicaInfo], silent: usize, lost: &[u8]) -> Choice {
        let assume_lost: Vec<String> = lost.iter().map(|n| format!("r{n}")).collect();
        choose(&Known {
            infos: infos.iter().enumerate().map(|(at, info)| (Slot(at as u8), info)).collect(),
            silent,
            assume_lost: &assume_lost,
            silent_lost: lost.len(),
        })
    }

    fn members(choice: &Choice) -> Vec<u8> {
        match choice {
            Choice::Go { members, .. } | Choice::Fresh { members, .. } => {
                members.iter().map(|slot| slot.0).collect()
            }
            Choice::Wait(refusal) => panic!("refused: {refusal}"),
        }
    }

    #[test]
    fn a_new_volume_begins_when_everybody_is_there() {
        let new = [says(1, 0, &[], 1), says(2, 0, &[], 1)];
        assert_eq!(members(&decide(&new, 0)), [0, 1]);
        assert_eq!(decide(&new, 1), Choice::Wait(Refusal::FreshButIncomplete(1)));
        assert_eq!(members(&decide_with(&new, 1, &[3])), [0, 1]);
    }

    #[test]
    fn the_newest_generation_wins_and_a_stale_one_is_never_used() {
        let choice = decide(&[says(1, 7, &[1, 2, 3], 1), says(2, 8, &[2], 1), says(3, 7, &[1, 2, 3], 1)], 0);
        assert_eq!(members(&choice), [1]);
    }

    #[test]
    fn whoever_may_have_gone_on_alone_must_be_asked() {
        let stale = [says(1, 7, &[1, 2, 3], 1), says(3, 7, &[1, 2, 3], 1)];
        assert_eq!(decide(&stale, 1), Choice::Wait(Refusal::MayBeNewer("r2".into(), Generation(7))));
        assert_eq!(members(&decide_with(&stale, 1, &[2])), [0, 1], "unless it is said to be lost");
    }

    #[test]
    fn fewer_than_could_acknowledge_are_not_waited_for() {
        let mut two = [says(1, 7, &[1, 2, 3], 1), says(3, 7, &[1, 2, 3], 1)];
        for info in &mut two {
            info.membership.min_in_sync = 2;
        }
        assert_eq!(members(&decide_with(&two, 1, &[])), [0, 1]);
        assert_eq!(
            decide_with(&two[..1], 2, &[]),
            Choice::Wait(Refusal::MayBeNewer("r2, r3".into(), Generation(7)))
        );
    }

    #[test]
    fn a_change_of_members_that_not_all_recorded_was_never_acknowledged() {
        // The second heard of generation 8, the first, named in it, had not yet: both have everything.
        let choice =
            decide(&[says(1, 7, &[1, 2, 3], 1), says(2, 8, &[1, 2], 1), says(3, 7, &[1, 2, 3], 1)], 0);
        assert_eq!(members(&choice), [0, 1]);
    }

    #[test]
    fn a_replica_under_rebuild_is_neither_used_nor_waited_for() {
        let mut filling = says(2, 8, &[1, 2], 1);
        filling.rebuilding = true;
        assert_eq!(members(&decide(&[says(1, 8, &[1, 2], 1), filling.clone()], 0)), [0]);
        let told = Choice::Wait(Refusal::MayBeNewer("r1".into(), Generation(8)));
        assert_eq!(decide(&[filling], 0), told, "it knows who was in sync when its rebuild began");
    }

    #[test]
    fn a_snapshot_that_only_some_have_makes_the_others_catch_up() {
        let choice = decide(&[says(1, 7, &[1, 2], 1), says(2, 7, &[1, 2], 2)], 0);
        assert_eq!(members(&choice), [1]);
        let Choice::Go { reference, generation, .. } = choice else { panic!() };
        assert_eq!((reference, generation), (Slot(1), Generation(8)));
    }
}
