//! How the important kinds are doing: one word for the state of each object, and a reason when a
//! person should look at it. Judges objects one at a time, from what their status says.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// A claim may take this long to be provisioned before somebody should look.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// The verdict on one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The state to count it under.
    pub state: String,
    /// Why a person should look, if one should.
    pub concern: Option<String>,
}

impl Verdict {
    fn fine(state: &str) -> Self {
        Self { state: state.into(), concern: None }
    }

    fn concern(state: &str, reason: impl Into<String>) -> Self {
        Self { state: state.into(), concern: Some(reason.into()) }
    }
}

/// What a verdict may depend on besides the object.
pub struct Context {
    pub now: Timestamp,
    /// `None` if they cannot be read; then nothing is concluded from them.
    pub classes: Option<Vec<Class>>,
}

/// What matters of a storage class to a claim that waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    pub name: String,
    /// Its claims wait, rightly, until somebody uses them.
    pub waits_for_use: bool,
    pub is_default: bool,
}

impl Class {
    pub fn read(class: &Value) -> Self {
        let metadata = &class["metadata"];
        Self {
            name: metadata["name"].as_str().unwrap_or_default().into(),
            waits_for_use: class["volumeBindingMode"] == "WaitForFirstConsumer",
            is_default: metadata["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true",
        }
    }
}

/// A kind that `status` looks at.
pub struct Important {
    pub group: &'static str,
    pub plural: &'static str,
    pub title: &'static str,
    pub judge: fn(&Value, &Context) -> Verdict,
}

/// In the order in which they are shown; those that an API does not serve are left out.
pub const IMPORTANT: &[Important] = &[
    Important { group: "", plural: "nodes", title: "nodes", judge: node },
    Important {
        group: "storage.k8s.io",
        plural: "storageclasses",
        title: "storage classes",
        judge: storage_class,
    },
    Important { group: "harvesterhci.io", plural: "virtualmachineimages", title: "images", judge: image },
    Important { group: "cdi.kubevirt.io", plural: "datavolumes", title: "data volumes", judge: data_volume },
    Important {
        group: "longhorn.io",
        plural: "volumes",
        title: "replicated volumes",
        judge: replicated_volume,
    },
    Important {
        group: "longhorn.io",
        plural: "instancemanagers",
        title: "instance managers",
        judge: instance_manager,
    },
    Important { group: "", plural: "persistentvolumeclaims", title: "volume claims", judge: claim },
    Important {
        group: "",
        plural: "persistentvolumes",
        title: "persistent volumes",
        judge: persistent_volume,
    },
    Important {
        group: "snapshot.storage.k8s.io",
        plural: "volumesnapshots",
        title: "snapshots",
        judge: snapshot,
    },
    Important {
        group: "harvesterhci.io",
        plural: "virtualmachinebackups",
        title: "backups",
        judge: snapshot,
    },
    Important { group: "", plural: "pods", title: "pods", judge: pod },
];

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == name)
}

/// The reason and message of a condition or of an error, as a part of a sentence.
fn because(source: &Value) -> String {
    let reason = source["reason"].as_str().unwrap_or_default();
    let message = source["message"].as_str().unwrap_or_default();
    match (reason.is_empty(), message.is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!(": {reason}"),
        (_, false) => format!(": {message}"),
    }
}

fn node(node: &Value, _: &Context) -> Verdict {
    match condition(node, "Ready") {
        Some(ready) if ready["status"] == "True" && node["spec"]["unschedulable"] == true => {
            Verdict::fine("cordoned")
        }
        Some(ready) if ready["status"] == "True" => Verdict::fine("ready"),
        Some(ready) => Verdict::concern("not ready", format!("is not ready{}", because(ready))),
        None => Verdict::concern("not ready", "has not reported yet"),
    }
}

fn storage_class(class: &Value, _: &Context) -> Verdict {
    let is_default =
        class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true";
    Verdict::fine(if is_default { "default" } else { "other" })
}

fn image(image: &Value, _: &Context) -> Verdict {
    if let Some(exceeded) = condition(image, "RetryLimitExceeded").filter(|found| found["status"] == "True") {
        return Verdict::concern("failed", format!("could not be imported{}", because(exceeded)));
    }
    match condition(image, "Imported") {
        Some(imported) if imported["status"] == "True" => Verdict::fine("ready"),
        Some(imported) if imported["status"] == "False" => {
            Verdict::concern("failed", format!("could not be imported{}", because(imported)))
        }
        _ => Verdict::fine("importing"),
    }
}

fn data_volume(volume: &Value, _: &Context) -> Verdict {
    match volume["status"]["phase"].as_str().unwrap_or_default() {
        "Succeeded" => Verdict::fine("ready"),
        "Failed" => {
            let why = condition(volume, "Running").map(because).unwrap_or_default();
            Verdict::concern("failed", format!("could not be filled{why}"))
        }
        "" | "Unknown" => Verdict::fine("pending"),
        _ => Verdict::fine("in progress"),
    }
}

fn replicated_volume(volume: &Value, _: &Context) -> Verdict {
    let status = &volume["status"];
    match (status["robustness"].as_str().unwrap_or_default(), status["state"].as_str().unwrap_or_default()) {
        ("faulted", _) => Verdict::concern("faulted", "is faulted: no replica can be used"),
        ("degraded", _) => {
            Verdict::concern("degraded", "is degraded: it has fewer healthy replicas than it should")
        }
        ("healthy", _) => Verdict::fine("healthy"),
        (_, "detached") => Verdict::fine("detached"),
        (_, "") => Verdict::fine("new"),
        (_, state) => Verdict::fine(state),
    }
}

fn instance_manager(manager: &Value, _: &Context) -> Verdict {
    match manager["status"]["currentState"].as_str().unwrap_or_default() {
        "error" => Verdict::concern("error", "is in error: its volumes cannot be attached"),
        "" => Verdict::fine("new"),
        state => Verdict::fine(state),
    }
}

fn claim(claim: &Value, context: &Context) -> Verdict {
    match claim["status"]["phase"].as_str().unwrap_or("Pending") {
        "Bound" => Verdict::fine("bound"),
        "Lost" => Verdict::concern("lost", "has lost its volume"),
        _ => pending_claim(claim, context),
    }
}

fn pending_claim(claim: &Value, context: &Context) -> Verdict {
    let asked = claim["spec"]["storageClassName"].as_str();
    if let Some(classes) = &context.classes {
        let class = classes.iter().find(|class| asked.map_or(class.is_default, |name| class.name == name));
        match (class, asked) {
            (Some(class), _) if class.waits_for_use && !has_chosen_node(claim) => {
                return Verdict::fine("waiting for use");
            }
            (Some(_), _) | (None, Some("")) => {}
            (None, Some(name)) => {
                return Verdict::concern(
                    "pending",
                    format!("asks for storage class {name:?}, which does not exist"),
                );
            }
            (None, None) => {
                return Verdict::concern(
                    "pending",
                    "names no storage class, and none is marked as the default",
                );
            }
        }
    }
    let created = claim["metadata"]["creationTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    if created.is_some_and(|created| context.now.duration_since(created) > PATIENCE) {
        return Verdict::concern("pending", "has been pending for more than 5 minutes");
    }
    Verdict::fine("pending")
}

fn has_chosen_node(claim: &Value) -> bool {
    claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].is_string()
}

fn persistent_volume(volume: &Value, _: &Context) -> Verdict {
    match volume["status"]["phase"].as_str().unwrap_or("Pending") {
        "Failed" => {
            Verdict::concern("failed", format!("could not be reclaimed{}", because(&volume["status"])))
        }
        phase => Verdict::fine(&phase.to_ascii_lowercase()),
    }
}

fn snapshot(snapshot: &Value, _: &Context) -> Verdict {
    let status = &snapshot["status"];
    if status["readyToUse"] == true {
        Verdict::fine("ready")
    } else if status["error"]["message"].is_string() {
        Verdict::concern("failed", format!("failed{}", because(&status["error"])))
    } else {
        Verdict::fine("in progress")
    }
}

fn pod(pod: &Value, _: &Context) -> Verdict {
    let status = &pod["status"];
    let containers = ["initContainerStatuses", "containerStatuses"];
    let containers = containers.iter().filter_map(|list| status[*list].as_array()).flatten();
    let stuck = containers
        .map(|container| &container["state"]["waiting"])
        .find(|waiting| waiting["reason"].as_str().is_some_and(is_stuck));
    if let Some(waiting) = stuck {
        let reason = waiting["reason"].as_str().unwrap_or_default();
        return Verdict::concern("failing", format!("cannot run ({reason})"));
    }
    match status["phase"].as_str().unwrap_or("Pending") {
        "Failed" => Verdict::concern("failed", format!("has failed{}", because(status))),
        phase => Verdict::fine(&phase.to_ascii_lowercase()),
    }
}

fn is_stuck(reason: &str) -> bool {
    reason.ends_with("BackOff")
        || reason.ends_with("Error")
        || reason.starts_with("Err")
        || reason.starts_with("Invalid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn context() -> Context {
        let class = |name: &str| Class {
            name: name.into(),
            waits_for_use: name == "local",
            is_default: name == "fast",
        };
        Context {
            now: "2026-11-15T12:00:00Z".parse().unwrap(),
            classes: Some(vec![class("fast"), class("local")]),
        }
    }

    fn state(judge: fn(&Value, &Context) -> Verdict, object: &Value) -> (String, bool) {
        let verdict = judge(object, &context());
        (verdict.state, verdict.concern.is_some())
    }

    fn is(state: &str) -> (String, bool) {
        (state.into(), false)
    }

    fn worries(state: &str) -> (String, bool) {
        (state.into(), true)
    }

    #[test]
    fn a_pending_claim_is_a_concern_only_when_it_should_have_been_bound() {
        let pending = |class: &str, created: &str| json!({"metadata": {"creationTimestamp": created}, "spec": {"storageClassName": class}, "status": {"phase": "Pending"}});
        assert_eq!(state(claim, &pending("fast", "2026-11-15T11:59:00Z")), is("pending"));
        assert_eq!(state(claim, &pending("fast", "2026-11-15T11:00:00Z")), worries("pending"));
        assert_eq!(state(claim, &pending("local", "2026-11-15T11:00:00Z")), is("waiting for use"));
        let mut scheduled = pending("local", "2026-11-15T11:00:00Z");
        scheduled["metadata"]["annotations"] = json!({"volume.kubernetes.io/selected-node": "n1"});
        assert_eq!(state(claim, &scheduled), worries("pending"));
        assert_eq!(
            state(claim, &pending("gold", "2026-11-15T11:59:59Z")),
            worries("pending"),
            "no such class"
        );
        assert_eq!(
            state(claim, &pending("", "2026-11-15T11:59:59Z")),
            is("pending"),
            "wants a volume made by hand"
        );
        let unnamed = json!({"status": {"phase": "Pending"}});
        assert_eq!(state(claim, &unnamed), is("pending"), "takes the default class");
        let no_classes = Context { classes: Some(vec![]), ..context() };
        assert!(claim(&unnamed, &no_classes).concern.is_some());
        let unknown_classes = Context { classes: None, ..context() };
        assert_eq!(claim(&unnamed, &unknown_classes).concern, None);
        assert_eq!(state(claim, &json!({"status": {"phase": "Bound"}})), is("bound"));
        assert_eq!(state(claim, &json!({"status": {"phase": "Lost"}})), worries("lost"));
    }

    #[test]
    fn volumes_with_missing_replicas_are_a_concern() {
        let volume =
            |robustness: &str, state: &str| json!({"status": {"robustness": robustness, "state": state}});
        assert_eq!(state(replicated_volume, &volume("healthy", "attached")), is("healthy"));
        assert_eq!(state(replicated_volume, &volume("degraded", "attached")), worries("degraded"));
        assert_eq!(state(replicated_volume, &volume("faulted", "detached")), worries("faulted"));
        assert_eq!(state(replicated_volume, &volume("unknown", "detached")), is("detached"));
        assert_eq!(state(replicated_volume, &json!({})), is("new"));
    }

    #[test]
    fn images_say_why_they_failed() {
        let with = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status, "message": "404 Not Found"}]}});
        assert_eq!(state(image, &with("Imported", "True")), is("ready"));
        assert_eq!(state(image, &with("Imported", "Unknown")), is("importing"));
        assert_eq!(state(image, &json!({})), is("importing"));
        let failed = image(&with("RetryLimitExceeded", "True"), &context());
        assert_eq!(failed.concern.as_deref(), Some("could not be imported: 404 Not Found"));
    }

    #[test]
    fn nodes_pods_snapshots_and_volumes_are_judged_by_their_own_words() {
        let ready = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        assert_eq!(state(node, &ready("True")), is("ready"));
        assert_eq!(state(node, &ready("Unknown")), worries("not ready"));
        assert_eq!(state(node, &json!({})), worries("not ready"));
        let mut cordoned = ready("True");
        cordoned["spec"] = json!({"unschedulable": true});
        assert_eq!(state(node, &cordoned), is("cordoned"));

        let waiting = |reason: &str| json!({"status": {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": reason}}}]}});
        assert_eq!(state(pod, &waiting("CrashLoopBackOff")), worries("failing"));
        assert_eq!(state(pod, &waiting("ContainerCreating")), is("running"));
        assert_eq!(state(pod, &json!({"status": {"phase": "Failed"}})), worries("failed"));

        assert_eq!(state(snapshot, &json!({"status": {"readyToUse": true}})), is("ready"));
        assert_eq!(state(snapshot, &json!({"status": {"error": {"message": "x"}}})), worries("failed"));
        assert_eq!(state(snapshot, &json!({})), is("in progress"));
        assert_eq!(state(persistent_volume, &json!({"status": {"phase": "Released"}})), is("released"));
        assert_eq!(state(persistent_volume, &json!({"status": {"phase": "Failed"}})), worries("failed"));
        assert_eq!(state(data_volume, &json!({"status": {"phase": "ImportInProgress"}})), is("in progress"));
        assert_eq!(state(data_volume, &json!({"status": {"phase": "Failed"}})), worries("failed"));
        assert_eq!(state(instance_manager, &json!({"status": {"currentState": "error"}})), worries("error"));
    }
}
