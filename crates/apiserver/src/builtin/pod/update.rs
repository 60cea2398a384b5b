//! What of a pod may change once it exists: images, deadlines, added tolerations, and its status.
//!
//! Owns that list. Must never apply a change.

use serde_json::Value;

use super::super::access::{each_mut, remove, same, str_at};
use super::super::field::Field;
use super::super::{address, changes};
use crate::error::FieldError;

const ONLY: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub fn check(new: &Field, old: &Field, errors: &mut Vec<FieldError>) {
    check_status(&new.at("status"), old, errors);
    let (spec, stored) = (new.at("spec"), old.at("spec"));
    for list in ["containers", "initContainers"] {
        if !check_images(&spec.at(list), &stored.at(list), errors) {
            return;
        }
    }
    if !check_deadline(&spec, &stored, errors) {
        return;
    }
    check_added_tolerations(&spec.at("tolerations"), &stored.at("tolerations"), errors);
    check_removed_gates(&spec.at("schedulingGates"), &stored.at("schedulingGates"), errors);
    check_rest(spec.value, stored.value, errors);
}

/// Says whether the lists are as long as before, so that more can be compared.
fn check_images(new: &Field, old: &Field, errors: &mut Vec<FieldError>) -> bool {
    if new.count() != old.count() {
        errors.push(new.forbidden("pod updates may not add or remove containers"));
        return false;
    }
    for image in new.items().map(|container| container.at("image")) {
        if image.text() != image.text().trim() {
            errors.push(image.invalid("must not have leading or trailing whitespace"));
        }
    }
    true
}

/// A deadline comes closer or is set for the first time. Says whether it did nothing else.
fn check_deadline(spec: &Field, stored: &Field, errors: &mut Vec<FieldError>) -> bool {
    let field = spec.at("activeDeadlineSeconds");
    match (field.int(), stored.at("activeDeadlineSeconds").int()) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => false,
        (Some(new), Some(old)) if new > old => {
            errors.push(field.invalid("must be less than or equal to previous value"));
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(field.path.as_str(), Value::Null, detail));
            true
        }
        _ => true,
    }
}

fn check_added_tolerations(new: &Field, old: &Field, errors: &mut Vec<FieldError>) {
    let without_time = |toleration: &Field| {
        let mut toleration = toleration.value.clone();
        remove(&mut toleration, "/tolerationSeconds");
        toleration
    };
    let kept: Vec<Value> = new.items().map(|toleration| without_time(&toleration)).collect();
    if old.items().any(|toleration| !kept.iter().any(|new| same(new, &without_time(&toleration)))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(new.forbidden(detail));
    }
}

fn check_removed_gates(new: &Field, old: &Field, errors: &mut Vec<FieldError>) {
    for gate in new.items().map(|gate| gate.at("name")) {
        if !old.items().any(|old| old.at("name").text() == gate.text()) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.text());
            errors.push(gate.forbidden(detail));
        }
    }
}

/// Compares the specs without the parts that were checked above.
fn check_rest(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (mut wanted, mut stored) = (new.clone(), old.clone());
    for spec in [&mut wanted, &mut stored] {
        for list in ["/containers", "/initContainers"] {
            for container in each_mut(spec, list) {
                remove(container, "/image");
            }
        }
        for field in ["/activeDeadlineSeconds", "/tolerations", "/schedulingGates"] {
            remove(spec, field);
        }
    }
    let grace = |spec: &Value| spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace(&stored).is_some_and(|seconds| seconds < 0) && grace(&wanted) == Some(1) {
        remove(&mut wanted, "/terminationGracePeriodSeconds");
        remove(&mut stored, "/terminationGracePeriodSeconds");
    }
    if !same(&wanted, &stored) {
        let listed = changes::listed(&stored, &wanted);
        errors.push(FieldError::forbidden("spec", format!("{ONLY}{listed}")));
    }
}

fn check_status(status: &Field, old: &Field, errors: &mut Vec<FieldError>) {
    if !old.at("status.qosClass").is_empty() {
        status.at("qosClass").unchanged(&old.at("status.qosClass"), errors);
    }
    for (list, before) in [("podIPs", old.at("status.podIPs")), ("hostIPs", old.at("status.hostIPs"))] {
        let ips = status.at(list);
        if !same(ips.value, before.value) {
            // Kubernetes reports the entry, not the field inside it.
            ips.items().for_each(|ip| ip.at("ip").known_as(ip.path.as_str()).follow(address::ip, errors));
        }
    }
    check_restarts(status, old, errors);
}

/// A container that is not to be restarted stays terminated.
fn check_restarts(status: &Field, old: &Field, errors: &mut Vec<FieldError>) {
    let pod_policy = old.at("spec.restartPolicy").text();
    let containers = old.at("spec.containers");
    for (i, before) in old.at("status.containerStatuses").items().enumerate() {
        let terminated = before.at("state.terminated");
        if !terminated.is_set() {
            continue;
        }
        let name = before.at("name").text();
        let own_policy = containers.items().find(|container| container.at("name").text() == name);
        let policy =
            own_policy.map(|container| str_at(container.value, "/restartPolicy")).unwrap_or_default();
        let restarts = match if policy.is_empty() { pod_policy } else { policy } {
            "Always" => true,
            "OnFailure" => terminated.at("exitCode").int().unwrap_or_default() != 0,
            _ => false,
        };
        let revived = status
            .at("containerStatuses")
            .items()
            .any(|after| after.at("name").text() == name && !after.at("state.terminated").is_set());
        if revived && !restarts {
            let path = format!("status.containerStatuses[{i}].state");
            errors.push(FieldError::forbidden(path, "may not be transitioned to non-terminated state"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use super::ONLY;
    use crate::builtin::testing::{defaulted, update_refusals, with};
    use serde_json::json;

    #[test]
    fn images_deadlines_and_more_tolerations_are_fine() {
        let mut new = with(pod(), "/spec/containers/0/image", json!("nginx:1.29"));
        new["spec"]["activeDeadlineSeconds"] = json!(60);
        new["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
        assert_eq!(update_refusals(&POD, &pod(), &new), [""; 0]);
    }

    #[test]
    fn nothing_else_changes() {
        let new = with(pod(), "/spec/hostNetwork", json!(true));
        assert_eq!(
            update_refusals(&POD, &pod(), &new),
            [format!("spec: Forbidden: {ONLY}\n+ hostNetwork: true")]
        );
        let moved = with(pod(), "/spec/nodeName", json!("node-1"));
        assert_eq!(
            update_refusals(&POD, &pod(), &moved),
            [format!("spec: Forbidden: {ONLY}\n+ nodeName: \"node-1\"")]
        );
        let mut more = pod();
        more["spec"]["containers"].as_array_mut().unwrap().push(json!({ "name": "b", "image": "x" }));
        assert_eq!(
            update_refusals(&POD, &pod(), &defaulted(&POD, more)),
            ["spec.containers: Forbidden: pod updates may not add or remove containers"]
        );
    }

    #[test]
    fn deadlines_and_tolerations_are_never_relaxed() {
        let old = with(pod(), "/spec/activeDeadlineSeconds", json!(60));
        let later = with(pod(), "/spec/activeDeadlineSeconds", json!(61));
        assert_eq!(
            update_refusals(&POD, &old, &later),
            ["spec.activeDeadlineSeconds: Invalid value: 61: must be less than or equal to previous value"]
        );
        let tolerant = with(pod(), "/spec/tolerations", json!([{ "key": "a", "operator": "Exists" }]));
        assert_eq!(
            update_refusals(&POD, &tolerant, &pod()),
            [
                "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
            ]
        );
        let gated = with(pod(), "/spec/schedulingGates", json!([{ "name": "example.com/a" }]));
        assert_eq!(update_refusals(&POD, &gated, &pod()), [""; 0]);
        assert_eq!(
            update_refusals(&POD, &pod(), &gated),
            [
                "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate \
                 'example.com/a'"
            ]
        );
    }

    #[test]
    fn what_ended_for_good_stays_ended() {
        let done = json!([{ "name": "web", "state": { "terminated": { "exitCode": 0 } } }]);
        let running = json!([{ "name": "web", "state": { "running": {} } }]);
        let once = with(pod(), "/spec/restartPolicy", json!("Never"));
        let old = with(once.clone(), "/status/containerStatuses", done.clone());
        assert_eq!(
            update_refusals(&POD, &old, &with(once, "/status/containerStatuses", running.clone())),
            ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"]
        );
        let always = with(pod(), "/status/containerStatuses", done);
        assert_eq!(
            update_refusals(&POD, &always, &with(pod(), "/status/containerStatuses", running)),
            [""; 0]
        );
        assert_eq!(
            update_refusals(&POD, &pod(), &with(pod(), "/status/qosClass", json!("Guaranteed"))),
            ["status.qosClass: Invalid value: \"Guaranteed\": field is immutable"]
        );
    }
}
