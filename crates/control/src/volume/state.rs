//! The life of a volume: one function from what is seen to what is done.
//!
//! ```text
//!  creating ──▶ detached ──▶ attaching ──▶ attached
//!                  ▲                          │
//!                  └──────── detaching ◀──────┘        any of them ──▶ deleting
//! ```
//!
//! Only a running engine decides that a replica has failed: it left it behind in a record that the others keep. A
//! replica that merely does not answer may be the one with the newest data, so an engine is asked to start without
//! it and refuses when that would be wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use granary_api::longhorn::{Robustness, VolumeState};

use super::attached::attached;
use super::decision::{Action, Decision, Reason};
use super::seen::{Engine, Replica, Run, Seen};

/// How long a process that failed is left alone before it is started again, in seconds.
pub const RETRY: i64 = 10;
/// Replicas that failed this long before the last one may lack data, in seconds.
const SALVAGE_WINDOW: i64 = 60;

/// The one transition function: it looks at everything and remembers nothing.
pub fn step(seen: &Seen) -> Decision {
    if seen.is_deleted {
        return deleting(seen);
    }
    let Some(engine) = &seen.engine else {
        let decision = Decision::of(VolumeState::Creating, Some(Reason::NoReplicas));
        return decision.with(Action::CreateEngine).with_all(fresh_replicas(seen));
    };
    match &seen.wanted_node {
        Some(node) => toward_attached(seen, engine, node),
        None => toward_detached(seen, engine),
    }
}

fn toward_attached(seen: &Seen, engine: &Engine, node: &str) -> Decision {
    let is_elsewhere = engine.node.as_deref().is_some_and(|current| current != node);
    // An engine that cannot be reached is fenced by the next one, so nobody waits for it.
    let is_out_of_reach = engine.node.as_deref().is_some_and(|current| !seen.is_reachable(current));
    match &engine.run {
        Run::Stopped => start(seen, node),
        _ if is_elsewhere && is_out_of_reach => start(seen, node),
        Run::Running if !is_elsewhere => attached(seen, engine),
        Run::Unknown if !is_elsewhere => {
            let state = if seen.last == VolumeState::Attached {
                VolumeState::Attached
            } else {
                VolumeState::Attaching
            };
            Decision::of(state, Some(Reason::NodeUnreachable(node.to_owned()))).degraded(seen.degraded_since)
        }
        Run::Starting if !is_elsewhere => Decision::of(VolumeState::Attaching, Some(Reason::EngineStarting)),
        Run::Failed { why, at } => {
            let reason = Reason::EngineFailed(why.clone());
            let decision = Decision::of(VolumeState::Attaching, Some(reason));
            match at + RETRY - seen.now {
                remaining if remaining > 0 => decision.at_latest(remaining),
                _ => decision.with(Action::StopEngine),
            }
        }
        Run::Stopping => Decision::of(VolumeState::Detaching, Some(Reason::EngineStopping)),
        Run::Running | Run::Starting | Run::Unknown => {
            let current = engine.node.clone().unwrap_or_default();
            let decision = Decision::of(VolumeState::Detaching, Some(Reason::EngineOnOtherNode(current)));
            decision.with(Action::StopEngine)
        }
    }
}

/// No engine runs: replicas first, then the engine with those that run.
fn start(seen: &Seen, node: &str) -> Decision {
    if seen.is_lost() {
        return salvage(seen);
    }
    let trusted = seen.trusted();
    if trusted.is_empty() {
        let decision = Decision::of(VolumeState::Attaching, Some(Reason::NoReplicas));
        return decision.with_all(fresh_replicas(seen));
    }
    if !seen.is_reachable(node) {
        return Decision::of(VolumeState::Attaching, Some(Reason::NodeUnreachable(node.to_owned())));
    }
    let mut decision = Decision::of(VolumeState::Attaching, None);
    let (mut ready, mut starting, mut down) = (BTreeMap::new(), Vec::new(), Vec::new());
    for replica in trusted {
        match readiness(seen, replica) {
            Readiness::Ready(address) => {
                ready.insert(replica.name.clone(), address);
            }
            Readiness::Starting(action) => {
                decision.actions.extend(action);
                starting.push(replica.name.clone());
            }
            Readiness::Down { why, again, action } => {
                decision.actions.extend(action);
                decision = decision.at_latest(again);
                down.push((replica.name.clone(), why));
            }
        }
    }
    if !starting.is_empty() {
        decision.waiting = Some(Reason::ReplicasStarting(starting));
    } else if ready.is_empty() {
        decision.waiting = Some(Reason::ReplicasDown(down));
    } else {
        decision.waiting = Some(Reason::EngineStarting);
        decision.actions.push(Action::StartEngine { node: node.to_owned(), replicas: ready });
    }
    decision
}

enum Readiness {
    Ready(String),
    Starting(Option<Action>),
    Down { why: String, again: i64, action: Option<Action> },
}

fn readiness(seen: &Seen, replica: &Replica) -> Readiness {
    let name = || replica.name.clone();
    if !seen.is_reachable(&replica.node) {
        let why = format!("node {} does not answer", replica.node);
        return Readiness::Down { why, again: RETRY, action: None };
    }
    match (&replica.run, &replica.address) {
        (Run::Running, Some(address)) => Readiness::Ready(address.clone()),
        (Run::Stopped, _) => Readiness::Starting(Some(Action::StartReplica(name()))),
        (Run::Running | Run::Starting | Run::Stopping | Run::Unknown, _) => Readiness::Starting(None),
        (Run::Failed { why, at }, _) => {
            let remaining = at + RETRY - seen.now;
            let action = (remaining <= 0).then(|| Action::StopReplica(name()));
            Readiness::Down { why: why.clone(), again: remaining.max(1), action }
        }
    }
}

fn toward_detached(seen: &Seen, engine: &Engine) -> Decision {
    let is_out_of_reach = engine.node.as_deref().is_some_and(|node| !seen.is_reachable(node));
    match &engine.run {
        Run::Stopped => without_engine(seen, engine),
        // Without replicas it can do nothing; what is left of it ends when its node returns.
        _ if is_out_of_reach => without_engine(seen, engine),
        Run::Stopping => Decision::of(VolumeState::Detaching, Some(Reason::EngineStopping)),
        Run::Starting | Run::Running | Run::Failed { .. } | Run::Unknown => {
            Decision::of(VolumeState::Detaching, Some(Reason::EngineStopping)).with(Action::StopEngine)
        }
    }
}

fn without_engine(seen: &Seen, engine: &Engine) -> Decision {
    let (stopping, actions) = stop_replicas(seen);
    if !stopping.is_empty() {
        let reason = Reason::ReplicasStopping(stopping);
        return Decision::of(VolumeState::Detaching, Some(reason)).with_all(actions);
    }
    if seen.is_lost() {
        return salvage(seen);
    }
    let fresh = fresh_replicas(seen);
    if seen.usable().next().is_none() {
        return Decision::of(VolumeState::Creating, Some(Reason::NoReplicas)).with_all(fresh);
    }
    let missing = (!fresh.is_empty()).then_some(Reason::ReplicasMissing(fresh.len()));
    let mut decision = Decision::of(VolumeState::Detached, missing).with_all(fresh);
    decision.needs_expansion = engine.size != 0 && engine.size < seen.size;
    decision
}

/// Replicas that are not over yet, and what ends them.
fn stop_replicas(seen: &Seen) -> (Vec<String>, Vec<Action>) {
    let running =
        seen.replicas.iter().filter(|replica| !replica.is_deleted && seen.is_reachable(&replica.node));
    let running: Vec<_> = running.filter(|replica| replica.is_wanted || !replica.run.is_over()).collect();
    let told = running.iter().filter(|replica| replica.run != Run::Stopping || replica.is_wanted);
    let actions = told.map(|replica| Action::StopReplica(replica.name.clone())).collect();
    (running.into_iter().map(|replica| replica.name.clone()).collect(), actions)
}

/// Replicas of a volume that has no data yet. One that has gets its replicas filled while it is attached.
fn fresh_replicas(seen: &Seen) -> Vec<Action> {
    if seen.replicas.iter().any(|replica| replica.was_healthy) {
        return Vec::new();
    }
    let missing = seen.wanted_replicas.saturating_sub(seen.usable().count());
    vec![Action::CreateReplica; missing]
}

fn salvage(seen: &Seen) -> Decision {
    let mut decision = Decision::of(VolumeState::Detached, Some(Reason::AllReplicasFailed));
    decision.robustness = Robustness::Faulted;
    let failures = || {
        let remaining = seen.replicas.iter().filter(|replica| !replica.is_deleted);
        remaining.filter_map(|replica| Some((replica, replica.failed_at?)))
    };
    let last = failures().map(|(_, at)| at).max().unwrap_or(seen.now);
    let is_new = seen.replicas.iter().all(|replica| !replica.was_healthy);
    // A replica that was being filled when all failed never had everything.
    let best: Vec<String> = failures()
        .filter(|(replica, at)| last - at <= SALVAGE_WINDOW && (is_new || replica.was_healthy))
        .map(|(replica, _)| replica.name.clone())
        .collect();
    if seen.policy.auto_salvage && !best.is_empty() {
        decision.actions.push(Action::Salvage(best));
    }
    decision
}

fn deleting(seen: &Seen) -> Decision {
    let mut decision = Decision::of(VolumeState::Deleting, Some(Reason::PartsRemain));
    if let Some(engine) = &seen.engine {
        let is_out_of_reach = engine.node.as_deref().is_some_and(|node| !seen.is_reachable(node));
        if !engine.run.is_over() && !is_out_of_reach {
            let told = engine.run == Run::Stopping && !engine.is_wanted;
            return if told { decision } else { decision.with(Action::StopEngine) };
        }
        decision.actions.push(Action::DeleteEngine);
    }
    let remaining = seen.replicas.iter().filter(|replica| !replica.is_deleted);
    decision.actions.extend(remaining.map(|replica| Action::DeleteReplica(replica.name.clone())));
    if seen.engine.is_none() && seen.replicas.is_empty() {
        decision.waiting = None;
        decision.actions.push(Action::Release);
    }
    decision
}

impl Decision {
    /// Nothing is known of the replicas' content unless an engine runs.
    pub(super) fn of(state: VolumeState, waiting: Option<Reason>) -> Self {
        Self {
            state,
            robustness: Robustness::Unknown,
            actions: Vec::new(),
            waiting,
            look_again: None,
            degraded_since: None,
            needs_expansion: false,
        }
    }

    pub(super) fn with(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    fn with_all(mut self, actions: Vec<Action>) -> Self {
        self.actions.extend(actions);
        self
    }

    pub(super) fn degraded(mut self, since: Option<i64>) -> Self {
        self.degraded_since = since;
        self
    }

    pub(super) fn at_latest(mut self, seconds: i64) -> Self {
        let wait = Duration::from_secs(u64::try_from(seconds).unwrap_or(0).max(1));
        self.look_again = Some(self.look_again.map_or(wait, |earlier| earlier.min(wait)));
        self
    }
}
