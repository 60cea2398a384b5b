//! From the objects of the API to the snapshot that is decided on.

use granary_api::longhorn::{
    Engine, InstanceManager, InstanceManagerState, InstanceState, InstanceStatus, Replica, ReplicaMode,
    Volume, VolumeState,
};
use kube::ResourceExt;

use super::seen::{self, Mode, Policy, Run, Seen};
use crate::process;
use crate::setting::{Values, catalogue};

/// Minutes, for a volume that does not say.
const STALE_AFTER: i64 = 2880;

/// A volume and all that belongs to it, as it was read.
pub struct Parts<'a> {
    pub volume: &'a Volume,
    pub engine: Option<&'a Engine>,
    pub replicas: &'a [Replica],
    pub managers: &'a [InstanceManager],
    pub values: &'a Values,
}

pub fn seen(parts: &Parts<'_>, now: i64) -> Seen {
    let (spec, status) = (&parts.volume.spec, parts.volume.status.clone().unwrap_or_default());
    let wanted_replicas = spec.number_of_replicas.filter(|count| *count > 0);
    let wanted_replicas = wanted_replicas.and_then(|count| usize::try_from(count).ok());
    let default_replicas = parts.values.number(catalogue::REPLICA_COUNT) as usize;
    let stale_after = spec.stale_replica_timeout.filter(|minutes| *minutes > 0).unwrap_or(STALE_AFTER);
    let reachable = parts.managers.iter().filter(|manager| {
        manager.status.as_ref().and_then(|status| status.current_state.as_ref())
            == Some(&InstanceManagerState::Running)
    });
    Seen {
        now,
        last: status.state.unwrap_or(VolumeState::Creating),
        wanted_node: spec.node_id.clone().filter(|node| !node.is_empty()),
        size: spec.size.unwrap_or_default().bytes(),
        wanted_replicas: wanted_replicas.unwrap_or(default_replicas),
        is_deleted: parts.volume.metadata.deletion_timestamp.is_some(),
        degraded_since: process::seconds(status.last_degraded_at.as_deref()),
        engine: parts.engine.map(|engine| self::engine(engine, now)),
        replicas: parts.replicas.iter().map(|replica| self::replica(replica, now)).collect(),
        reachable: reachable.filter_map(|manager| manager.spec.node_id.clone()).collect(),
        policy: Policy {
            replenishment_wait: parts.values.number(catalogue::REPLENISHMENT_WAIT) as i64,
            stale_after: stale_after.saturating_mul(60),
            auto_salvage: parts.values.is_on(catalogue::AUTO_SALVAGE),
        },
    }
}

fn engine(engine: &Engine, now: i64) -> seen::Engine {
    let status = engine.status.clone().unwrap_or_default();
    let modes = status.replica_mode_map.unwrap_or_default().into_iter().map(|(name, mode)| {
        let mode = match mode {
            ReplicaMode::ReadWrite => Mode::ReadWrite,
            ReplicaMode::WriteOnly => Mode::WriteOnly,
            ReplicaMode::Error | ReplicaMode::Other(_) => Mode::Failed,
        };
        (name, mode)
    });
    seen::Engine {
        node: engine.spec.instance.node_id.clone().filter(|node| !node.is_empty()),
        is_wanted: engine.spec.instance.desire_state == Some(InstanceState::Running),
        run: run(&status.instance, now),
        size: status.current_size.unwrap_or_default().bytes(),
        is_expanding: status.is_expanding.unwrap_or(false),
        told: engine.spec.replica_address_map.clone().unwrap_or_default(),
        modes: modes.collect(),
    }
}

fn replica(replica: &Replica, now: i64) -> seen::Replica {
    let status = replica.status.clone().unwrap_or_default().instance;
    let spec = &replica.spec;
    let run = run(&status, now);
    let has_failed = spec.failed_at.as_deref().is_some_and(|at| !at.is_empty());
    seen::Replica {
        name: replica.name_any(),
        node: spec.instance.node_id.clone().unwrap_or_default(),
        is_wanted: spec.instance.desire_state == Some(InstanceState::Running),
        address: process::address(&status).filter(|_| run == Run::Running),
        run,
        was_healthy: spec.healthy_at.as_deref().is_some_and(|at| !at.is_empty()),
        failed_at: has_failed.then(|| process::seconds(spec.failed_at.as_deref()).unwrap_or(now)),
        retries: u32::try_from(spec.rebuild_retry_count.unwrap_or(0)).unwrap_or(0),
        is_evicted: spec.eviction_requested.unwrap_or(false),
        is_deleted: replica.metadata.deletion_timestamp.is_some(),
    }
}

fn run(status: &InstanceStatus, now: i64) -> Run {
    match &status.current_state {
        Some(InstanceState::Running) => Run::Running,
        Some(InstanceState::Starting) => Run::Starting,
        Some(InstanceState::Stopping) => Run::Stopping,
        Some(InstanceState::Error) => {
            let condition = status.conditions.iter().flatten().next();
            let at =
                condition.and_then(|condition| process::seconds(condition.last_transition_time.as_deref()));
            let why = condition.and_then(|condition| condition.message.clone());
            Run::Failed { why: why.unwrap_or_default(), at: at.unwrap_or(now) }
        }
        None | Some(InstanceState::Stopped | InstanceState::Terminated) => Run::Stopped,
        Some(InstanceState::Unknown | InstanceState::Suspended | InstanceState::Other(_)) => Run::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use granary_api::longhorn::{EngineSpec, ReplicaSpec};

    use super::*;

    #[test]
    fn a_volume_that_says_little_follows_the_settings() {
        let (volume, values) = (Volume::new("v", Default::default()), Values::default());
        let parts = Parts { volume: &volume, engine: None, replicas: &[], managers: &[], values: &values };
        let seen = seen(&parts, 5);
        assert_eq!((seen.wanted_replicas, seen.policy.stale_after), (3, 172_800));
        assert_eq!((seen.policy.replenishment_wait, seen.policy.auto_salvage), (600, true));
        assert_eq!((seen.last, seen.wanted_node), (VolumeState::Creating, None));
    }

    #[test]
    fn a_replica_that_failed_keeps_its_reason_and_time() {
        let mut object = Replica::new("r", ReplicaSpec::default());
        assert_eq!(replica(&object, 5).run, Run::Stopped);
        let mut status = granary_api::longhorn::ReplicaStatus::default();
        status.instance = process::failed(&status.instance, "exit status 1", 100);
        object.status = Some(status);
        object.spec.failed_at = Some(process::time(90));
        let seen = replica(&object, 200);
        assert_eq!(seen.run, Run::Failed { why: "exit status 1".into(), at: 100 });
        assert_eq!((seen.failed_at, seen.was_healthy, seen.address), (Some(90), false, None));
    }

    #[test]
    fn an_empty_node_is_none() {
        let mut object = Engine::new("e", EngineSpec::default());
        object.spec.instance.node_id = Some(String::new());
        assert_eq!(engine(&object, 0).node, None);
    }
}
