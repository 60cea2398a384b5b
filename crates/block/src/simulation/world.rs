//! The world: replicas with disks, engines, a network that delays, reorders, repeats and loses, and a clock that only
//! moves when something happens.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use super::guest::Guest;
use super::random::Random;
use crate::disk::simulated::{Operation, Simulated};
use crate::engine::event::StopReason;
use crate::engine::{Command, CommandError, CommandReply, Config, Effect, Engine, Event, GuestOp, Link};
use crate::geometry::BLOCK;
use crate::ids::{EngineId, LayerId, ReplicaId};
use crate::replica::service::{Service, Session, Task};
use crate::store::{CreateOptions, Limits, OpenOptions, Store};
use crate::wire::message::{Control, Reply, Request};

/// Which engine and which of its connections.
type Wire = (usize, Link);

const STRAY: u64 = u64::MAX;

enum Happening {
    Dial(Wire),
    ToReplica(Wire, u64, Request),
    ToEngine(usize, Event),
    /// The replica notices that the connection is gone.
    Hangup(Wire),
    Tick(usize),
}

pub struct SimReplica {
    pub disk: Simulated,
    service: Option<Arc<Service>>,
    sessions: BTreeMap<(usize, u64), Session>,
    tasks: Arc<Mutex<Vec<Task>>>,
    pub cut_off: bool,
}

pub struct World {
    pub random: Random,
    pub now: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    sequence: u64,
    pub replicas: Vec<SimReplica>,
    pub engines: Vec<Option<Engine>>,
    pub guest: Guest,
    /// The engine the guest talks to.
    pub current: usize,
    pub ready: BTreeSet<usize>,
    pub stopped: BTreeMap<usize, StopReason>,
    broken: BTreeSet<(usize, u64)>,
    pub commands: BTreeMap<u64, Option<Result<CommandReply, CommandError>>>,
    next_command: u64,
    /// Who has every acknowledged write, in memory or on disk.
    intact: BTreeSet<usize>,
    hurt: BTreeSet<usize>,
    pub trouble: bool,
    pub min_in_sync: u32,
    trace: bool,
}

impl World {
    pub fn new(seed: u64, replicas: usize, blocks: u64) -> Self {
        let mut random = Random::new(seed);
        let replicas = (0..replicas).map(|_| SimReplica::new(&mut random, blocks * BLOCK)).collect();
        Self {
            random,
            now: 0,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            sequence: 0,
            replicas,
            engines: Vec::new(),
            guest: Guest::new(blocks),
            current: 0,
            ready: BTreeSet::new(),
            stopped: BTreeMap::new(),
            broken: BTreeSet::new(),
            commands: BTreeMap::new(),
            next_command: 0,
            intact: BTreeSet::new(),
            hurt: BTreeSet::new(),
            trouble: true,
            min_in_sync: 1,
            trace: std::env::var_os("GRANARY_SIM_TRACE").is_some(),
        }
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>12} {}", self.now, what());
        }
    }

    fn schedule(&mut self, delay: u64, what: Happening) {
        self.sequence += 1;
        self.happenings.insert(self.sequence, what);
        self.queue.push(Reverse((self.now + delay, self.sequence)));
    }

    fn latency(&mut self) -> u64 {
        match self.random.below(100) {
            0 if self.trouble => 20_000 + self.random.below(200_000),
            1..=10 => 500 + self.random.below(5_000),
            _ => 10 + self.random.below(300),
        }
    }

    pub fn start_engine(&mut self) {
        let number = self.engines.len();
        let id = EngineId(Uuid::from_u128(u128::from(self.random.next())));
        let addresses = (0..self.replicas.len()).map(|at| format!("r{at}")).collect();
        let mut config = Config::new("vol", 0, id, addresses);
        config.min_in_sync = self.min_in_sync;
        config.start_timeout = u64::MAX / 4;
        config.stall_timeout = 20_000_000;
        config.request_timeout = 15_000_000;
        config.rebuild_parallel = 3;
        let mut engine = Engine::new(config, self.now);
        let mut effects = Vec::new();
        engine.start(&mut effects);
        self.engines.push(Some(engine));
        self.current = number;
        self.say(|| format!("engine {number} starts"));
        self.carry_out(number, effects);
        self.schedule(1_000, Happening::Tick(number));
    }

    /// kill -9 of the engine: what it sent may still arrive.
    pub fn crash_engine(&mut self) {
        let number = self.current;
        if self.engines[number].take().is_none() {
            return;
        }
        self.say(|| format!("engine {number} crashes"));
        self.guest.abandoned();
        self.commands.clear();
        let wires: Vec<_> = self
            .replicas
            .iter()
            .flat_map(|replica| replica.sessions.keys().copied().filter(|(engine, _)| *engine == number))
            .collect();
        for (engine, link) in wires {
            let delay = self.random.below(300_000);
            let slot = self.slot_of(engine, link);
            let wire = (engine, Link { slot: crate::engine::Slot(slot as u8), number: link });
            self.schedule(delay, Happening::Hangup(wire));
        }
    }

    fn slot_of(&self, engine: usize, link: u64) -> usize {
        self.replicas.iter().position(|replica| replica.sessions.contains_key(&(engine, link))).unwrap_or(0)
    }

    /// kill -9 of a replica process; with `power`, its machine forgets what was not synced.
    pub fn crash_replica(&mut self, at: usize, power: bool) {
        self.say(|| format!("replica {at} crashes, power {power}"));
        self.replicas[at].stop();
        if power {
            let seed = self.random.next();
            self.replicas[at].disk.crash(seed);
            self.lost_unflushed(at);
        }
        self.tell_lost(at);
    }

    /// What was not flushed may be gone from this replica, and from all of them when it was the last that had it.
    fn lost_unflushed(&mut self, at: usize) {
        self.say(|| format!("replica {at} may have lost what was not flushed"));
        self.intact.remove(&at);
        self.hurt.insert(at);
        if self.intact.is_empty() {
            // What any of them has is the truth from now on.
            self.guest.unflushed_may_be_lost();
            self.hurt.clear();
        }
    }

    /// The engines hear, sooner or later, that their connections to a replica are gone.
    fn tell_lost(&mut self, at: usize) {
        let keys: Vec<_> = self.replicas[at].sessions.keys().copied().collect();
        self.replicas[at].sessions.clear();
        for (engine, number) in keys {
            let delay = self.random.below(5_000);
            let link = Link { slot: crate::engine::Slot(at as u8), number };
            let event = Event::Lost { link, reason: "reset".into() };
            self.schedule(delay, Happening::ToEngine(engine, event));
        }
    }

    /// Nobody fills its disk any more, and it fails no more.
    pub fn mend_disk(&mut self, at: usize) {
        self.replicas[at].disk.clear_faults();
        self.replicas[at].disk.make_room();
    }

    /// Of the next few writes some will not fit, until there is room again.
    pub fn fill_disk(&mut self, at: usize) {
        let left = self.random.below(12) * BLOCK;
        self.say(|| format!("replica {at}: {left} bytes are free"));
        self.replicas[at].disk.fill_up(left);
    }

    pub fn lost_writes(&self, at: usize) -> bool {
        self.replicas[at].service.as_ref().is_some_and(|service| service.store().lost_writes())
    }

    pub fn is_up(&self, at: usize) -> bool {
        self.replicas[at].service.is_some()
    }

    pub fn start_replica(&mut self, at: usize) {
        if self.is_up(at) {
            return;
        }
        self.say(|| format!("replica {at} starts"));
        self.replicas[at].disk.clear_faults();
        self.replicas[at].start();
    }

    /// One connection breaks; both ends notice in their own time, and what is under way is lost.
    pub fn break_connection(&mut self, at: usize) {
        let Some(&(engine, number)) = self.replicas[at].sessions.keys().next_back() else { return };
        self.say(|| format!("connection {number} to replica {at} breaks"));
        self.broken.insert((engine, number));
        let link = Link { slot: crate::engine::Slot(at as u8), number };
        let (here, there) = (self.random.below(100_000), self.random.below(100_000));
        self.schedule(here, Happening::ToEngine(engine, Event::Lost { link, reason: "broken".into() }));
        self.schedule(there, Happening::Hangup((engine, link)));
    }

    pub fn disk_trouble(&mut self, at: usize) {
        let kinds = [Operation::Write, Operation::Sync, Operation::Punch, Operation::Names, Operation::Room];
        let kind = kinds[self.random.below(kinds.len() as u64) as usize];
        let after = self.random.below(20);
        self.say(|| format!("replica {at}: {kind:?} will fail"));
        self.replicas[at].disk.fail(kind, after);
    }

    pub fn submit(&mut self, (id, op): (u64, GuestOp)) {
        self.apply(self.current, Event::Guest { id, op });
    }

    /// A write through an engine that the guest left; it must never be acknowledged.
    pub fn write_through(&mut self, engine: usize) {
        let data = bytes::Bytes::from(vec![0xee; BLOCK as usize]);
        self.apply(
            engine,
            Event::Guest { id: STRAY, op: GuestOp::Write { offset: 0, data, durable: false } },
        );
    }

    pub fn command(&mut self, command: Command) -> u64 {
        self.next_command += 1;
        let id = self.next_command;
        self.commands.insert(id, None);
        self.say(|| format!("command {id}: {command:?}"));
        self.apply(self.current, Event::Command { id, command });
        id
    }

    fn apply(&mut self, number: usize, event: Event) {
        let Some(Some(engine)) = self.engines.get_mut(number) else { return };
        let mut effects = Vec::new();
        let told = self.trace.then(|| format!("{event:?}").chars().take(110).collect::<String>());
        engine.apply(self.now, event, &mut effects);
        if let Some(told) = told.filter(|told| !told.starts_with("Tick") && !told.starts_with("Reply")) {
            self.say(|| format!("engine {number} ← {told}"));
        }
        self.carry_out(number, effects);
        self.look_who_is_intact();
    }

    fn look_who_is_intact(&mut self) {
        let Some(Some(engine)) = self.engines.get(self.current) else { return };
        let members: BTreeSet<usize> = engine.recorded_slots().into_iter().collect();
        if members.is_empty() {
            return;
        }
        if self.ready.contains(&self.current) {
            self.intact = members.difference(&self.hurt).copied().collect();
        } else {
            // One that is still starting goes on without those who cannot record it, a full disk for one: whatever
            // they hold is not asked for any more.
            self.intact.retain(|replica| members.contains(replica));
        }
    }

    fn carry_out(&mut self, number: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Answer { id, result } => {
                    if self.trace {
                        let text: String = format!("{result:?}").chars().take(40).collect();
                        self.say(|| format!("engine {number} answers {id}: {text}"));
                    }
                    assert!(id != STRAY || result.is_err(), "an engine that was fenced acknowledged a write");
                    if number == self.current {
                        self.guest.answered(id, result);
                    }
                }
                Effect::Send { link, id, request } => {
                    let delay = self.latency();
                    self.schedule(delay, Happening::ToReplica((number, link), id, request));
                }
                Effect::Disconnect { link } => {
                    let delay = self.latency();
                    self.schedule(delay, Happening::Hangup((number, link)));
                }
                Effect::Dial { link, .. } => {
                    let delay = self.latency();
                    self.schedule(delay, Happening::Dial((number, link)));
                }
                Effect::CommandDone { id, result } => {
                    self.say(|| format!("command {id} ends: {result:?}"));
                    self.commands.insert(id, Some(result));
                }
                Effect::Ready => {
                    self.say(|| format!("engine {number} is ready"));
                    self.ready.insert(number);
                }
                Effect::Resized { .. } => {}
                Effect::Stopped { reason } => {
                    self.say(|| format!("engine {number} stops: {reason}"));
                    self.stopped.insert(number, reason);
                }
            }
        }
    }

    /// Lets the next thing happen. False: nothing is left to happen.
    pub fn step(&mut self) -> bool {
        let Some(Reverse((at, sequence))) = self.queue.pop() else { return false };
        self.now = self.now.max(at);
        let Some(happening) = self.happenings.remove(&sequence) else { return true };
        match happening {
            Happening::Dial(wire) => self.dial(wire),
            Happening::ToReplica(wire, id, request) => self.arrives_at_replica(wire, id, request),
            Happening::ToEngine(number, event) => self.arrives_at_engine(number, event),
            Happening::Hangup((engine, link)) => {
                let replica = &mut self.replicas[link.slot.index()];
                if let Some(session) = replica.sessions.remove(&(engine, link.number))
                    && let Some(service) = &replica.service
                {
                    service.end(&session);
                }
            }
            Happening::Tick(number) => {
                self.apply(number, Event::Tick);
                if let Some(Some(engine)) = self.engines.get(number) {
                    let due = engine.next_tick().saturating_sub(self.now).max(1_000);
                    self.schedule(due, Happening::Tick(number));
                }
            }
        }
        self.run_tasks();
        true
    }

    fn run_tasks(&mut self) {
        for at in 0..self.replicas.len() {
            let replica = &self.replicas[at];
            let tasks = std::mem::take(&mut *replica.tasks.lock());
            let Some(service) = replica.service.clone() else { continue };
            let before = service.store().lost_writes();
            for task in tasks {
                task();
            }
            if service.store().lost_writes() && !before {
                self.lost_unflushed(at);
            }
        }
    }

    fn dial(&mut self, (engine, link): Wire) {
        let at = link.slot.index();
        let lost = |reason: &str| Event::Lost { link, reason: reason.to_string() };
        if self.replicas[at].cut_off {
            return self.schedule(3_000_000, Happening::ToEngine(engine, lost("no route")));
        }
        let delay = self.latency();
        let Some(service) = self.replicas[at].service.clone() else {
            return self.schedule(delay, Happening::ToEngine(engine, lost("refused")));
        };
        let session = service.begin("vol");
        let event = match service.handle(&session, Request::Control(Control::Info)) {
            Reply::Info(info) => {
                self.replicas[at].sessions.insert((engine, link.number), session);
                Event::Connected { link, info }
            }
            other => lost(&format!("{other:?}")),
        };
        self.schedule(delay, Happening::ToEngine(engine, event));
    }

    fn arrives_at_replica(&mut self, (engine, link): Wire, id: u64, request: Request) {
        let at = link.slot.index();
        let replica = &self.replicas[at];
        if replica.cut_off || self.broken.contains(&(engine, link.number)) {
            return;
        }
        let (Some(service), Some(session)) = (&replica.service, replica.sessions.get(&(engine, link.number)))
        else {
            return;
        };
        let name = if self.trace { format!("{request:?}").chars().take(90).collect() } else { String::new() };
        let before = service.store().lost_writes();
        let adopts = matches!(request, Request::Control(Control::Adopt { .. }));
        let reply = service.handle(session, request);
        let lost = service.store().lost_writes() && !before;
        let dull = matches!(reply, Reply::Done | Reply::Data(_) | Reply::Info(_));
        if self.trace && (!dull || name.starts_with("Control")) {
            let text: String = format!("{reply:?}").chars().take(160).collect();
            self.say(|| format!("engine {engine} → replica {at}: {name} → {text}"));
        }
        if adopts && reply == Reply::Done {
            // Before it is a member again it will have been filled.
            self.hurt.remove(&at);
        }
        if lost {
            self.lost_unflushed(at);
        }
        let twice = self.trouble && self.random.chance(1);
        let delay = self.latency();
        if twice {
            let again = delay + self.latency();
            let event = Event::Reply { link, id, reply: reply.clone() };
            self.schedule(again, Happening::ToEngine(engine, event));
        }
        self.schedule(delay, Happening::ToEngine(engine, Event::Reply { link, id, reply }));
    }

    fn arrives_at_engine(&mut self, engine: usize, event: Event) {
        let silent = match &event {
            Event::Reply { link, .. } | Event::Connected { link, .. } => {
                self.replicas[link.slot.index()].cut_off || self.broken.contains(&(engine, link.number))
            }
            _ => false,
        };
        if let Event::Lost { link, .. } = &event {
            self.broken.insert((engine, link.number));
        }
        match event {
            // Whoever dials gives up after a while.
            Event::Connected { link, .. } if silent => {
                let event = Event::Lost { link, reason: "no answer".into() };
                self.schedule(3_000_000, Happening::ToEngine(engine, event));
            }
            _ if silent => {}
            event => self.apply(engine, event),
        }
    }

    /// The live engine, if it is one that still serves.
    pub fn engine(&self) -> Option<&Engine> {
        let number = self.current;
        if self.stopped.contains_key(&number) {
            return None;
        }
        self.engines.get(number)?.as_ref()
    }

    pub fn run_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let deadline = self.now + 600_000_000;
        while !done(self) {
            if self.now >= deadline {
                let state = self.engine().map(Engine::summary).unwrap_or_default();
                panic!("{what}: did not happen in ten minutes of the simulated clock; {state}");
            }
            assert!(self.step(), "{what}: nothing is left to happen");
        }
    }

    pub fn everybody_in_sync(&self) -> bool {
        self.ready.contains(&self.current)
            && self.engine().is_some_and(|engine| engine.in_sync_slots().len() == self.replicas.len())
    }

    /// The content of each replica as of a snapshot, or now.
    pub fn checksums(&self, snapshot: Option<&str>) -> Vec<String> {
        let sum = |replica: &SimReplica| {
            let service = replica.service.as_ref().expect("every replica is up at the end");
            service.store().checksum(snapshot).expect("the checksum of a healthy replica")
        };
        self.replicas.iter().map(sum).collect()
    }
}

impl SimReplica {
    fn new(random: &mut Random, size: u64) -> Self {
        let disk = Simulated::new();
        let id = || Uuid::from_u128(u128::from(random.next()));
        let (replica, head) = {
            let mut id = id;
            (ReplicaId(id()), LayerId(id()))
        };
        let limits = Limits { layers: 40, reserve: 0 };
        let options = CreateOptions { size, replica, head, backing: None, limits };
        drop(Store::create(Arc::new(disk.clone()), options).expect("a new replica"));
        let mut new =
            Self { disk, service: None, sessions: BTreeMap::new(), tasks: Arc::default(), cut_off: false };
        new.start();
        new
    }

    fn start(&mut self) {
        let options = OpenOptions { limits: Limits { layers: 40, reserve: 0 } };
        let store =
            Store::open(Arc::new(self.disk.clone()), options).expect("a replica opens after any crash");
        let tasks = self.tasks.clone();
        self.service =
            Some(Arc::new(Service::new(Arc::new(store), Box::new(move |task| tasks.lock().push(task)))));
    }

    fn stop(&mut self) {
        self.tasks.lock().clear();
        self.service = None;
    }
}
