//! Who is in sync: the start, replicas that fail, and the return of the last ones. Nothing is acknowledged while a new
//! record is under way, so a replica that was left behind can always be told.

use roaring::RoaringTreemap;

use crate::engine::choose::{Choice, Known, Refusal, choose, lineage, shape};
use crate::engine::core::{Engine, Phase};
use crate::engine::event::{Effect, Link, StopReason};
use crate::engine::groups::{Purpose, Replies};
use crate::engine::place::{Missed, Place, Standing, Turn};
use crate::engine::slots::{Slot, SlotSet};
use crate::engine::table::{Entry, Stage};
use crate::ids::Generation;
use crate::wire::message::{Control, Member, Membership, ReplicaInfo, Reply, Request};

const REDIAL_FIRST: u64 = 100_000;
const REDIAL_LAST: u64 = 2_000_000;

impl Engine {
    pub(super) fn connected(&mut self, link: Link, info: Box<ReplicaInfo>) {
        if self.place(link.slot).link != Some(link) {
            return;
        }
        let twin = self.places.iter().enumerate().any(|(at, place)| {
            at != link.slot.index() && place.standing != Standing::Away && place.replica == Some(info.replica)
        });
        if twin {
            return self.refuse(link.slot, "is the same replica as another address");
        }
        // Generations that this engine tried and could not record say nothing of how new another engine's record is.
        let foreign = info.membership.engine != Some(self.config.engine)
            && info.membership.generation > self.record.generation;
        if self.phase != Phase::Gathering && foreign {
            let theirs = &info.membership.members;
            let of_ours = theirs.is_empty() || theirs.iter().any(|member| self.is_named(member.replica));
            if self.is_named(info.replica) {
                return self.fenced();
            }
            if !of_ours {
                let reason = format!(
                    "replica {} holds a newer record that names none of the replicas this engine began with; start \
                     the engine again, and it will begin with those",
                    self.places[link.slot.index()].address
                );
                return self.stop(StopReason::CannotStart(reason));
            }
            // A dead engine's last words to a replica that was not in sync, while ours were.
            self.highest = self.highest.max(info.membership.generation);
        }
        let now = self.now;
        let place = self.place(link.slot);
        if place.replica.is_some_and(|before| before != info.replica) {
            place.missed = Missed::Everything;
            place.boot = None;
        }
        place.turn(Turn::Connect);
        place.replica = Some(info.replica);
        place.info = Some(info);
        place.opened = false;
        place.last_heard = now;
        place.pinged = false;
        place.redial_wait = 0;
        place.reason = String::new();
    }

    fn refuse(&mut self, slot: Slot, why: &str) {
        tracing::warn!(replica = self.places[slot.index()].address, why, "replica refused");
        let link = self.place(slot).link.take();
        if let Some(link) = link {
            self.out.push(Effect::Disconnect { link });
        }
        self.place(slot).reason = why.to_string();
        self.plan_redial(slot);
    }

    fn plan_redial(&mut self, slot: Slot) {
        let now = self.now;
        let place = self.place(slot);
        place.redial_wait = (place.redial_wait * 2).clamp(REDIAL_FIRST, REDIAL_LAST);
        place.redial_at = (!place.removed).then_some(now + place.redial_wait);
    }

    /// Starts as soon as the answer is certain; with silent replicas that are not needed, after a grace.
    pub(super) fn try_start(&mut self) -> bool {
        let silent: Vec<_> =
            self.slots().filter(|slot| self.places[slot.index()].standing == Standing::Away).collect();
        let lost = |slot: &&Slot| self.config.assume_lost.contains(&self.places[slot.index()].address);
        let choice = choose(&Known {
            infos: self
                .slots()
                .filter_map(|slot| Some((slot, self.places[slot.index()].info.as_deref()?)))
                .filter(|(slot, _)| self.places[slot.index()].standing == Standing::Waiting)
                .collect(),
            silent: silent.len(),
            assume_lost: &self.config.assume_lost,
            silent_lost: silent.iter().filter(lost).count(),
        });
        let everybody = match &choice {
            Choice::Go { members, record, .. } => members.len() == record.members.len(),
            Choice::Fresh { .. } | Choice::Wait(_) => silent.is_empty(),
        };
        match choice {
            _ if !everybody && self.now < self.began + self.config.start_grace => false,
            Choice::Wait(refusal) => {
                self.refusal = refusal.to_string();
                if self.now >= self.began + self.config.start_timeout || silent.is_empty() && stands(&refusal)
                {
                    let reason = format!("volume {} cannot start: {}", self.config.volume, self.message());
                    self.stop(StopReason::CannotStart(reason));
                }
                false
            }
            Choice::Fresh { members, generation } => {
                let Some(first) = members.iter().max_by_key(|slot| {
                    let layers = self.places[slot.index()].info.as_ref().map_or(0, |info| info.layers.len());
                    (layers, u8::MAX - slot.0)
                }) else {
                    return false;
                };
                // Empty replicas differ in nothing but the identity of their heads: one of them lends its own.
                self.fresh = true;
                self.open([first].into_iter().collect(), first, generation, Membership::default())
            }
            Choice::Go { members, reference, generation, record } => {
                self.open(members, reference, generation, record)
            }
        }
    }

    fn open(
        &mut self,
        members: SlotSet,
        reference: Slot,
        generation: Generation,
        record: Membership,
    ) -> bool {
        let Some(info) = self.places[reference.index()].info.clone() else { return false };
        if self.config.size != 0 && info.size != self.config.size {
            let reason = format!(
                "volume {} has {} bytes, not {}; start with its size and use `engine-ctl expand` to grow it",
                self.config.volume, info.size, self.config.size
            );
            self.stop(StopReason::CannotStart(reason));
            return false;
        }
        self.size = info.size;
        self.out.push(Effect::Resized { size: info.size });
        self.head = Some(info.head);
        self.highest = Generation(generation.0 - 1);
        self.record = record;
        self.sent.clear();
        self.phase = Phase::Opening;
        for slot in members.iter() {
            self.admit(slot);
        }
        self.start_move(members);
        true
    }

    /// Forgets everything that was learnt and begins the start anew.
    pub(super) fn gather_again(&mut self) {
        self.phase = Phase::Gathering;
        self.reconcile = None;
        self.began = self.now;
        self.moving = None;
        for slot in self.slots() {
            let link = self.place(slot).link.take();
            if let Some(link) = link {
                self.out.push(Effect::Disconnect { link });
            }
            let place = self.place(slot);
            place.turn(Turn::Lose);
            place.opened = false;
            place.boot = None;
            self.groups_without(slot);
            self.plan_redial(slot);
        }
        self.moving = None;
    }

    fn admit(&mut self, slot: Slot) {
        let place = self.place(slot);
        place.turn(Turn::Admit);
        place.boot = place.info.as_ref().map(|info| info.boot.clone());
        place.missed = Missed::Everything;
    }

    /// Every member has the record on disk. Those that were just opened are asked once more what they hold: until
    /// then, an older engine or connection could still have changed it.
    pub(super) fn recorded(&mut self) {
        if self.phase == Phase::Opening || self.reopening {
            self.ask(self.in_sync(), &Request::Control(Control::Info), Purpose::Opened);
        } else {
            self.send_unanswered();
        }
    }

    pub(super) fn opened(&mut self, replies: Replies) {
        if self.phase != Phase::Opening && !self.reopening {
            return;
        }
        let mut lost = false;
        for (slot, reply) in replies {
            match reply {
                Some(Reply::Info(info)) => self.place(slot).info = Some(info),
                Some(_) => {
                    lost = true;
                    self.fail(slot, "could not say what it holds");
                }
                None => lost = true,
            }
        }
        let members = self.in_sync();
        let Some(reference) = self.reference(members).filter(|_| !lost) else { return };
        let Some(info) = self.places[reference.index()].info.clone() else { return };
        let different = |slot: &Slot| {
            let other = self.places[slot.index()].info.as_deref();
            other.is_none_or(|other| shape(other) != shape(&info) || other.size != info.size)
        };
        let others: Vec<Slot> = members.iter().filter(different).collect();
        for slot in &others {
            self.fail(*slot, "its layers are not those of the others");
        }
        if others.is_empty() {
            self.begin_with(members, reference, &info);
        }
    }

    /// Who tells what the volume is: the longest story, and among equals one that has lost nothing.
    fn reference(&self, members: SlotSet) -> Option<Slot> {
        members.iter().max_by_key(|slot| {
            let info = self.places[slot.index()].info.as_deref();
            (info.map_or(0, |info| lineage(info).len()), self.kept_memory(*slot), u8::MAX - slot.0)
        })
    }

    fn begin_with(&mut self, members: SlotSet, reference: Slot, info: &ReplicaInfo) {
        self.head = Some(info.head);
        if self.size != info.size {
            self.size = info.size;
            self.out.push(Effect::Resized { size: info.size });
        }
        if self.reopening {
            self.reopening = false;
            self.intents.request_lost();
            self.marks_out = false;
            self.send_again();
            self.send_unanswered();
        } else {
            self.plan_reconcile(members, reference);
            self.phase = Phase::Reconciling;
            self.begin_reconcile();
        }
    }

    /// Parts that lost everybody they were sent to go out again.
    fn send_unanswered(&mut self) {
        for key in self.table.keys() {
            let Some(part) = self.table.part(key) else { continue };
            if part.stage == Stage::Out(None) && part.waiting.is_empty() {
                self.send_all(key);
            }
        }
    }

    /// A replica cannot be relied on any more.
    pub(super) fn fail(&mut self, slot: Slot, why: &str) {
        let standing = self.places[slot.index()].standing;
        let (generation, phase) = (self.record.generation, self.phase);
        let lacking =
            (standing == Standing::InSync || standing == Standing::Rebuilding).then(|| self.uncertain());
        if standing != Standing::Away {
            tracing::warn!(
                replica = self.places[slot.index()].address,
                why,
                standing = standing.name(),
                "replica lost"
            );
        }
        let link = self.place(slot).link.take();
        if let Some(link) = link {
            self.out.push(Effect::Disconnect { link });
        }
        let place = self.place(slot);
        place.turn(Turn::Lose);
        place.reason = why.to_string();
        place.opened = false;
        match (standing, &mut place.missed, lacking) {
            (Standing::InSync, missed, Some(_)) if phase != Phase::Serving => {
                *missed = Missed::Marked(generation);
                place.boot = None;
            }
            (Standing::InSync, missed, Some(lacking)) => *missed = Missed::Blocks(lacking, generation),
            (Standing::Rebuilding, Missed::Blocks(blocks, _), Some(lacking)) => *blocks |= lacking,
            _ => {}
        }
        self.plan_redial(slot);
        match standing {
            Standing::InSync => {
                self.metrics.replica_failures += 1;
                self.parts_without(slot);
                self.groups_without(slot);
                self.go_on_without(slot);
            }
            Standing::Rebuilding => {
                self.parts_without(slot);
                self.groups_without(slot);
                self.abort_resync(slot, why);
            }
            Standing::Waiting | Standing::Away => {
                self.groups_without(slot);
                self.abort_resync(slot, why);
            }
        }
    }

    fn go_on_without(&mut self, slot: Slot) {
        if matches!(self.phase, Phase::Opening | Phase::Reconciling) {
            let members = self.in_sync();
            let memory_left = self.kept_memory(slot) && !members.iter().any(|slot| self.kept_memory(slot));
            if members.is_empty() || memory_left || !self.may_record(members) {
                return self.gather_again();
            }
        }
        for newcomer in self.newcomers_without_ground().iter() {
            self.fail(newcomer, "the replicas that it joined left before all of them had recorded it");
        }
        let members = self.in_sync();
        self.reopening &= !members.is_empty();
        if !members.is_empty() {
            self.start_move(members);
        }
    }

    /// It still runs in the boot in which it was last in sync: no write that it acknowledged is lost.
    fn kept_memory(&self, slot: Slot) -> bool {
        self.places[slot.index()].info.as_deref().is_some_and(|info| {
            let same = |member: &Member| member.replica == info.replica && member.boot == info.boot;
            self.record.members.iter().any(same)
        })
    }

    /// What a replica that leaves now may lack: writes it may not have got, and those it may lose with its machine.
    fn uncertain(&self) -> RoaringTreemap {
        let mut blocks = self.unflushed.blocks();
        for (_, entry) in self.table.iter() {
            if let Entry::Part(part) = entry
                && part.begun
                && part.work.changes()
            {
                blocks.insert_range(part.range.blocks());
            }
        }
        blocks
    }

    /// What was not flushed may be gone from the one that tells the story now; whoever else has it has too much.
    fn writes_were_lost(&mut self) {
        self.lost_writes |= !self.unflushed.is_empty();
        for slot in self.standing(Standing::Rebuilding).iter() {
            self.fail(slot, "was filled from a replica that has lost writes since");
        }
        let lost = self.uncertain();
        for place in &mut self.places {
            if let Missed::Blocks(blocks, _) = &mut place.missed {
                *blocks |= &lost;
            }
        }
    }

    /// Nobody is left, and somebody of the last members is back: whoever kept its memory goes on at once.
    pub(super) fn readmit(&mut self) -> bool {
        // One that was about to be filled has nobody to be filled from, and may be the one to go on with.
        let adopting = self.resync.as_ref().map(|resync| resync.slot);
        if let Some(slot) = adopting.filter(|slot| self.standing(Standing::Waiting).contains(*slot)) {
            self.abort_resync(slot, "nobody is left to copy from");
        }
        let candidates: Vec<Slot> = self
            .slots()
            .filter(|slot| {
                let place = &self.places[slot.index()];
                // Only whoever was in sync with the others in this engine's life; a new start compares the rest.
                place.standing == Standing::Waiting
                    && place.boot.is_some()
                    && place.info.as_ref().is_some_and(|info| !info.rebuilding)
                    && self.record.members.iter().any(|member| Some(member.replica) == place.replica)
            })
            .collect();
        let intact = |slot: &Slot| {
            let place = &self.places[slot.index()];
            place.boot.is_some() && place.boot == place.info.as_ref().map(|info| info.boot.clone())
        };
        let unhurt: Vec<Slot> = candidates.iter().copied().filter(intact).collect();
        // One that has answered and is under rebuild has nothing to tell.
        let away = |member: &&Member| {
            let here =
                |place: &Place| place.replica == Some(member.replica) && place.standing != Standing::Away;
            !self.places.iter().any(here)
        };
        let others_may_come =
            self.record.members.iter().any(|member| away(&member)) && !self.unflushed.is_empty();
        let chosen = if !unhurt.is_empty() {
            unhurt
        } else if let Some(first) = candidates.first()
            && !others_may_come
        {
            // Restarted machines may each have lost other writes, so only one of them may tell the story.
            let first = *first;
            self.writes_were_lost();
            vec![first]
        } else {
            return false;
        };
        let members: SlotSet = chosen.into_iter().collect();
        for slot in members.iter() {
            self.admit(slot);
        }
        self.reopening = true;
        self.start_move(members);
        true
    }
}

/// Waiting longer cannot change it: everybody has answered.
const fn stands(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::OnlyRebuilding | Refusal::FreshButIncomplete(_))
}
