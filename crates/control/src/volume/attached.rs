//! What is done about a volume whose engine runs where it should: replicas are judged by what the engine says of
//! them, lost ones are replaced, surplus ones removed, and it grows.

use std::collections::BTreeMap;

use granary_api::longhorn::{Robustness, VolumeState};

use super::decision::{Action, Decision, Reason};
use super::seen::{Engine, Mode, Replica, Run, Seen};
use super::state::RETRY;

/// After so many attempts a failed replica is replaced rather than tried again.
const MAX_RETRIES: u32 = 5;
/// The longest pause between two attempts, in seconds.
const LONGEST_PAUSE: i64 = 300;

pub fn attached(seen: &Seen, engine: &Engine) -> Decision {
    let copies = Copies::of(seen, engine);
    if copies.are_all_failed(seen, engine) {
        let mut decision = Decision::of(VolumeState::Detaching, Some(Reason::AllReplicasFailed));
        decision.robustness = Robustness::Faulted;
        // Also one that was being filled: it lacks what nobody can give it now.
        decision.actions = seen.usable().map(|replica| Action::MarkFailed(replica.name.clone())).collect();
        return decision.with(Action::StopEngine);
    }
    let mut decision = Decision::of(VolumeState::Attached, None);
    decision.robustness = match copies.in_sync.len() {
        0 => Robustness::Unknown,
        count if count >= seen.wanted_replicas => Robustness::Healthy,
        _ => Robustness::Degraded,
    };
    if decision.robustness == Robustness::Degraded {
        decision.degraded_since = Some(seen.degraded_since.unwrap_or(seen.now));
    }
    mark(&copies, &mut decision);
    decision = join(engine, &copies, decision);
    decision = replenish(seen, &copies, decision);
    remove(seen, &copies, &mut decision);
    grow(seen, engine, &copies, &mut decision);
    decision
}

/// The replicas, sorted by what the engine says of them.
struct Copies<'a> {
    in_sync: Vec<&'a Replica>,
    filling: Vec<&'a Replica>,
    /// Usable, but the engine gave them up, or does not have them although they once had everything.
    left_behind: Vec<&'a Replica>,
    /// The engine was told of them and has not said anything yet.
    announced: Vec<&'a Replica>,
    /// On their way to the engine.
    waiting: Vec<&'a Replica>,
    failed: Vec<&'a Replica>,
}

impl<'a> Copies<'a> {
    fn of(seen: &'a Seen, engine: &Engine) -> Self {
        let mut copies = Self {
            in_sync: Vec::new(),
            filling: Vec::new(),
            left_behind: Vec::new(),
            announced: Vec::new(),
            waiting: Vec::new(),
            failed: Vec::new(),
        };
        for replica in seen.replicas.iter().filter(|replica| !replica.is_deleted) {
            let heap = match engine.modes.get(&replica.name) {
                _ if replica.failed_at.is_some() => &mut copies.failed,
                Some(Mode::ReadWrite) => &mut copies.in_sync,
                Some(Mode::WriteOnly) => &mut copies.filling,
                Some(Mode::Failed) => &mut copies.left_behind,
                None if is_broken(seen, replica) => &mut copies.left_behind,
                None if engine.told.contains_key(&replica.name) => &mut copies.announced,
                None => &mut copies.waiting,
            };
            heap.push(replica);
        }
        copies
    }

    /// The engine knows its replicas, and can use none.
    fn are_all_failed(&self, seen: &Seen, engine: &Engine) -> bool {
        let told = seen.usable().any(|replica| engine.modes.get(&replica.name) == Some(&Mode::Failed));
        told && self.in_sync.is_empty() && self.announced.is_empty()
    }

    fn is_rebuilding(&self) -> bool {
        !self.filling.is_empty() || !self.announced.is_empty()
    }
}

/// It cannot come to an engine that already runs without it.
fn is_broken(seen: &Seen, replica: &Replica) -> bool {
    matches!(replica.run, Run::Failed { .. }) || !seen.is_reachable(&replica.node)
}

fn mark(copies: &Copies<'_>, decision: &mut Decision) {
    let healthy = copies.in_sync.iter().filter(|replica| !replica.was_healthy || replica.retries > 0);
    decision.actions.extend(healthy.map(|replica| Action::MarkHealthy(replica.name.clone())));
    let failed = copies.left_behind.iter();
    decision.actions.extend(failed.map(|replica| Action::MarkFailed(replica.name.clone())));
    let idle = copies.failed.iter().filter(|replica| replica.is_wanted);
    decision.actions.extend(idle.map(|replica| Action::StopReplica(replica.name.clone())));
}

/// Replicas that wait are started and, one at a time, told to the engine.
fn join(engine: &Engine, copies: &Copies<'_>, mut decision: Decision) -> Decision {
    let stopped = copies.waiting.iter().filter(|replica| replica.run == Run::Stopped);
    decision.actions.extend(stopped.map(|replica| Action::StartReplica(replica.name.clone())));
    let with_engine = copies.in_sync.iter().chain(&copies.filling).chain(&copies.announced);
    let mut wanted: BTreeMap<String, String> = with_engine
        .filter_map(|replica| {
            let known = engine.told.get(&replica.name).or(replica.address.as_ref())?;
            Some((replica.name.clone(), known.clone()))
        })
        .collect();
    let ready =
        copies.waiting.iter().find(|replica| replica.run == Run::Running && replica.address.is_some());
    if let (false, Some(replica)) = (copies.is_rebuilding() || engine.is_expanding, ready) {
        wanted.extend(replica.address.clone().map(|address| (replica.name.clone(), address)));
    }
    if wanted != engine.told {
        decision.actions.push(Action::SetReplicas(wanted));
    }
    let coming: Vec<String> = copies
        .filling
        .iter()
        .chain(&copies.announced)
        .chain(&copies.waiting)
        .map(|replica| replica.name.clone())
        .collect();
    if !coming.is_empty() {
        decision.waiting = Some(Reason::Rebuilding(coming));
    }
    decision
}

/// A failed replica is tried again; where none can be, a new one is made.
fn replenish(seen: &Seen, copies: &Copies<'_>, mut decision: Decision) -> Decision {
    let staying = |replicas: &[&Replica]| replicas.iter().filter(|replica| !replica.is_evicted).count();
    let present = staying(&copies.in_sync)
        + staying(&copies.filling)
        + staying(&copies.announced)
        + staying(&copies.waiting);
    let missing = seen.wanted_replicas.saturating_sub(present);
    if missing == 0 {
        return decision;
    }
    decision.waiting.get_or_insert(Reason::ReplicasMissing(missing));
    if copies.is_rebuilding() || !copies.waiting.is_empty() || copies.in_sync.is_empty() {
        return decision;
    }
    let again = copies.failed.iter().filter(|replica| {
        replica.retries < MAX_RETRIES && seen.is_reachable(&replica.node) && !replica.is_evicted
    });
    if let Some((replica, at)) =
        again.map(|replica| (replica, retry_at(replica))).min_by_key(|(replica, at)| (*at, &replica.name))
    {
        return match at - seen.now {
            remaining if remaining > 0 => decision.at_latest(remaining),
            _ => decision.with(Action::Retry(replica.name.clone())),
        };
    }
    // Only a replica that may return is worth waiting for.
    let may_return = !copies.left_behind.is_empty()
        || copies.failed.iter().any(|replica| replica.retries < MAX_RETRIES && !replica.is_evicted);
    let since = decision.degraded_since.unwrap_or(seen.now);
    match since + seen.policy.replenishment_wait - seen.now {
        remaining if may_return && remaining > 0 => decision.at_latest(remaining),
        _ => decision.with(Action::CreateReplica),
    }
}

fn retry_at(replica: &Replica) -> i64 {
    let pause = RETRY.saturating_mul(1 << replica.retries.min(10)).min(LONGEST_PAUSE);
    replica.failed_at.unwrap_or(0).saturating_add(pause)
}

/// More copies than wanted, and failed ones that are not worth keeping. Never one that the wanted number needs.
fn remove(seen: &Seen, copies: &Copies<'_>, decision: &mut Decision) {
    if copies.in_sync.is_empty() {
        return;
    }
    let given_up = copies.failed.iter().filter(|replica| {
        let is_stale = replica.failed_at.is_some_and(|at| seen.now - at > seen.policy.stale_after);
        is_stale || replica.retries >= MAX_RETRIES
    });
    decision.actions.extend(given_up.map(|replica| Action::DeleteReplica(replica.name.clone())));
    if copies.is_rebuilding() || copies.in_sync.len() <= seen.wanted_replicas {
        return;
    }
    let surplus = copies.in_sync.iter().max_by_key(|replica| (replica.is_evicted, &replica.name));
    decision.actions.extend(surplus.map(|replica| Action::DeleteReplica(replica.name.clone())));
}

fn grow(seen: &Seen, engine: &Engine, copies: &Copies<'_>, decision: &mut Decision) {
    if engine.is_expanding {
        decision.waiting = Some(Reason::Expanding);
        return;
    }
    if engine.size == 0 || engine.size >= seen.size {
        return;
    }
    decision.needs_expansion = true;
    decision.waiting.get_or_insert(Reason::Expanding);
    if !copies.is_rebuilding() && !copies.in_sync.is_empty() {
        decision.actions.push(Action::Expand(seen.size));
    }
}
