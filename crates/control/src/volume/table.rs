//! The transition function, case by case.

use std::collections::BTreeMap;
use std::time::Duration;

use granary_api::longhorn::{Robustness, VolumeState};

use super::decision::{Action, Decision, Reason};
use super::seen::{Engine, Mode, Policy, Replica, Run, Seen};
use super::state::{RETRY, step};

const NOW: i64 = 1_000_000;

/// An attached, healthy volume on n1 with replicas r1 to r3 on n1 to n3.
fn healthy() -> Seen {
    let names = ["r1", "r2", "r3"];
    let nodes = ["n1", "n2", "n3"];
    let replicas = names.iter().zip(nodes).map(|(name, node)| Replica {
        name: (*name).to_owned(),
        node: node.to_owned(),
        is_wanted: true,
        run: Run::Running,
        address: Some(format!("{node}:10000")),
        was_healthy: true,
        failed_at: None,
        retries: 0,
        is_evicted: false,
        is_deleted: false,
    });
    let engine = Engine {
        node: Some("n1".into()),
        is_wanted: true,
        run: Run::Running,
        size: 1 << 30,
        is_expanding: false,
        told: addresses(&["r1", "r2", "r3"]),
        modes: names.iter().map(|name| ((*name).to_owned(), Mode::ReadWrite)).collect(),
    };
    Seen {
        now: NOW,
        last: VolumeState::Attached,
        wanted_node: Some("n1".into()),
        size: 1 << 30,
        wanted_replicas: 3,
        is_deleted: false,
        degraded_since: None,
        engine: Some(engine),
        replicas: replicas.collect(),
        reachable: nodes.iter().map(ToString::to_string).collect(),
        policy: Policy { replenishment_wait: 600, stale_after: 172_800, auto_salvage: true },
    }
}

/// The same volume when nobody uses it.
fn detached() -> Seen {
    let mut seen = healthy();
    (seen.wanted_node, seen.last) = (None, VolumeState::Detached);
    let engine = engine(&mut seen);
    (engine.is_wanted, engine.run, engine.modes) = (false, Run::Stopped, BTreeMap::new());
    for replica in &mut seen.replicas {
        (replica.is_wanted, replica.run, replica.address) = (false, Run::Stopped, None);
    }
    seen
}

fn addresses(names: &[&str]) -> BTreeMap<String, String> {
    names.iter().map(|name| ((*name).to_owned(), format!("n{}:10000", &name[1..]))).collect()
}

fn engine(seen: &mut Seen) -> &mut Engine {
    seen.engine.as_mut().unwrap()
}

fn failed(at: i64) -> Run {
    Run::Failed { why: "exit status 1".into(), at }
}

type Case = (&'static str, fn() -> Seen, VolumeState, Robustness, Vec<Action>, Option<&'static str>);

fn check(cases: Vec<Case>) {
    for (name, seen, state, robustness, actions, waiting) in cases {
        let decision = step(&seen());
        assert_eq!(
            (decision.state.clone(), decision.robustness.clone(), decision.actions.clone()),
            (state, robustness, actions),
            "{name}: {decision:?}"
        );
        assert_eq!(decision.waiting.as_ref().map(Reason::name), waiting, "{name}: {decision:?}");
    }
}

fn with(mut seen: Seen, change: impl FnOnce(&mut Seen)) -> Seen {
    change(&mut seen);
    seen
}

fn starts(names: &[&str]) -> Vec<Action> {
    names.iter().map(|name| Action::StartReplica((*name).to_owned())).collect()
}

fn stops(names: &[&str]) -> Vec<Action> {
    names.iter().map(|name| Action::StopReplica((*name).to_owned())).collect()
}

#[test]
fn coming_and_going() {
    use Robustness::Unknown;
    use VolumeState::{Attached, Attaching, Creating, Detached, Detaching};
    check(vec![
        (
            "a volume without parts",
            || with(detached(), |s| (s.engine, s.replicas) = (None, Vec::new())),
            Creating,
            Unknown,
            vec![Action::CreateEngine, Action::CreateReplica, Action::CreateReplica, Action::CreateReplica],
            Some("NoReplicas"),
        ),
        ("nobody wants it", detached, Detached, Unknown, vec![], None),
        (
            "somebody wants it: replicas first",
            || with(detached(), |s| s.wanted_node = Some("n1".into())),
            Attaching,
            Unknown,
            starts(&["r1", "r2", "r3"]),
            Some("ReplicasStarting"),
        ),
        (
            "all replicas run: the engine starts",
            || {
                with(healthy(), |s| {
                    engine(s).run = Run::Stopped;
                    s.last = VolumeState::Attaching;
                })
            },
            Attaching,
            Unknown,
            vec![Action::StartEngine { node: "n1".into(), replicas: addresses(&["r1", "r2", "r3"]) }],
            Some("EngineStarting"),
        ),
        (
            "one cannot be asked: the engine is asked to start without it, and it is not called failed",
            || {
                with(healthy(), |s| {
                    engine(s).run = Run::Stopped;
                    s.reachable.remove("n3");
                    s.replicas[2].run = Run::Unknown;
                })
            },
            Attaching,
            Unknown,
            vec![Action::StartEngine { node: "n1".into(), replicas: addresses(&["r1", "r2"]) }],
            Some("EngineStarting"),
        ),
        (
            "the node does not answer",
            || with(detached(), |s| s.wanted_node = Some("n9".into())),
            Attaching,
            Unknown,
            vec![],
            Some("NodeUnreachable"),
        ),
        (
            "it is wanted elsewhere: the old engine is stopped first",
            || with(healthy(), |s| s.wanted_node = Some("n2".into())),
            Detaching,
            Unknown,
            vec![Action::StopEngine],
            Some("EngineOnOtherNode"),
        ),
        (
            "it is wanted elsewhere and the old node is dead: the next engine fences the old one",
            || {
                with(healthy(), |s| {
                    s.wanted_node = Some("n2".into());
                    s.reachable.remove("n1");
                    engine(s).run = Run::Unknown;
                    s.replicas[0].run = Run::Unknown;
                })
            },
            Attaching,
            Unknown,
            vec![Action::StartEngine { node: "n2".into(), replicas: addresses(&["r2", "r3"]) }],
            Some("EngineStarting"),
        ),
        (
            "its node is gone and nobody wants it elsewhere: it may still be in use",
            || {
                with(healthy(), |s| {
                    s.reachable.remove("n1");
                    engine(s).run = Run::Unknown;
                })
            },
            Attached,
            Unknown,
            vec![],
            Some("NodeUnreachable"),
        ),
        (
            "nobody wants it any more: the engine first",
            || with(healthy(), |s| s.wanted_node = None),
            Detaching,
            Unknown,
            vec![Action::StopEngine],
            Some("EngineStopping"),
        ),
        (
            "then the replicas",
            || {
                with(healthy(), |s| {
                    s.wanted_node = None;
                    engine(s).run = Run::Stopped;
                })
            },
            Detaching,
            Unknown,
            stops(&["r1", "r2", "r3"]),
            Some("ReplicasStopping"),
        ),
        (
            "an engine that failed just now is left alone for a while",
            || with(healthy(), |s| engine(s).run = failed(NOW - 1)),
            Attaching,
            Unknown,
            vec![],
            Some("EngineFailed"),
        ),
        (
            "and is then cleared away, to be started again",
            || with(healthy(), |s| engine(s).run = failed(NOW - RETRY)),
            Attaching,
            Unknown,
            vec![Action::StopEngine],
            Some("EngineFailed"),
        ),
        (
            "no replica comes up",
            || {
                with(healthy(), |s| {
                    engine(s).run = Run::Stopped;
                    for replica in &mut s.replicas {
                        replica.run = failed(NOW);
                    }
                })
            },
            Attaching,
            Unknown,
            vec![],
            Some("ReplicasDown"),
        ),
    ]);
}

#[test]
fn losing_and_replacing() {
    use Robustness::{Degraded, Faulted, Healthy};
    use VolumeState::{Attached, Detached, Detaching};
    check(vec![
        ("all is well", healthy, Attached, Healthy, vec![], None),
        (
            "the engine gives a replica up",
            || with(healthy(), |s| third_is(s, Mode::Failed)),
            Attached,
            Degraded,
            vec![Action::MarkFailed("r3".into()), Action::SetReplicas(addresses(&["r1", "r2"]))],
            Some("ReplicasMissing"),
        ),
        (
            "a failed replica stops, and rests before it is tried again",
            || with(healthy(), |s| lose_third(s, NOW - 1)),
            Attached,
            Degraded,
            stops(&["r3"]),
            Some("ReplicasMissing"),
        ),
        (
            "it is tried again",
            || {
                with(healthy(), |s| {
                    lose_third(s, NOW - RETRY);
                    s.replicas[2].is_wanted = false;
                })
            },
            Attached,
            Degraded,
            vec![Action::Retry("r3".into())],
            Some("ReplicasMissing"),
        ),
        (
            "its node is gone: a new one is made only after a while",
            || {
                with(healthy(), |s| {
                    lose_third(s, NOW - 599);
                    (s.replicas[2].is_wanted, s.degraded_since) = (false, Some(NOW - 599));
                    s.reachable.remove("n3");
                })
            },
            Attached,
            Degraded,
            vec![],
            Some("ReplicasMissing"),
        ),
        (
            "the while is over",
            || {
                with(healthy(), |s| {
                    lose_third(s, NOW - 600);
                    (s.replicas[2].is_wanted, s.degraded_since) = (false, Some(NOW - 600));
                    s.reachable.remove("n3");
                })
            },
            Attached,
            Degraded,
            vec![Action::CreateReplica],
            Some("ReplicasMissing"),
        ),
        (
            "one more is wanted: nobody is waited for",
            || with(healthy(), |s| s.wanted_replicas = 4),
            Attached,
            Degraded,
            vec![Action::CreateReplica],
            Some("ReplicasMissing"),
        ),
        (
            "the new one runs: the engine is told",
            || {
                with(healthy(), |s| {
                    s.replicas[2].was_healthy = false;
                    engine(s).told = addresses(&["r1", "r2"]);
                    engine(s).modes.remove("r3");
                })
            },
            Attached,
            Degraded,
            vec![Action::SetReplicas(addresses(&["r1", "r2", "r3"]))],
            Some("Rebuilding"),
        ),
        (
            "it is being filled",
            || with(healthy(), |s| third_is(s, Mode::WriteOnly)),
            Attached,
            Degraded,
            vec![],
            Some("Rebuilding"),
        ),
        (
            "it is full",
            || with(healthy(), |s| s.replicas[2].was_healthy = false),
            Attached,
            Healthy,
            vec![Action::MarkHealthy("r3".into())],
            None,
        ),
        (
            "one too many: the one that shall leave goes",
            || {
                with(healthy(), |s| {
                    s.wanted_replicas = 2;
                    s.replicas[0].is_evicted = true;
                })
            },
            Attached,
            Healthy,
            vec![Action::DeleteReplica("r1".into())],
            None,
        ),
        (
            "one shall leave: its successor comes first",
            || with(healthy(), |s| s.replicas[0].is_evicted = true),
            Attached,
            Healthy,
            vec![Action::CreateReplica],
            Some("ReplicasMissing"),
        ),
        (
            "a replica that failed long ago is given up",
            || {
                with(healthy(), |s| {
                    lose_third(s, NOW - 172_801);
                    (s.replicas[2].is_wanted, s.wanted_replicas) = (false, 2);
                })
            },
            Attached,
            Healthy,
            vec![Action::DeleteReplica("r3".into())],
            None,
        ),
        (
            "all are lost",
            || with(healthy(), |s| engine(s).modes.values_mut().for_each(|mode| *mode = Mode::Failed)),
            Detaching,
            Faulted,
            vec![
                Action::MarkFailed("r1".into()),
                Action::MarkFailed("r2".into()),
                Action::MarkFailed("r3".into()),
                Action::StopEngine,
            ],
            Some("AllReplicasFailed"),
        ),
        (
            "those that failed last are salvaged",
            || {
                with(detached(), |s| {
                    for (replica, at) in s.replicas.iter_mut().zip([NOW, NOW - 60, NOW - 61]) {
                        replica.failed_at = Some(at);
                    }
                })
            },
            Detached,
            Faulted,
            vec![Action::Salvage(vec!["r1".into(), "r2".into()])],
            Some("AllReplicasFailed"),
        ),
        (
            "unless that is off",
            || {
                with(detached(), |s| {
                    s.policy.auto_salvage = false;
                    s.replicas.iter_mut().for_each(|replica| replica.failed_at = Some(NOW));
                })
            },
            Detached,
            Faulted,
            vec![],
            Some("AllReplicasFailed"),
        ),
        (
            "it grows",
            || with(healthy(), |s| s.size = 2 << 30),
            Attached,
            Healthy,
            vec![Action::Expand(2 << 30)],
            Some("Expanding"),
        ),
        (
            "but not while a replica is being filled",
            || {
                with(healthy(), |s| {
                    s.size = 2 << 30;
                    engine(s).modes.insert("r3".into(), Mode::WriteOnly);
                })
            },
            Attached,
            Degraded,
            vec![],
            Some("Rebuilding"),
        ),
    ]);
}

fn third_is(seen: &mut Seen, mode: Mode) {
    engine(seen).modes.insert("r3".into(), mode);
}

fn lose_third(seen: &mut Seen, at: i64) {
    seen.replicas[2].failed_at = Some(at);
    engine(seen).modes.remove("r3");
    engine(seen).told = addresses(&["r1", "r2"]);
}

#[test]
fn ending() {
    use Robustness::Unknown;
    use VolumeState::Deleting;
    check(vec![
        (
            "its engine ends first",
            || with(healthy(), |s| s.is_deleted = true),
            Deleting,
            Unknown,
            vec![Action::StopEngine],
            Some("PartsRemain"),
        ),
        (
            "then all its parts go",
            || with(detached(), |s| s.is_deleted = true),
            Deleting,
            Unknown,
            vec![
                Action::DeleteEngine,
                Action::DeleteReplica("r1".into()),
                Action::DeleteReplica("r2".into()),
                Action::DeleteReplica("r3".into()),
            ],
            Some("PartsRemain"),
        ),
        (
            "nothing is left",
            || {
                with(detached(), |s| {
                    s.is_deleted = true;
                    (s.engine, s.replicas) = (None, Vec::new());
                })
            },
            Deleting,
            Unknown,
            vec![Action::Release],
            None,
        ),
    ]);
}

#[test]
fn waits_end_by_themselves() {
    let rest = |seen: Seen| step(&seen).look_again;
    let engine_failed = with(healthy(), |s| engine(s).run = failed(NOW - 4));
    assert_eq!(rest(engine_failed), Some(Duration::from_secs(6)));
    let resting = with(healthy(), |s| lose_third(s, NOW - 4));
    assert_eq!(rest(resting), Some(Duration::from_secs(6)));
    let away = with(healthy(), |s| {
        lose_third(s, NOW - 500);
        s.degraded_since = Some(NOW - 500);
        s.reachable.remove("n3");
    });
    assert_eq!(rest(away), Some(Duration::from_secs(100)));
    assert_eq!(rest(healthy()), None, "a healthy volume costs nothing");
    assert_eq!(rest(detached()), None);
}

#[test]
fn the_time_of_degradation_is_kept_until_it_is_over() {
    let since = |seen: Seen| -> Option<i64> {
        let Decision { degraded_since, .. } = step(&seen);
        degraded_since
    };
    assert_eq!(since(with(healthy(), |s| lose_third(s, NOW))), Some(NOW));
    let longer = with(healthy(), |s| {
        lose_third(s, NOW - 50);
        s.degraded_since = Some(NOW - 50);
    });
    assert_eq!(since(longer), Some(NOW - 50));
    assert_eq!(since(with(healthy(), |s| s.degraded_since = Some(NOW - 50))), None);
}

#[test]
fn a_detached_volume_says_that_it_has_to_grow() {
    assert!(step(&with(detached(), |s| s.size = 2 << 30)).needs_expansion);
    assert!(!step(&detached()).needs_expansion);
}
