//! What a pod must say.
//!
//! Owns the rules of the pod as a whole; parts have files of their own. Must never ask whether a node could run it.

use granary_api::names;
use serde_json::Value;

use super::super::address;
use super::super::field::Field;
use super::{containers, resources, scheduling, update, volumes};
use crate::error::FieldError;

const MAX_ID: i64 = i32::MAX as i64;

pub fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let pod = Field::root(new);
    check_spec(&pod, errors);
    match old {
        None => check_create(&pod.at("spec"), errors),
        Some(old) => update::check(&pod, &Field::root(old), errors),
    }
}

fn check_spec(pod: &Field, errors: &mut Vec<FieldError>) {
    let spec = pod.at("spec");
    if !spec.at("terminationGracePeriodSeconds").is_set() {
        errors.push(spec.at("terminationGracePeriodSeconds").required(""));
    }
    let known = volumes::check(pod, errors);
    containers::check(&spec, &known, errors);
    resources::check_pod(&spec, errors);
    check_host_network(&spec, errors);
    spec.at("restartPolicy").need_one_of(&["Always", "OnFailure", "Never"], errors);
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    spec.at("dnsPolicy").need_one_of(&dns, errors);
    spec.at("nodeSelector").labels(errors);
    check_security(&spec, errors);
    scheduling::check(&spec, errors);
    check_dns(&spec, errors);
    check_names(&spec, errors);
    let deadline = spec.at("activeDeadlineSeconds");
    if deadline.is_set() {
        deadline.within(1, i64::from(i32::MAX), errors);
    }
    spec.at("preemptionPolicy").one_of(&["PreemptLowerPriority", "Never"], errors);
    let os = spec.at("os");
    if os.is_set() && os.at("name").need(errors) {
        os.at("name").known_as(os.path.as_str()).one_of(&["linux", "windows"], errors);
    }
}

fn check_create(spec: &Field, errors: &mut Vec<FieldError>) {
    if spec.at("ephemeralContainers").count() > 0 {
        errors.push(spec.at("ephemeralContainers").forbidden("cannot be set on create"));
    }
    if !spec.at("nodeName").is_empty() && spec.at("schedulingGates").count() > 0 {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(spec.at("nodeName").forbidden(detail));
    }
}

fn check_names(spec: &Field, errors: &mut Vec<FieldError>) {
    for field in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        spec.at(field).follow_if_set(names::dns1123_subdomain, errors);
    }
    for field in ["hostname", "subdomain"] {
        spec.at(field).follow_if_set(names::dns1123_label, errors);
    }
    for gate in spec.at("readinessGates").items() {
        gate.at("conditionType").follow(names::label_key, errors);
    }
    for alias in spec.at("hostAliases").items() {
        alias.at("ip").follow(address::ip, errors);
        alias.at("hostnames").items().for_each(|name| name.follow(names::dns1123_subdomain, errors));
    }
}

/// On the host's network there is no mapping of ports.
fn check_host_network(spec: &Field, errors: &mut Vec<FieldError>) {
    if !spec.at("hostNetwork").is_true() {
        return;
    }
    for container in spec.at("containers").items() {
        for port in container.at("ports").items() {
            if port.at("hostPort").int() != port.at("containerPort").int() {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(port.at("hostPort").invalid(detail));
            }
        }
    }
}

fn check_security(spec: &Field, errors: &mut Vec<FieldError>) {
    let context = spec.at("securityContext");
    check_ids(&context, &["fsGroup", "runAsUser", "runAsGroup"], errors);
    context.at("supplementalGroups").items().for_each(|group| group.within(0, MAX_ID, errors));
    context.at("fsGroupChangePolicy").one_of(&["Always", "OnRootMismatch"], errors);
    context.at("supplementalGroupsPolicy").one_of(&["Merge", "Strict"], errors);
    let share = spec.at("shareProcessNamespace");
    if share.is_true() && spec.at("hostPID").is_true() {
        let path = format!("{}.shareProcessNamespace", context.path);
        errors.push(share.known_as(path).invalid("ShareProcessNamespace and HostPID cannot both be enabled"));
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.at(list).items() {
            check_container_security(&container.at("securityContext"), errors);
        }
    }
}

fn check_ids(context: &Field, fields: &[&str], errors: &mut Vec<FieldError>) {
    for id in fields.iter().map(|field| context.at(field)).filter(Field::is_set) {
        id.within(0, MAX_ID, errors);
    }
}

fn check_container_security(context: &Field, errors: &mut Vec<FieldError>) {
    check_ids(context, &["runAsUser", "runAsGroup"], errors);
    context.at("procMount").one_of(&["Default", "Unmasked"], errors);
    let escalation = context.at("allowPrivilegeEscalation");
    if escalation.value != &Value::Bool(false) {
        return;
    }
    if context.at("privileged").is_true() {
        errors
            .push(context.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
    }
    if context.at("capabilities.add").items().any(|capability| capability.text() == "CAP_SYS_ADMIN") {
        errors.push(
            context.invalid(
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
            ),
        );
    }
}

fn check_dns(spec: &Field, errors: &mut Vec<FieldError>) {
    let config = spec.at("dnsConfig");
    let servers = config.at("nameservers");
    if spec.at("dnsPolicy").text() == "None" {
        if !config.is_set() {
            errors.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.count() == 0 {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(servers.required(detail));
            return;
        }
    }
    if servers.count() > 3 {
        errors.push(servers.invalid("must not have more than 3 nameservers"));
    }
    servers.items().for_each(|server| server.follow(address::ip, errors));
    let searches = config.at("searches");
    if searches.count() > 32 {
        errors.push(searches.invalid("must not have more than 32 search paths"));
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        search.follow(search_domain, errors);
    }
    for option in config.at("options").items().filter(|option| option.at("name").is_empty()) {
        errors.push(option.required("must not be empty"));
    }
}

/// A domain whose parts may have underscores, as some resolvers want them.
fn search_domain(text: &str) -> Vec<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let outside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        part.starts_with(outside)
            && part.ends_with(outside)
            && part.chars().all(|c| outside(c) || matches!(c, '-' | '_'))
    };
    let mut complaints = Vec::new();
    if text.len() > names::DNS_SUBDOMAIN_MAX {
        complaints.push(format!("must be no more than {} characters", names::DNS_SUBDOMAIN_MAX));
    }
    if !text.split('.').all(part) {
        complaints.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .into(),
        );
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use crate::builtin::testing::{refusals, with};
    use serde_json::json;

    #[test]
    fn a_good_pod_passes() {
        assert_eq!(refusals(&POD, &pod()), [""; 0]);
    }

    #[test]
    fn the_pod_as_a_whole_is_checked() {
        for (pointer, value, refusal) in [
            (
                "/spec/restartPolicy",
                json!("Sometimes"),
                "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \
                 \"Never\"",
            ),
            (
                "/spec/activeDeadlineSeconds",
                json!(0),
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            ),
            ("/spec/hostname", json!("a.b"), "spec.hostname: Invalid value: \"a.b\": must not contain dots"),
            (
                "/spec/dnsPolicy",
                json!("None"),
                "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
            ),
            (
                "/spec/ephemeralContainers",
                json!([{ "name": "debug", "image": "busybox", "imagePullPolicy": "Always",
                         "terminationMessagePolicy": "File" }]),
                "spec.ephemeralContainers: Forbidden: cannot be set on create",
            ),
            (
                "/spec/securityContext",
                json!({ "runAsUser": -1 }),
                "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ),
            (
                "/spec/containers/0/securityContext",
                json!({ "privileged": true, "allowPrivilegeEscalation": false }),
                "spec.containers[0].securityContext: Invalid value: \
                 {\"allowPrivilegeEscalation\":false,\"privileged\":true}: cannot set `allowPrivilegeEscalation` to \
                 false and `privileged` to true",
            ),
        ] {
            assert_eq!(refusals(&POD, &with(pod(), pointer, value)), [refusal]);
        }
    }

    #[test]
    fn an_empty_pod_is_refused_for_each_missing_part() {
        assert_eq!(
            refusals(&POD, &json!({})),
            [
                "spec.terminationGracePeriodSeconds: Required value",
                "spec.containers: Required value",
                "spec.restartPolicy: Required value",
                "spec.dnsPolicy: Required value",
            ]
        );
    }
}
