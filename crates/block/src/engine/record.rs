//! The record of who is in sync, which every member carries, and how it moves from one to the next. A record never
//! moves away from everybody who was named in the last one: whoever was left behind must find somebody who knows.

use crate::engine::core::{Engine, Phase};
use crate::engine::groups::{Purpose, Replies};
use crate::engine::place::Missed;
use crate::engine::slots::{Slot, SlotSet};
use crate::ids::{Generation, ReplicaId};
use crate::wire::message::{Away, Control, Member, Membership, Reply, Request};

/// A record on its way to the members.
#[derive(Debug)]
pub struct Move {
    pub record: Membership,
    /// Somebody came or went meanwhile: when it has been answered, another one follows. One at a time, because a
    /// replica refuses a record that is older than the one it has.
    pub outdated: bool,
    /// It carries on from the records before it; otherwise nothing may be acknowledged under it.
    pub grounded: bool,
}

impl Engine {
    pub(super) fn record_of(&self, members: SlotSet, generation: Generation) -> Membership {
        let named = |slot: &Slot| members.contains(*slot);
        let member = |slot: Slot| {
            let place = &self.places[slot.index()];
            let replica = place.replica?;
            let boot = match self.record.members.iter().find(|member| member.replica == replica) {
                // Until all are equal again, the record still tells who lost nothing.
                Some(member) if matches!(self.phase, Phase::Opening | Phase::Reconciling) => {
                    member.boot.clone()
                }
                _ => place.boot.clone().unwrap_or_default(),
            };
            Some(Member { replica, address: place.address.clone(), boot })
        };
        let mut members: Vec<_> = self.slots().filter(named).filter_map(member).collect();
        if !self.carries_on(&members) {
            // Nothing is acknowledged meanwhile, so nobody falls behind: whoever was in sync still counts.
            for member in self.last_records().flat_map(|record| &record.members) {
                if !members.iter().any(|known| known.replica == member.replica) {
                    members.push(member.clone());
                }
            }
        }
        let gone = |id| self.places.iter().any(|place| place.replica == Some(id) && place.removed);
        let mut away: Vec<_> = self
            .record
            .away
            .iter()
            .filter(|away| {
                !members.iter().any(|member| member.replica == away.replica) && !gone(away.replica)
            })
            .cloned()
            .collect();
        for place in &self.places {
            if let (Some(replica), Missed::Blocks(_, left) | Missed::Marked(left)) =
                (place.replica, &place.missed)
                && !place.removed
                && !members.iter().any(|member| member.replica == replica)
                && !away.iter().any(|known: &Away| known.replica == replica)
            {
                away.push(Away { replica, generation: *left });
            }
        }
        let engine = Some(self.config.engine);
        Membership { generation, engine, members, min_in_sync: self.config.min_in_sync, away }
    }

    /// What any replica may have on disk that was in sync lately: the last record that all its members have, and those
    /// sent since.
    fn last_records(&self) -> impl Iterator<Item = &Membership> {
        std::iter::once(&self.record).chain(&self.sent)
    }

    /// Of everybody named in the last records enough are left that none of the others can start a volume without asking
    /// one of them: a replica that finds fewer than the minimum missing takes itself to be up to date.
    fn carries_on(&self, members: &[Member]) -> bool {
        self.last_records().all(|record| self.follows(record, members))
    }

    fn follows(&self, record: &Membership, members: &[Member]) -> bool {
        let lost = |member: &&Member| {
            let names = [member.address.clone(), member.replica.to_string()];
            self.config.assume_lost.iter().any(|lost| names.contains(lost))
        };
        let there = record.members.iter().filter(|member| !lost(member)).count();
        let named = |member: &&Member| record.members.iter().any(|known| known.replica == member.replica);
        let kept = members.iter().filter(named).count();
        let needed = (record.min_in_sync as usize).min(there).max(1);
        record.members.is_empty() || kept >= needed
    }

    pub(super) fn is_named(&self, replica: ReplicaId) -> bool {
        self.record.members.iter().any(|member| member.replica == replica)
    }

    /// Some of the others may count on it, so its return can only help.
    pub(super) fn was_named_lately(&self, slot: Slot) -> bool {
        let replica = self.places[slot.index()].replica;
        self.last_records().flat_map(|record| &record.members).any(|member| Some(member.replica) == replica)
    }

    /// Whether these could be recorded as the members, of whom at least one then knows everybody who was left out.
    pub(super) fn may_record(&self, members: SlotSet) -> bool {
        let named = |slot: Slot| {
            let place = &self.places[slot.index()];
            let replica = place.replica?;
            Some(Member { replica, address: place.address.clone(), boot: String::new() })
        };
        self.carries_on(&members.iter().filter_map(named).collect::<Vec<_>>())
    }

    /// Newcomers that not everybody of the last record has heard of leave again when too few of those are left.
    pub(super) fn newcomers_without_ground(&self) -> SlotSet {
        let members = self.in_sync();
        if self.may_record(members) {
            return SlotSet::EMPTY;
        }
        members
            .iter()
            .filter(|slot| self.places[slot.index()].replica.is_none_or(|id| !self.is_named(id)))
            .collect()
    }

    /// Tells the members who they are from now on.
    pub(super) fn start_move(&mut self, members: SlotSet) {
        if let Some(moving) = &mut self.moving {
            moving.outdated = true;
            return;
        }
        let generation = self.highest.next();
        self.highest = generation;
        let grounded = self.may_record(members);
        let record = self.record_of(members, generation);
        let (mut opening, mut opened) = (SlotSet::EMPTY, SlotSet::EMPTY);
        for slot in members.iter() {
            let place = self.place(slot);
            if place.opened {
                opened.insert(slot);
            } else {
                opening.insert(slot);
            }
            place.opened = true;
        }
        let open = Request::Control(Control::Open { engine: self.config.engine, record: record.clone() });
        let set = Request::Control(Control::SetMembership { record: record.clone() });
        self.sent.push(record.clone());
        self.moving = Some(Move { record, outdated: false, grounded });
        self.ask_each(&[(opened, &set), (opening, &open)], Purpose::Move);
    }

    pub(super) fn move_answered(&mut self, replies: &Replies) {
        let Some(moving) = self.moving.take() else { return };
        let mut good = !moving.outdated && !replies.is_empty();
        for (slot, reply) in replies {
            match reply {
                Some(Reply::Done) => {}
                Some(_) if self.in_sync().contains(*slot) => {
                    good = false;
                    self.fail(*slot, "could not record who is in sync");
                }
                _ => good = false,
            }
        }
        let members = self.in_sync();
        if good {
            self.grounded = moving.grounded;
            if self.grounded {
                self.sent.clear();
                self.record = moving.record;
            }
            self.recorded();
        } else if !members.is_empty() && self.moving.is_none() {
            self.start_move(members);
        }
    }
}
