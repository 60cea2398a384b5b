//! The transition function in a small world: instance managers, processes and an engine with its own mind, under
//! nodes that die and users who change theirs. What must never happen is asserted at every step, and when the
//! trouble ends the volume must come to rest as it is wanted.

use std::collections::{BTreeMap, BTreeSet};

use granary_api::longhorn::{Robustness, VolumeState};
use proptest::prelude::*;

use super::decision::{Action, Decision};
use super::seen::{Engine, Mode, Policy, Replica, Run, Seen};
use super::state::step;

const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

/// What can happen to a volume.
#[derive(Clone, Debug)]
enum Event {
    Attach(usize),
    Detach,
    NodeDies(usize),
    NodeReturns(usize),
    ReplicaDies(usize),
    EngineDies,
    Grow,
    Replicas(usize),
    Evict(usize),
    Wait(i64),
    Steps(usize),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..4usize).prop_map(Event::Attach),
        1 => Just(Event::Detach),
        1 => (0..4usize).prop_map(Event::NodeDies),
        2 => (0..4usize).prop_map(Event::NodeReturns),
        2 => (0..4usize).prop_map(Event::ReplicaDies),
        1 => Just(Event::EngineDies),
        1 => Just(Event::Grow),
        1 => (1..4usize).prop_map(Event::Replicas),
        1 => (0..4usize).prop_map(Event::Evict),
        2 => prop::sample::select(vec![1, 15, 70, 700]).prop_map(Event::Wait),
        5 => (1..8usize).prop_map(Event::Steps),
    ]
}

struct World {
    seen: Seen,
    /// Writes that were acknowledged, and how many of them each replica has.
    written: u64,
    has: BTreeMap<String, u64>,
    made: usize,
    is_gone: bool,
}

impl World {
    fn new() -> Self {
        let policy = Policy { replenishment_wait: 600, stale_after: 172_800, auto_salvage: true };
        let seen = Seen {
            now: 1_000_000,
            last: VolumeState::Creating,
            wanted_node: None,
            size: 1 << 30,
            wanted_replicas: 3,
            is_deleted: false,
            degraded_since: None,
            engine: None,
            replicas: Vec::new(),
            reachable: NODES.iter().map(ToString::to_string).collect(),
            policy,
        };
        Self { seen, written: 0, has: BTreeMap::new(), made: 0, is_gone: false }
    }

    fn happen(&mut self, event: &Event) {
        let seen = &mut self.seen;
        match event {
            Event::Attach(node) => seen.wanted_node = Some(NODES[*node].to_owned()),
            Event::Detach => seen.wanted_node = None,
            Event::NodeDies(node) => self.node_dies(NODES[*node]),
            Event::NodeReturns(node) => self.node_returns(NODES[*node]),
            Event::ReplicaDies(index) => {
                let now = seen.now;
                if let Some(replica) = seen.replicas.get_mut(*index)
                    && replica.run == Run::Running
                {
                    replica.run = Run::Failed { why: "killed".into(), at: now };
                }
            }
            Event::EngineDies => {
                let now = seen.now;
                if let Some(engine) = &mut seen.engine
                    && engine.run == Run::Running
                {
                    engine.run = Run::Failed { why: "killed".into(), at: now };
                }
            }
            Event::Grow => seen.size += 1 << 30,
            Event::Replicas(count) => seen.wanted_replicas = *count,
            Event::Evict(index) => {
                if let Some(replica) = seen.replicas.get_mut(*index) {
                    replica.is_evicted = true;
                }
            }
            Event::Wait(seconds) => seen.now += seconds,
            Event::Steps(count) => (0..*count).for_each(|_| self.turn()),
        }
    }

    fn node_dies(&mut self, node: &str) {
        self.seen.reachable.remove(node);
        for replica in self.seen.replicas.iter_mut().filter(|replica| replica.node == node) {
            (replica.run, replica.address) = (Run::Unknown, None);
        }
        if let Some(engine) = self.seen.engine.as_mut().filter(|engine| engine.node.as_deref() == Some(node))
        {
            engine.run = Run::Unknown;
        }
    }

    fn node_returns(&mut self, node: &str) {
        self.seen.reachable.insert(node.to_owned());
        let failed = Run::Failed { why: "the node was restarted".into(), at: self.seen.now };
        for replica in self.seen.replicas.iter_mut().filter(|replica| replica.node == node) {
            if replica.run == Run::Unknown {
                replica.run = if replica.is_wanted { failed.clone() } else { Run::Stopped };
            }
        }
        if let Some(engine) = self.seen.engine.as_mut().filter(|engine| engine.node.as_deref() == Some(node))
            && engine.run == Run::Unknown
        {
            engine.run = if engine.is_wanted { failed } else { Run::Stopped };
        }
    }

    /// One decision, its actions, and what the processes do meanwhile.
    fn turn(&mut self) {
        if self.is_gone {
            return;
        }
        let decision = step(&self.seen);
        self.check(&decision);
        self.seen.last = decision.state.clone();
        self.seen.degraded_since = decision.degraded_since;
        for action in decision.actions {
            self.act(action);
        }
        self.processes();
        self.engine();
        self.seen.now += 1;
    }

    fn check(&self, decision: &Decision) {
        let deleted: BTreeSet<&String> = decision
            .actions
            .iter()
            .filter_map(|action| if let Action::DeleteReplica(name) = action { Some(name) } else { None })
            .collect();
        let keeps = |replica: &&Replica| !replica.is_deleted && !deleted.contains(&replica.name);
        if !self.seen.is_deleted && !deleted.is_empty() {
            let current = |replica: &&Replica| self.has.get(&replica.name) == Some(&self.written);
            assert!(self.seen.replicas.iter().filter(keeps).any(|r| current(&r)), "the data is deleted");
        }
        let created = decision.actions.iter().filter(|action| **action == Action::CreateReplica).count();
        assert!(created <= self.seen.wanted_replicas, "replicas are made without end");
    }

    fn replica(&mut self, name: &str) -> &mut Replica {
        self.seen.replicas.iter_mut().find(|replica| replica.name == name).expect("a replica that exists")
    }

    fn act(&mut self, action: Action) {
        let now = self.seen.now;
        match action {
            Action::CreateEngine => {
                assert!(self.seen.engine.is_none());
                self.seen.engine = Some(Engine {
                    node: None,
                    is_wanted: false,
                    run: Run::Stopped,
                    size: 0,
                    is_expanding: false,
                    told: BTreeMap::new(),
                    modes: BTreeMap::new(),
                });
            }
            Action::CreateReplica => self.create_replica(),
            Action::StartReplica(name) => {
                let replica = self.replica(&name);
                assert_eq!(replica.run, Run::Stopped, "{name} is started twice");
                (replica.is_wanted, replica.run) = (true, Run::Starting);
            }
            Action::StopReplica(name) => {
                let replica = self.replica(&name);
                (replica.is_wanted, replica.address) = (false, None);
                match replica.run {
                    Run::Failed { .. } => replica.run = Run::Stopped,
                    Run::Running | Run::Starting => replica.run = Run::Stopping,
                    Run::Stopped | Run::Stopping | Run::Unknown => {}
                }
            }
            Action::StartEngine { node, replicas } => self.start_engine(node, replicas),
            Action::StopEngine => {
                let engine = self.seen.engine.as_mut().expect("an engine that is stopped");
                (engine.is_wanted, engine.modes) = (false, BTreeMap::new());
                engine.run =
                    if matches!(engine.run, Run::Failed { .. }) { Run::Stopped } else { Run::Stopping };
            }
            Action::SetReplicas(told) => {
                let engine = self.seen.engine.as_mut().expect("an engine that runs");
                assert_eq!(engine.run, Run::Running);
                engine.modes.retain(|name, _| told.contains_key(name));
                engine.told = told;
            }
            Action::MarkHealthy(name) => {
                let replica = self.replica(&name);
                (replica.was_healthy, replica.retries) = (true, 0);
            }
            Action::MarkFailed(name) => self.replica(&name).failed_at = Some(now),
            Action::Retry(name) => {
                let replica = self.replica(&name);
                (replica.failed_at, replica.was_healthy) = (None, false);
                replica.retries += 1;
            }
            Action::Salvage(names) => {
                for name in names {
                    self.replica(&name).failed_at = None;
                }
            }
            Action::Expand(size) => {
                let engine = self.seen.engine.as_mut().expect("an engine that grows");
                assert!(size > engine.size && engine.run == Run::Running);
                engine.size = size;
            }
            Action::DeleteReplica(name) => {
                self.seen.replicas.retain(|replica| replica.name != name);
                if let Some(engine) = &mut self.seen.engine {
                    engine.modes.remove(&name);
                }
            }
            Action::DeleteEngine => self.seen.engine = None,
            Action::Release => self.is_gone = true,
        }
    }

    /// As the scheduler would: on a node without a usable replica.
    fn create_replica(&mut self) {
        let used: BTreeSet<&str> = self.seen.usable().map(|replica| replica.node.as_str()).collect();
        let Some(node) = NODES.iter().find(|node| self.seen.is_reachable(node) && !used.contains(*node))
        else {
            return;
        };
        self.made += 1;
        let name = format!("r{}", self.made);
        self.has.insert(name.clone(), 0);
        self.seen.replicas.push(Replica {
            name,
            node: (*node).to_owned(),
            is_wanted: false,
            run: Run::Stopped,
            address: None,
            was_healthy: false,
            failed_at: None,
            retries: 0,
            is_evicted: false,
            is_deleted: false,
        });
    }

    fn start_engine(&mut self, node: String, replicas: BTreeMap<String, String>) {
        let (now, written, size) = (self.seen.now, self.written, self.seen.size);
        let old = self.seen.engine.as_ref().and_then(|engine| engine.node.clone());
        let is_fenced = old.is_some_and(|old| !self.seen.is_reachable(&old));
        let has = self.has.clone();
        let engine = self.seen.engine.as_mut().expect("an engine that starts");
        assert!(engine.run == Run::Stopped || is_fenced, "two engines: {:?}", engine.run);
        assert!(!replicas.is_empty());
        // It knows whether somebody who is not asked might know better.
        let knows = replicas.keys().any(|name| has.get(name) == Some(&written));
        let refusal = Run::Failed { why: "waits for a replica".into(), at: now };
        engine.run = if knows { Run::Starting } else { refusal };
        (engine.is_wanted, engine.node, engine.told) = (true, Some(node), replicas);
        engine.modes = BTreeMap::new();
        engine.size = if engine.size == 0 { size } else { engine.size };
    }

    fn processes(&mut self) {
        for replica in &mut self.seen.replicas {
            match replica.run {
                Run::Starting => {
                    replica.run = Run::Running;
                    replica.address = Some(format!("{}:{}", replica.node, replica.name));
                }
                Run::Stopping => replica.run = Run::Stopped,
                Run::Stopped | Run::Running | Run::Failed { .. } | Run::Unknown => {}
            }
        }
        if let Some(engine) = &mut self.seen.engine {
            match engine.run {
                Run::Starting => engine.run = Run::Running,
                Run::Stopping => engine.run = Run::Stopped,
                Run::Stopped | Run::Running | Run::Failed { .. } | Run::Unknown => {}
            }
        }
    }

    /// A running engine takes in those it was told, loses those that are gone, and writes.
    fn engine(&mut self) {
        let running: BTreeSet<String> = self
            .seen
            .replicas
            .iter()
            .filter(|replica| replica.run == Run::Running && self.seen.is_reachable(&replica.node))
            .map(|replica| replica.name.clone())
            .collect();
        let Some(engine) = self.seen.engine.as_mut().filter(|engine| engine.run == Run::Running) else {
            return;
        };
        // What is being filled gets it from one that has everything.
        let is_source =
            |name: &String| engine.modes.get(name) == Some(&Mode::ReadWrite) && running.contains(name);
        let has_source = engine.told.keys().any(is_source);
        for name in engine.told.keys() {
            let is_current = self.has.get(name) == Some(&self.written);
            let next = match engine.modes.get(name) {
                _ if !running.contains(name) => Mode::Failed,
                Some(Mode::WriteOnly) if has_source => Mode::ReadWrite,
                None if is_current => Mode::ReadWrite,
                None => Mode::WriteOnly,
                Some(mode) => *mode,
            };
            engine.modes.insert(name.clone(), next);
        }
        let in_sync: Vec<_> =
            engine.modes.iter().filter(|(_, mode)| **mode == Mode::ReadWrite).map(|(name, _)| name).collect();
        if in_sync.is_empty() {
            return;
        }
        self.written += 1;
        for name in in_sync {
            self.has.insert(name.clone(), self.written);
        }
    }

    /// No more trouble: everything is given time.
    fn settle(&mut self) -> Decision {
        for node in NODES {
            if !self.seen.is_reachable(node) {
                self.node_returns(node);
            }
        }
        for round in 0..400 {
            self.turn();
            if round % 20 == 19 {
                self.seen.now += 700;
            }
        }
        step(&self.seen)
    }
}

#[test]
fn a_new_volume_is_attached_and_healthy_without_any_help() {
    let mut world = World::new();
    world.happen(&Event::Attach(0));
    let decision = world.settle();
    assert_eq!((decision.state, decision.robustness), (VolumeState::Attached, Robustness::Healthy));
    assert_eq!(decision.waiting, None);
    assert_eq!(world.seen.replicas.len(), 3);
}

#[test]
fn an_engine_moves_away_from_a_dead_node_at_once() {
    let mut world = World::new();
    world.happen(&Event::Attach(0));
    world.happen(&Event::Steps(10));
    world.happen(&Event::NodeDies(0));
    world.happen(&Event::Attach(1));
    world.happen(&Event::Steps(5));
    let engine = world.seen.engine.as_ref().unwrap();
    assert_eq!((engine.node.as_deref(), &engine.run), (Some("n2"), &Run::Running));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whatever_happens_the_data_survives_and_the_volume_comes_to_rest(
        events in prop::collection::vec(any_event(), 1..40), attach in any::<bool>(),
    ) {
        let mut world = World::new();
        for event in &events {
            world.happen(event);
        }
        world.happen(if attach { &Event::Attach(0) } else { &Event::Detach });
        let decision = world.settle();
        if attach {
            prop_assert_eq!(&decision.state, &VolumeState::Attached, "{:?}", decision);
            prop_assert_eq!(&decision.robustness, &Robustness::Healthy, "{:?}", decision);
            prop_assert!(decision.actions.is_empty(), "{:?}", decision);
            let engine = world.seen.engine.as_ref().unwrap();
            prop_assert_eq!(engine.size, world.seen.size);
        } else {
            prop_assert_eq!(&decision.state, &VolumeState::Detached, "{:?}", decision);
            prop_assert!(world.seen.replicas.iter().all(|replica| replica.run == Run::Stopped));
        }
    }

    #[test]
    fn a_deleted_volume_leaves_nothing(events in prop::collection::vec(any_event(), 0..30)) {
        let mut world = World::new();
        for event in &events {
            world.happen(event);
        }
        world.seen.is_deleted = true;
        world.settle();
        prop_assert!(world.is_gone && world.seen.replicas.is_empty() && world.seen.engine.is_none());
    }
}
