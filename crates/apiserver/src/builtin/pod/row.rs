//! The printed cells of a pod: readiness, status in one word, restarts.
//!
//! Owns how container states add up to what people see. Must never change the pod.

use jiff::Timestamp;
use serde_json::Value;

use super::super::access::{at, bool_at, int_at, is_set, list_at, name, str_at};
use super::super::human::{self, human_duration, parse};

pub fn row(pod: &Value, now: Timestamp) -> Vec<Value> {
    let seen = Summary::of(pod);
    let mut restarts = seen.restarts.count.to_string();
    if seen.restarts.count != 0
        && let Some(then) = seen.restarts.last
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
    restarts: Restarts,
    sidecar_restarts: Restarts,
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
            // Once the pod is past initialization only restarts of sidecars still matter.
            summary.restarts = summary.sidecar_restarts;
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
            self.restarts.add(status);
            let sidecar = sidecars.contains(&container_name(status));
            if sidecar {
                self.sidecar_restarts.add(status);
            }
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

    fn add_containers(&mut self, pod: &Value) {
        let mut running = false;
        let mut failure = None;
        for status in list_at(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
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
}

/// How often containers were restarted, and when last.
#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count = self.count.saturating_add(int_at(status, "/restartCount").unwrap_or_default());
        self.last = self.last.max(parse(at(status, "/lastState/terminated/finishedAt")));
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

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use crate::builtin::testing::{cells, with};
    use serde_json::{Value, json};

    /// Ready, status and restarts of a pod whose status is this.
    fn shown(status: Value) -> [String; 3] {
        let row = cells(&POD, &with(pod(), "/status", status));
        [row[1].clone(), row[2].clone(), row[3].clone()]
    }

    #[test]
    fn a_fresh_pod_shows_little() {
        assert_eq!(
            cells(&POD, &pod()),
            ["web-0", "0/1", "Pending", "0", "5m12s", "<none>", "<none>", "<none>", "<none>"]
        );
        let mut placed = with(pod(), "/spec/nodeName", json!("node-1"));
        placed["spec"]["readinessGates"] = json!([{ "conditionType": "a" }, { "conditionType": "b" }]);
        placed["status"] = json!({
            "phase": "Running", "podIPs": [{ "ip": "10.0.0.1" }], "conditions": [{ "type": "b", "status": "True" }],
        });
        assert_eq!(cells(&POD, &placed)[5..], ["10.0.0.1", "node-1", "<none>", "1/2"]);
    }

    #[test]
    fn containers_decide_the_status() {
        let container = |state: Value| json!({ "phase": "Running", "containerStatuses": [state] });
        for (status, wanted) in [
            (container(json!({ "ready": true, "state": { "running": {} } })), ["1/1", "Running", "0"]),
            (
                container(
                    json!({ "restartCount": 3, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                    "lastState": { "terminated": { "finishedAt": "2024-05-01T11:59:30Z" } } }),
                ),
                ["0/1", "CrashLoopBackOff", "3 (30s ago)"],
            ),
            (container(json!({ "state": { "terminated": { "exitCode": 2 } } })), ["0/1", "ExitCode:2", "0"]),
            (
                container(json!({ "state": { "terminated": { "signal": 9, "exitCode": 137 } } })),
                ["0/1", "Signal:9", "0"],
            ),
            (
                container(json!({ "state": { "terminated": { "exitCode": 0, "reason": "Completed" } } })),
                ["0/1", "Completed", "0"],
            ),
            (json!({ "phase": "Failed", "reason": "Evicted" }), ["0/1", "Evicted", "0"]),
            (
                json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "reason": "SchedulingGated" }] }),
                ["0/1", "SchedulingGated", "0"],
            ),
        ] {
            assert_eq!(shown(status.clone()), wanted, "{status}");
        }
    }

    #[test]
    fn one_completed_container_does_not_make_a_completed_pod() {
        let completed =
            json!({ "name": "a", "state": { "terminated": { "exitCode": 0, "reason": "Completed" } } });
        let failed = json!({ "name": "c", "state": { "terminated": { "exitCode": 1, "reason": "Error" } } });
        let running = json!({ "name": "b", "ready": true, "state": { "running": {} } });
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        assert_eq!(
            shown(json!({ "containerStatuses": [completed, running], "conditions": ready })),
            ["1/1", "Running", "0"]
        );
        assert_eq!(shown(json!({ "containerStatuses": [completed, running] })), ["1/1", "NotReady", "0"]);
        assert_eq!(shown(json!({ "containerStatuses": [completed, failed] })), ["0/1", "Error", "0"]);
    }

    #[test]
    fn init_containers_come_first() {
        let init = json!([{ "name": "setup", "image": "x" }, { "name": "proxy", "restartPolicy": "Always" }]);
        let waiting = |statuses: Value| {
            let pod = with(pod(), "/spec/initContainers", init.clone());
            let row = cells(&POD, &with(pod, "/status", json!({ "initContainerStatuses": statuses })));
            [row[1].clone(), row[2].clone(), row[3].clone()]
        };
        assert_eq!(
            waiting(json!([{ "name": "setup", "state": { "running": {} } }])),
            ["0/2", "Init:0/2", "0"]
        );
        assert_eq!(
            waiting(
                json!([{ "name": "setup", "restartCount": 2, "state": { "waiting": { "reason": "Error" } } }])
            ),
            ["0/2", "Init:Error", "2"]
        );
        assert_eq!(
            waiting(json!([{ "name": "setup", "state": { "terminated": { "exitCode": 3 } } }])),
            ["0/2", "Init:ExitCode:3", "0"]
        );
        let done =
            json!({ "name": "setup", "restartCount": 2, "state": { "terminated": { "exitCode": 0 } } });
        let proxy = json!({ "name": "proxy", "started": true, "ready": true, "restartCount": 1 });
        assert_eq!(waiting(json!([done, proxy])), ["1/2", "", "1"]);
    }

    #[test]
    fn a_pod_on_its_way_out_says_so() {
        let leaving = with(pod(), "/metadata/deletionTimestamp", json!("2024-05-01T12:00:00Z"));
        assert_eq!(cells(&POD, &leaving)[2], "Terminating");
        let lost = with(leaving.clone(), "/status/reason", json!("NodeLost"));
        assert_eq!(cells(&POD, &lost)[2], "Unknown");
        let done = with(leaving, "/status/phase", json!("Succeeded"));
        assert_eq!(cells(&POD, &done)[2], "Succeeded");
    }
}
