//! The printed cells of a pod: readiness, status in one word, restarts.
//!
//! Owns how container states add up to what people see. Must never change the pod.

use jiff::Timestamp;
use serde_json::Value;

use super::super::access::{at, bool_at, int_at, is_set, list_at, name, str_at};
use super::super::human::{self, human_duration, parse};

pub fn row(pod: &Value, now: Timestamp) -> Vec<Value> {
    let seen = Summary::of(pod);
    let mut restarts = seen.restarts.to_string();
    if seen.restarts != 0
        && let Some(then) = seen.last_restart
    {
        restarts = format!("{restarts} ({} ago)", human_duration(now.duration_since(then).as_secs()));
    }
    vec![
        name(pod).into(),
        format!("{}/{}", seen.ready, seen.total).into(),
        seen.reason.into(),
        restarts.into(),
        human::age(pod, now).into(),
        or_none(super::ip(pod)).into(),
        or_none(str_at(pod, "/spec/nodeName")).into(),
        or_none(str_at(pod, "/status/nominatedNodeName")).into(),
        readiness_gates(pod).into(),
    ]
}

/// What the states of all containers come to.
#[derive(Default)]
struct Summary {
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
    reason: String,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let mut summary = Self { reason: first_reason(pod), ..Self::default() };
        let sidecars: Vec<&str> = list_at(pod, "/spec/initContainers")
            .iter()
            .filter(|c| is_sidecar(c))
            .map(container_name)
            .collect();
        summary.total = list_at(pod, "/spec/containers").len() + sidecars.len();
        let initializing = summary.add_init_containers(pod, &sidecars);
        if !initializing || condition(pod, "Initialized") == Some(true) {
            summary.restart_from(pod, &sidecars);
            summary.add_containers(pod);
        }
        if is_set(pod, "/metadata/deletionTimestamp") {
            if str_at(pod, "/status/reason") == "NodeLost" {
                summary.reason = "Unknown".into();
            } else if !matches!(str_at(pod, "/status/phase"), "Succeeded" | "Failed") {
                summary.reason = "Terminating".into();
            }
        }
        summary
    }

    /// Goes through init containers up to the first that is not done; says whether there is one.
    fn add_init_containers(&mut self, pod: &Value, sidecars: &[&str]) -> bool {
        let count = list_at(pod, "/spec/initContainers").len();
        for (index, status) in list_at(pod, "/status/initContainerStatuses").iter().enumerate() {
            self.add_restarts(status);
            let sidecar = sidecars.contains(&container_name(status));
            let terminated = at(status, "/state/terminated");
            if !terminated.is_null() && int_at(terminated, "/exitCode").unwrap_or_default() == 0 {
                continue;
            }
            if sidecar && bool_at(status, "/started") {
                self.ready += usize::from(bool_at(status, "/ready"));
                continue;
            }
            let waiting = str_at(status, "/state/waiting/reason");
            self.reason = if !terminated.is_null() {
                format!("Init:{}", exit_reason(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{count}")
            };
            return true;
        }
        false
    }

    /// Once the pod is past initialization only restarts of sidecars still matter.
    fn restart_from(&mut self, pod: &Value, sidecars: &[&str]) {
        self.restarts = 0;
        self.last_restart = None;
        for status in list_at(pod, "/status/initContainerStatuses") {
            if sidecars.contains(&container_name(status)) {
                self.add_restarts(status);
            }
        }
    }

    fn add_containers(&mut self, pod: &Value) {
        let mut running = false;
        let mut failure = None;
        for status in list_at(pod, "/status/containerStatuses").iter().rev() {
            self.add_restarts(status);
            let waiting = str_at(status, "/state/waiting/reason");
            let terminated = at(status, "/state/terminated");
            if !waiting.is_empty() {
                self.reason = waiting.into();
            } else if !terminated.is_null() {
                self.reason = exit_reason(terminated);
                if int_at(terminated, "/exitCode").unwrap_or_default() != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if bool_at(status, "/ready") && is_set(status, "/state/running") {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            self.reason = match failure {
                _ if running && condition(pod, "Ready") == Some(true) => "Running".into(),
                Some(failure) => failure,
                None if running => "NotReady".into(),
                None => "Completed".into(),
            };
        }
    }

    fn add_restarts(&mut self, status: &Value) {
        self.restarts = self.restarts.saturating_add(int_at(status, "/restartCount").unwrap_or_default());
        let ended = parse(at(status, "/lastState/terminated/finishedAt"));
        self.last_restart = self.last_restart.max(ended);
    }
}

/// What the pod itself says, before its containers are looked at.
fn first_reason(pod: &Value) -> String {
    let gated = list_at(pod, "/status/conditions")
        .iter()
        .any(|c| str_at(c, "/type") == "PodScheduled" && str_at(c, "/reason") == "SchedulingGated");
    let reason = match str_at(pod, "/status/reason") {
        _ if gated => "SchedulingGated",
        "" => str_at(pod, "/status/phase"),
        reason => reason,
    };
    reason.into()
}

fn exit_reason(terminated: &Value) -> String {
    match (str_at(terminated, "/reason"), int_at(terminated, "/signal").unwrap_or_default()) {
        ("", 0) => format!("ExitCode:{}", int_at(terminated, "/exitCode").unwrap_or_default()),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.into(),
    }
}

fn condition(pod: &Value, kind: &str) -> Option<bool> {
    let found = list_at(pod, "/status/conditions").iter().find(|c| str_at(c, "/type") == kind)?;
    Some(str_at(found, "/status") == "True")
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list_at(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let met = gates.iter().filter(|g| condition(pod, str_at(g, "/conditionType")) == Some(true)).count();
    format!("{met}/{}", gates.len())
}

fn is_sidecar(container: &Value) -> bool {
    str_at(container, "/restartPolicy") == "Always"
}

fn container_name(container: &Value) -> &str {
    str_at(container, "/name")
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}
