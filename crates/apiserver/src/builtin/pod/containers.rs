//! What each container of a pod must say.
//!
//! Owns names, ports and environment, and what only some kinds of containers may have. Must never pull an image.

use std::collections::BTreeSet;

use granary_api::names;

use super::super::field::{Field, port_name};
use super::volumes::Known;
use super::{environment, mounts, probes, resources};
use crate::error::FieldError;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
pub const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const FOR_WORK_ONLY: [&str; 7] =
    ["ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy"];

pub fn check(spec: &Field, volumes: &Known, errors: &mut Vec<FieldError>) {
    let regular = spec.at("containers");
    if regular.count() == 0 {
        errors.push(regular.required(""));
    }
    let mut seen = BTreeSet::new();
    for container in regular.items() {
        check_common(&container, volumes, errors);
        check_unique(&container, &mut seen, errors);
        probes::check(&container, spec, errors);
        check_restart(&container, errors);
    }
    check_host_ports(regular.items(), errors);
    for container in spec.at("initContainers").items() {
        check_common(&container, volumes, errors);
        check_restart(&container, errors);
        check_unique(&container, &mut seen, errors);
        check_host_ports(std::iter::once(container.clone()), errors);
        if container.at("restartPolicy").text() == "Always" {
            probes::check(&container, spec, errors);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.at(field).is_set() {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    errors.push(container.at(field).forbidden(detail));
                }
            }
        }
    }
    check_ephemeral(spec, volumes, seen, errors);
}

fn check_ephemeral<'a>(
    spec: &Field<'a>,
    volumes: &Known,
    mut seen: BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    let others = seen.clone();
    let reason = "cannot be set for an Ephemeral Container";
    for container in spec.at("ephemeralContainers").items() {
        check_common(&container, volumes, errors);
        check_unique(&container, &mut seen, errors);
        let target = container.at("targetContainerName");
        if !target.is_empty() && !others.contains(target.text()) {
            errors.push(target.not_found());
        }
        for field in FOR_WORK_ONLY.iter().map(|name| container.at(name)).filter(|field| !field.is_empty()) {
            errors.push(field.forbidden(reason));
        }
        for mount in container.at("volumeMounts").items() {
            for field in ["subPath", "subPathExpr"] {
                if !mount.at(field).is_empty() {
                    errors.push(mount.at(field).forbidden(reason));
                }
            }
        }
    }
}

fn check_unique<'a>(container: &Field<'a>, seen: &mut BTreeSet<&'a str>, errors: &mut Vec<FieldError>) {
    let name = container.at("name");
    if !seen.insert(name.text()) {
        errors.push(name.duplicate());
    }
}

fn check_common(container: &Field, volumes: &Known, errors: &mut Vec<FieldError>) {
    container.at("name").need_name(names::dns1123_label, errors);
    container.at("image").need(errors);
    let policies = ["File", "FallbackToLogsOnError"];
    container.at("terminationMessagePolicy").need_one_of(&policies, errors);
    check_ports(&container.at("ports"), errors);
    environment::check(container, errors);
    mounts::check(container, volumes, errors);
    container.at("imagePullPolicy").need_one_of(&PULL_POLICIES, errors);
    resources::check(&container.at("resources"), errors);
    for policy in container.at("resizePolicy").items() {
        policy.at("resourceName").need_one_of(&["cpu", "memory"], errors);
        policy.at("restartPolicy").need_one_of(&["NotRequired", "RestartContainer"], errors);
    }
}

fn check_restart(container: &Field, errors: &mut Vec<FieldError>) {
    let policy = container.at("restartPolicy");
    policy.one_of(&RESTART_POLICIES, errors);
    if !policy.is_set() && container.at("restartPolicyRules").count() > 0 {
        errors.push(policy.required("must specify restartPolicy when restart rules are used"));
    }
}

fn check_ports(ports: &Field, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let name = port.at("name");
        name.follow_if_set(port_name, errors);
        if !name.is_empty() && port_name(name.text()).is_empty() && !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
        if port.at("containerPort").need(errors) {
            port.at("containerPort").port_number(errors);
        }
        if !port.at("hostPort").is_empty() {
            port.at("hostPort").port_number(errors);
        }
        port.at("protocol").need_one_of(&PROTOCOLS, errors);
    }
}

/// Two containers cannot have the same port of the host.
fn check_host_ports<'a>(containers: impl Iterator<Item = Field<'a>>, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for container in containers {
        for port in container.at("ports").items().filter(|port| !port.at("hostPort").is_empty()) {
            let taken = format!(
                "{}/{}/{}",
                port.at("protocol").text(),
                port.at("hostIP").text(),
                port.at("hostPort").value
            );
            if !seen.insert(taken.clone()) {
                errors.push(FieldError::duplicate(port.at("hostPort").path, taken));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use crate::builtin::testing::{defaulted, refusals, with};
    use serde_json::json;

    #[test]
    fn containers_have_unique_names_and_images() {
        let containers =
            json!([{ "name": "Web" }, { "name": "a", "image": "x" }, { "name": "a", "image": "x" }]);
        let texts = refusals(&POD, &defaulted(&POD, with(pod(), "/spec/containers", containers)));
        assert!(
            texts[0]
                .starts_with("spec.containers[0].name: Invalid value: \"Web\": a lowercase RFC 1123 label")
        );
        assert_eq!(
            texts[1..],
            ["spec.containers[0].image: Required value", "spec.containers[2].name: Duplicate value: \"a\"",]
        );
    }

    #[test]
    fn init_containers_are_not_probed_unless_they_stay() {
        let probe = json!({ "exec": { "command": ["true"] } });
        let once = json!([{ "name": "setup", "image": "x", "readinessProbe": probe }]);
        let sent = with(pod(), "/spec/initContainers", once);
        assert_eq!(
            refusals(&POD, &defaulted(&POD, sent.clone())),
            ["spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without \
                 restartPolicy=Always"]
        );
        let sidecar = with(sent, "/spec/initContainers/0/restartPolicy", json!("Always"));
        assert_eq!(refusals(&POD, &defaulted(&POD, sidecar)), [""; 0]);
    }

    #[test]
    fn ports_are_numbers_once() {
        let ports = json!([
            { "containerPort": 80, "hostPort": 8080, "name": "web" },
            { "containerPort": 81, "hostPort": 8080, "name": "web" },
            { "containerPort": 70000, "protocol": "IP" },
        ]);
        assert_eq!(
            refusals(&POD, &defaulted(&POD, with(pod(), "/spec/containers/0/ports", ports))),
            [
                "spec.containers[0].ports[1].name: Duplicate value: \"web\"",
                "spec.containers[0].ports[2].containerPort: Invalid value: 70000: must be between 1 and 65535, \
                 inclusive",
                "spec.containers[0].ports[2].protocol: Unsupported value: \"IP\": supported values: \"SCTP\", \
                 \"TCP\", \"UDP\"",
                "spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//8080\"",
            ]
        );
    }
}
