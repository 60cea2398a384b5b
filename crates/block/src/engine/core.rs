//! The engine's state and its one entrance: [`Engine::apply`]. Each event is handled to its end; then the checks in
//! `Engine::follow_up` run in a fixed order until nothing more follows.

use std::collections::VecDeque;

use crate::engine::event::{Effect, Event, GuestId, GuestOp, Link, StopReason};
use crate::engine::groups::Barrier;
use crate::engine::intents::Intents;
use crate::engine::locks::Locks;
use crate::engine::metrics::Metrics;
use crate::engine::place::{Place, Standing};
use crate::engine::qos::Bucket;
use crate::engine::reconcile::Reconcile;
use crate::engine::record::Move;
use crate::engine::resync::Resync;
use crate::engine::slots::{Slot, SlotSet};
use crate::engine::table::{Entry, Table};
use crate::engine::unflushed::Unflushed;
use crate::ids::{EngineId, Generation, LayerId};
use crate::wire::message::Membership;

#[derive(Clone, Debug)]
pub struct Config {
    pub volume: String,
    pub size: u64,
    pub engine: EngineId,
    pub replicas: Vec<String>,
    /// Writes are acknowledged only while this many replicas are in sync.
    pub min_in_sync: u32,
    /// Addresses or identities of replicas that are gone for good and need not be asked.
    pub assume_lost: Vec<String>,
    /// How long to wait for silent replicas that are not needed before starting without them.
    pub start_grace: u64,
    /// How long to try before giving up the start.
    pub start_timeout: u64,
    /// A replica that says nothing for so long while it is asked something has failed.
    pub replica_timeout: u64,
    /// A request that is not answered for so long, although the replica is alive, will never be.
    pub request_timeout: u64,
    /// How long guests wait when there are too few replicas, before they get errors.
    pub stall_timeout: u64,
    pub rebuild_parallel: usize,
    pub rebuild_rate: u64,
    pub iops: u64,
    pub bandwidth: u64,
}

impl Config {
    pub fn new(volume: &str, size: u64, engine: EngineId, replicas: Vec<String>) -> Self {
        Self {
            volume: volume.to_string(),
            size,
            engine,
            replicas,
            min_in_sync: 1,
            assume_lost: Vec::new(),
            start_grace: 3_000_000,
            start_timeout: 30_000_000,
            replica_timeout: 8_000_000,
            request_timeout: 60_000_000,
            stall_timeout: 30_000_000,
            rebuild_parallel: 8,
            rebuild_rate: 0,
            iops: 0,
            bandwidth: 0,
        }
    }
}

/// ```text
///   Gathering ──chosen──▶ Opening ──recorded──▶ Reconciling ──equal──▶ Serving ──close──▶ Stopped
///        └───────────────────────── refused / fenced ─────────────────────────────────────▶┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Gathering,
    Opening,
    Reconciling,
    Serving,
    Stopped,
}

#[derive(Debug)]
pub enum Todo {
    /// All answers of a group are in.
    Group(usize),
    /// A part has its range.
    Ranged(usize),
    /// All answers of a part are in.
    Answered(usize),
}

#[derive(Debug)]
pub struct Engine {
    pub(super) config: Config,
    pub(super) now: u64,
    pub(super) began: u64,
    pub(super) out: Vec<Effect>,
    pub(super) phase: Phase,
    pub(super) places: Vec<Place>,
    pub(super) links: u64,
    pub(super) size: u64,
    pub(super) head: Option<LayerId>,
    pub(super) layer_counter: u64,
    /// The record that every member has on disk.
    pub(super) record: Membership,
    /// Records that some of the members may have got since then.
    pub(super) sent: Vec<Membership>,
    /// What the members were told last carries on from what was before.
    pub(super) grounded: bool,
    /// The newest generation anybody was ever asked to record.
    pub(super) highest: Generation,
    pub(super) moving: Option<Move>,
    /// The last members are back and not yet told so: nothing else may be sent to them before.
    pub(super) reopening: bool,
    pub(super) table: Table,
    pub(super) locks: Locks,
    pub(super) ready: Vec<usize>,
    pub(super) todo: VecDeque<Todo>,
    pub(super) backlog: VecDeque<usize>,
    pub(super) awaiting_marks: Vec<usize>,
    pub(super) held: Vec<usize>,
    /// Parts that change something and are beyond the gate.
    pub(super) changing: usize,
    pub(super) intents: Intents,
    pub(super) marks_out: bool,
    pub(super) unflushed: Unflushed,
    /// When the last flush that ended well was sent.
    pub(super) flushed_at: u64,
    /// Acknowledged writes that were not flushed went down with a machine; the next flush must say so.
    pub(super) lost_writes: bool,
    pub(super) barrier: Option<Barrier>,
    pub(super) queued_barriers: VecDeque<Barrier>,
    pub(super) reconcile: Option<Reconcile>,
    pub(super) resync: Option<Resync>,
    pub(super) resync_not_before: u64,
    pub(super) purging: bool,
    pub(super) purge_poll_at: u64,
    pub(super) purge_asked: bool,
    pub(super) throttled: VecDeque<(GuestId, GuestOp)>,
    pub(super) iops: Bucket,
    pub(super) bandwidth: Bucket,
    pub(super) rebuild_bucket: Bucket,
    pub(super) stalled_since: Option<u64>,
    pub(super) stall_expired: bool,
    pub(super) marks_checked_at: u64,
    pub(super) requests_checked_at: u64,
    pub(super) closing: Option<u64>,
    pub(super) metrics: Metrics,
    pub(super) refusal: String,
    pub(super) preferred: Option<Slot>,
    /// A new volume tells that it is ready when all its replicas are.
    pub(super) fresh: bool,
    pub(super) announced: bool,
    pub(super) commands: std::collections::BTreeSet<u64>,
}

impl Engine {
    pub fn new(config: Config, now: u64) -> Self {
        let places = config.replicas.iter().cloned().map(Place::new).collect();
        let (mut iops, mut bandwidth, mut rebuild_bucket) =
            (Bucket::default(), Bucket::default(), Bucket::default());
        iops.set_rate(config.iops, now);
        bandwidth.set_rate(config.bandwidth, now);
        rebuild_bucket.set_rate(config.rebuild_rate, now);
        Self {
            size: config.size,
            config,
            now,
            began: now,
            out: Vec::new(),
            phase: Phase::Gathering,
            places,
            links: 0,
            head: None,
            layer_counter: 0,
            record: Membership::default(),
            sent: Vec::new(),
            grounded: false,
            highest: Generation(0),
            moving: None,
            reopening: false,
            table: Table::default(),
            locks: Locks::default(),
            ready: Vec::new(),
            todo: VecDeque::new(),
            backlog: VecDeque::new(),
            awaiting_marks: Vec::new(),
            held: Vec::new(),
            changing: 0,
            intents: Intents::default(),
            marks_out: false,
            unflushed: Unflushed::default(),
            flushed_at: 0,
            lost_writes: false,
            barrier: None,
            queued_barriers: VecDeque::new(),
            reconcile: None,
            resync: None,
            resync_not_before: 0,
            purging: false,
            purge_poll_at: 0,
            purge_asked: false,
            throttled: VecDeque::new(),
            iops,
            bandwidth,
            rebuild_bucket,
            stalled_since: None,
            stall_expired: false,
            marks_checked_at: now,
            requests_checked_at: now,
            closing: None,
            metrics: Metrics::default(),
            refusal: String::new(),
            preferred: None,
            fresh: false,
            announced: false,
            commands: std::collections::BTreeSet::new(),
        }
    }

    /// Begins: asks for the first connections.
    pub fn start(&mut self, out: &mut Vec<Effect>) {
        std::mem::swap(&mut self.out, out);
        for slot in self.slots() {
            self.dial(slot);
        }
        std::mem::swap(&mut self.out, out);
    }

    /// Takes one event and appends what follows from it. `now` is in microseconds and never goes back.
    pub fn apply(&mut self, now: u64, event: Event, out: &mut Vec<Effect>) {
        self.now = now.max(self.now);
        std::mem::swap(&mut self.out, out);
        if self.phase != Phase::Stopped {
            self.take(event);
            self.pump();
        } else {
            self.refuse_after_stop(&event);
        }
        std::mem::swap(&mut self.out, out);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Guest { id, op } => self.guest(id, op),
            Event::Reply { link, id, reply } => {
                if self.place(link.slot).link == Some(link) {
                    let now = self.now;
                    let place = self.place(link.slot);
                    place.last_heard = now;
                    self.reply(link.slot, id, reply);
                }
            }
            Event::Connected { link, info } => self.connected(link, info),
            Event::Lost { link, reason } => {
                if self.place(link.slot).link == Some(link) {
                    self.place(link.slot).link = None;
                    self.fail(link.slot, &reason);
                }
            }
            Event::Command { id, command } => self.command(id, command),
            Event::Tick => self.tick(),
        }
    }

    fn pump(&mut self) {
        loop {
            while let Some(todo) = self.todo.pop_front() {
                match todo {
                    Todo::Group(key) => self.group_answered(key),
                    Todo::Ranged(key) => self.ranged(key),
                    Todo::Answered(key) => self.part_answered(key),
                }
                if self.phase == Phase::Stopped {
                    return;
                }
            }
            if !self.follow_up() {
                return;
            }
        }
    }

    /// What may have become possible; true when something was done. Cheap when there is nothing.
    fn follow_up(&mut self) -> bool {
        match self.phase {
            Phase::Stopped => return false,
            Phase::Gathering => return self.try_start(),
            Phase::Opening | Phase::Reconciling | Phase::Serving => {}
        }
        if self.phase == Phase::Serving && self.in_sync().is_empty() && self.readmit() {
            return true;
        }
        if self.release_held() || self.pass_backlog() || self.request_marks() || self.run_barrier() {
            return true;
        }
        if self.reconcile.is_some() && self.advance_reconcile() {
            return true;
        }
        self.advance_resync() || self.announce()
    }

    /// Says once that the volume serves; a new one when all its replicas do.
    fn announce(&mut self) -> bool {
        if self.announced || self.phase != Phase::Serving || !self.may_acknowledge() {
            return false;
        }
        let waiting = self.standing(Standing::Waiting).union(self.standing(Standing::Rebuilding));
        if self.fresh && !waiting.is_empty() {
            return false;
        }
        self.announced = true;
        self.out.push(Effect::Ready);
        true
    }

    fn reply(&mut self, slot: Slot, wire: u64, reply: crate::wire::message::Reply) {
        let key = Table::key_of(wire);
        match self.table.get_mut(key) {
            Some(Entry::Part(part)) if part.wire == wire => self.part_reply(key, slot, reply),
            Some(Entry::Group(group)) if group.wire == wire => self.group_reply(key, slot, reply),
            _ => {}
        }
    }

    pub(super) fn stop(&mut self, reason: StopReason) {
        if self.phase == Phase::Stopped {
            return;
        }
        self.phase = Phase::Stopped;
        for slot in self.slots() {
            if let Some(link) = self.place(slot).link.take() {
                self.out.push(Effect::Disconnect { link });
            }
        }
        self.answer_everybody(&reason);
        self.out.push(Effect::Stopped { reason });
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.places.len()).map(|at| Slot(at as u8))
    }

    pub(super) fn place(&mut self, slot: Slot) -> &mut Place {
        &mut self.places[slot.index()]
    }

    pub(super) fn standing(&self, standing: Standing) -> SlotSet {
        self.slots().filter(|slot| self.places[slot.index()].standing == standing).collect()
    }

    pub(super) fn in_sync(&self) -> SlotSet {
        self.standing(Standing::InSync)
    }

    /// Who gets every write.
    pub(super) fn writers(&self) -> SlotSet {
        self.in_sync().union(self.standing(Standing::Rebuilding))
    }

    pub(super) fn dial(&mut self, slot: Slot) {
        self.links += 1;
        let link = Link { slot, number: self.links };
        let now = self.now;
        let place = self.place(slot);
        place.link = Some(link);
        place.redial_at = None;
        place.last_heard = now;
        let address = place.address.clone();
        self.out.push(Effect::Dial { link, address });
    }

    /// An identity for a new layer; the same whoever computes it, different every time.
    pub(super) fn new_layer(&mut self) -> LayerId {
        self.layer_counter += 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.config.engine.0.as_bytes());
        hasher.update(&self.highest.0.to_le_bytes());
        hasher.update(&self.layer_counter.to_le_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        LayerId(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// What it waits for, for whoever looks into a story that went wrong.
    #[cfg(test)]
    pub fn summary(&self) -> String {
        let parts: Vec<_> = self
            .table
            .iter()
            .filter_map(|(key, entry)| match entry {
                Entry::Part(part) => {
                    Some(format!("{key}: {:?} {:?} {:?}", part.stage, part.range, part.waiting))
                }
                Entry::Group(group) => Some(format!("{key}: {:?} {:?}", group.purpose, group.waiting)),
                Entry::Job(_) | Entry::Copying(_) => None,
            })
            .collect();
        let standings: Vec<_> = self.places.iter().map(|place| (place.standing, &place.reason)).collect();
        format!(
            "{:?} moving {:?} reopening {} barrier {:?} changing {} held {:?} marks {:?} out {} backlog {:?} \
             standings {standings:?} resync {:?}\n{}",
            self.phase,
            self.moving,
            self.reopening,
            self.barrier,
            self.changing,
            self.held,
            self.awaiting_marks,
            self.marks_out,
            self.backlog,
            self.resync,
            parts.join("\n")
        )
    }

    /// Those in sync whom the record names; a newcomer counts when all have recorded it.
    #[cfg(test)]
    pub fn recorded_slots(&self) -> Vec<usize> {
        let named = |slot: &Slot| self.places[slot.index()].replica.is_some_and(|id| self.is_named(id));
        self.in_sync().iter().filter(named).map(Slot::index).collect()
    }

    /// Writes that nobody waits for any more may still be on their way.
    #[cfg(test)]
    pub fn is_still(&self) -> bool {
        self.changing == 0
    }

    /// Which of the configured replicas have every acknowledged write.
    pub fn in_sync_slots(&self) -> Vec<usize> {
        self.in_sync().iter().map(Slot::index).collect()
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }
}
