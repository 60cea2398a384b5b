//! What Kubernetes fills into a pod that leaves it out.
//!
//! Owns the values of defaults. Must never overwrite what a client said, and applying it twice changes nothing.

use serde_json::{Value, json};

use super::super::access::{
    at, bool_at, each_mut, fill, fill_zero, int_at, is_set, list_at, map_mut, remove, str_at,
};
use super::super::{persistent_volume_claim, quantity};
use super::qos;

/// Octal 0644, which JSON can only say in decimal.
const DEFAULT_FILE_MODE: i64 = 0o644;

pub fn default(pod: &mut Value) {
    default_spec(pod);
    for list in ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"] {
        each_mut(pod, list).for_each(default_container);
    }
    for list in ["/spec/initContainers", "/spec/containers"] {
        each_mut(pod, list).for_each(requests_from_limits);
    }
    if bool_at(pod, "/spec/hostNetwork") {
        for list in ["/spec/initContainers", "/spec/containers"] {
            each_mut(pod, list).for_each(host_ports);
        }
    }
    each_mut(pod, "/spec/volumes").for_each(default_volume);
    default_status(pod);
}

fn default_spec(pod: &mut Value) {
    fill_zero(pod, "/spec/dnsPolicy", "ClusterFirst");
    fill_zero(pod, "/spec/restartPolicy", "Always");
    fill(pod, "/spec/securityContext", json!({}));
    fill(pod, "/spec/terminationGracePeriodSeconds", 30);
    if int_at(pod, "/spec/terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        remove(pod, "/spec/terminationGracePeriodSeconds");
        fill(pod, "/spec/terminationGracePeriodSeconds", 1);
    }
    fill_zero(pod, "/spec/schedulerName", "default-scheduler");
    fill(pod, "/spec/enableServiceLinks", true);
    if str_at(pod, "/spec/priorityClassName").is_empty() {
        fill(pod, "/spec/priority", 0);
    }
    fill(pod, "/spec/preemptionPolicy", "PreemptLowerPriority");
    mirror(pod, "/spec/serviceAccountName", "/spec/serviceAccount");
    for map in ["/spec/resources/requests", "/spec/resources/limits", "/spec/overhead"] {
        quantity::canonical_map(pod, map);
    }
}

/// The account has an old and a new name; clients may use either and find both. The new one wins.
fn mirror(pod: &mut Value, new: &str, old: &str) {
    let old_value = str_at(pod, old).to_string();
    if !old_value.is_empty() {
        fill_zero(pod, new, old_value);
    }
    let value = str_at(pod, new).to_string();
    if !value.is_empty() {
        remove(pod, old);
        fill(pod, old, value);
    }
}

fn default_container(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    let policy = pull_policy(str_at(container, "/image"));
    fill_zero(container, "/imagePullPolicy", policy);
    fill_zero(container, "/terminationMessagePath", "/dev/termination-log");
    fill_zero(container, "/terminationMessagePolicy", "File");
    fill(container, "/resources", json!({}));
    quantity::canonical_map(container, "/resources/requests");
    quantity::canonical_map(container, "/resources/limits");
    for port in each_mut(container, "/ports") {
        fill_zero(port, "/protocol", "TCP");
    }
    for probe in ["/livenessProbe", "/readinessProbe", "/startupProbe"] {
        default_probe(container, probe);
    }
    for hook in ["/lifecycle/postStart", "/lifecycle/preStop"] {
        default_http(container, hook);
    }
    for variable in each_mut(container, "/env") {
        default_field_ref(variable, "/valueFrom");
        default_resource_ref(variable, "/valueFrom");
        if is_set(variable, "/valueFrom/fileKeyRef") {
            fill(variable, "/valueFrom/fileKeyRef/optional", false);
        }
    }
}

/// `Always` for an image that may change under its name, `IfNotPresent` otherwise.
fn pull_policy(image: &str) -> &'static str {
    let (reference, digest) = image.split_once('@').unwrap_or((image, ""));
    let (path, last) = reference.rsplit_once('/').unwrap_or(("", reference));
    let (name, tag) = last.split_once(':').unwrap_or((last, ""));
    let moving = tag == "latest" || (tag.is_empty() && digest.is_empty());
    // A name that is none is left for whoever pulls it to complain about.
    let (host, folders) = path.split_once('/').unwrap_or((path, ""));
    let is_host = host.contains(['.', ':']) && host.starts_with(|c: char| c.is_ascii_alphanumeric());
    let valid = is_name(name)
        && !reference.starts_with('/')
        && (host.is_empty() || is_host || is_name(host))
        && (folders.is_empty() || folders.split('/').all(is_name))
        && reference.len() < 256;
    if moving && valid { "Always" } else { "IfNotPresent" }
}

/// Lower-case letters and digits, with single separators between them.
fn is_name(part: &str) -> bool {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(inside)
        && part.ends_with(inside)
        && part.chars().all(|c| inside(c) || matches!(c, '.' | '_' | '-'))
        && !["..", "._", "_.", "___", ".-", "-.", "-_", "_-"].iter().any(|pair| part.contains(pair))
}

fn default_probe(container: &mut Value, probe: &str) {
    if !is_set(container, probe) {
        return;
    }
    for (field, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        fill_zero(container, &format!("{probe}/{field}"), value);
    }
    if is_set(container, &format!("{probe}/grpc")) {
        fill(container, &format!("{probe}/grpc/service"), "");
    }
    default_http(container, probe);
}

fn default_http(container: &mut Value, handler: &str) {
    if is_set(container, &format!("{handler}/httpGet")) {
        fill_zero(container, &format!("{handler}/httpGet/path"), "/");
        fill_zero(container, &format!("{handler}/httpGet/scheme"), "HTTP");
    }
}

fn default_field_ref(holder: &mut Value, parent: &str) {
    let field = format!("{parent}/fieldRef");
    if is_set(holder, &field) {
        fill_zero(holder, &format!("{field}/apiVersion"), "v1");
    }
}

fn default_resource_ref(holder: &mut Value, parent: &str) {
    let reference = format!("{parent}/resourceFieldRef");
    if is_set(holder, &reference) {
        fill(holder, &format!("{reference}/divisor"), "0");
        quantity::canonical(holder, &format!("{reference}/divisor"));
    }
}

/// A limit without a request is also the request.
fn requests_from_limits(container: &mut Value) {
    let Value::Object(limits) = at(container, "/resources/limits").clone() else { return };
    let Some(requests) = map_mut(container, "/resources/requests") else { return };
    for (resource, limit) in limits {
        requests.entry(resource).or_insert(limit);
    }
}

/// On the host's network a container's port is the host's port.
fn host_ports(container: &mut Value) {
    for port in each_mut(container, "/ports") {
        let number = at(port, "/containerPort").clone();
        if !number.is_null() {
            fill_zero(port, "/hostPort", number);
        }
    }
}

fn default_volume(volume: &mut Value) {
    let Some(fields) = volume.as_object() else { return };
    if !fields.iter().any(|(key, value)| key != "name" && !value.is_null()) {
        fill(volume, "/emptyDir", json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if is_set(volume, &format!("/{source}")) {
            fill(volume, &format!("/{source}/defaultMode"), DEFAULT_FILE_MODE);
        }
    }
    for item in each_mut(volume, "/downwardAPI/items") {
        default_field_ref(item, "");
        default_resource_ref(item, "");
    }
    for source in each_mut(volume, "/projected/sources") {
        if is_set(source, "/serviceAccountToken") {
            fill(source, "/serviceAccountToken/expirationSeconds", 3600);
        }
        for item in each_mut(source, "/downwardAPI/items") {
            default_field_ref(item, "");
            default_resource_ref(item, "");
        }
    }
    quantity::canonical(volume, "/emptyDir/sizeLimit");
    if is_set(volume, "/hostPath") {
        fill(volume, "/hostPath/type", "");
    }
    if is_set(volume, "/image") {
        let policy = pull_policy(str_at(volume, "/image/reference"));
        fill_zero(volume, "/image/pullPolicy", policy);
    }
    if is_set(volume, "/iscsi") {
        fill_zero(volume, "/iscsi/iscsiInterface", "default");
    }
    if is_set(volume, "/rbd") {
        fill_zero(volume, "/rbd/pool", "rbd");
        fill_zero(volume, "/rbd/user", "admin");
        fill_zero(volume, "/rbd/keyring", "/etc/ceph/keyring");
    }
    if let Some(template) = volume.pointer_mut("/ephemeral/volumeClaimTemplate") {
        persistent_volume_claim::default_spec(template);
    }
}

fn default_status(pod: &mut Value) {
    fill_zero(pod, "/status/phase", "Pending");
    if str_at(pod, "/status/qosClass").is_empty() {
        let class = qos::class(pod);
        fill_zero(pod, "/status/qosClass", class);
    }
    default_address(pod);
}

/// The address has an old form for one and a new one for several; where they differ, the old one wins.
fn default_address(pod: &mut Value) {
    let ip = str_at(pod, "/status/podIP").to_string();
    let first = list_at(pod, "/status/podIPs").first().map(|p| str_at(p, "/ip").to_string());
    match first {
        Some(first) if ip.is_empty() && !first.is_empty() => fill_zero(pod, "/status/podIP", first),
        first if !ip.is_empty() && first.as_ref() != Some(&ip) => {
            remove(pod, "/status/podIPs");
            fill(pod, "/status/podIPs", json!([{ "ip": ip }]));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::*;
    use crate::builtin::testing::defaulted;

    #[test]
    fn a_bare_pod_gets_what_kubernetes_gives_it() {
        let pod = defaulted(&POD, json!({ "spec": { "containers": [{ "name": "a", "image": "nginx" }] } }));
        assert_eq!(
            pod,
            json!({
                "spec": {
                    "containers": [{
                        "name": "a", "image": "nginx", "imagePullPolicy": "Always", "resources": {},
                        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    }],
                    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {},
                    "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler",
                    "enableServiceLinks": true, "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
                },
                "status": { "phase": "Pending", "qosClass": "BestEffort" },
            })
        );
    }

    #[test]
    fn only_moving_tags_are_always_pulled() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("registry:5000/nginx", "Always"),
            ("nginx:1.29", "IfNotPresent"),
            ("registry:5000/nginx:1.29", "IfNotPresent"),
            ("nginx@sha256:0123", "IfNotPresent"),
            ("nginx:latest@sha256:0123", "Always"),
            ("", "IfNotPresent"),
            ("Nginx", "IfNotPresent"),
            ("a b", "IfNotPresent"),
            ("/nginx", "IfNotPresent"),
            ("../nginx", "IfNotPresent"),
            ("example.com/team/nginx", "Always"),
            ("localhost/nginx:latest", "Always"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn parts_of_containers_are_filled() {
        let pod = defaulted(
            &POD,
            json!({ "spec": { "hostNetwork": true, "serviceAccount": "runner", "containers": [{
                "name": "a", "image": "x:1", "ports": [{ "containerPort": 80 }],
                "resources": { "limits": { "cpu": "1000m" } },
                "livenessProbe": { "httpGet": { "port": 80 } }, "startupProbe": { "grpc": { "port": 1 } },
                "lifecycle": { "preStop": { "httpGet": { "port": 80 } } },
                "env": [{ "name": "N", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
            }] } }),
        );
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["ports"], json!([{ "containerPort": 80, "hostPort": 80, "protocol": "TCP" }]));
        assert_eq!(container["resources"], json!({ "limits": { "cpu": "1" }, "requests": { "cpu": "1" } }));
        assert_eq!(
            container["livenessProbe"],
            json!({
                "httpGet": { "port": 80, "path": "/", "scheme": "HTTP" }, "timeoutSeconds": 1, "periodSeconds": 10,
                "successThreshold": 1, "failureThreshold": 3,
            })
        );
        assert_eq!(container["startupProbe"]["grpc"], json!({ "port": 1, "service": "" }));
        assert_eq!(container["lifecycle"]["preStop"]["httpGet"]["path"], "/");
        assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
        assert_eq!(pod["spec"]["serviceAccountName"], "runner");
    }

    #[test]
    fn volumes_are_filled() {
        let pod = defaulted(
            &POD,
            json!({ "spec": { "volumes": [
                { "name": "a" }, { "name": "b", "secret": { "secretName": "s" } }, { "name": "c", "hostPath": { "path": "/" } },
                { "name": "d", "projected": { "sources": [{ "serviceAccountToken": { "path": "t" } }] } },
                { "name": "e", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } },
                { "name": "f", "emptyDir": { "sizeLimit": "1024Mi" } },
            ] } }),
        );
        assert_eq!(
            pod["spec"]["volumes"],
            json!([
                { "name": "a", "emptyDir": {} },
                { "name": "b", "secret": { "secretName": "s", "defaultMode": 420 } },
                { "name": "c", "hostPath": { "path": "/", "type": "" } },
                { "name": "d", "projected": {
                    "defaultMode": 420, "sources": [{ "serviceAccountToken": { "path": "t", "expirationSeconds": 3600 } }],
                } },
                { "name": "e", "ephemeral": { "volumeClaimTemplate": { "spec": { "volumeMode": "Filesystem" } } } },
                { "name": "f", "emptyDir": { "sizeLimit": "1Gi" } },
            ])
        );
    }

    #[test]
    fn a_negative_grace_period_is_the_shortest_one() {
        let pod = defaulted(&POD, json!({ "spec": { "terminationGracePeriodSeconds": -5 } }));
        assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 1);
    }

    #[test]
    fn either_form_of_the_address_fills_the_other() {
        let one = defaulted(&POD, json!({ "status": { "podIP": "10.0.0.1" } }));
        assert_eq!(one["status"]["podIPs"], json!([{ "ip": "10.0.0.1" }]));
        let list = defaulted(&POD, json!({ "status": { "podIPs": [{ "ip": "10.0.0.2" }] } }));
        assert_eq!(list["status"]["podIP"], "10.0.0.2");
        let torn = json!({ "status": { "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.2" }] } });
        assert_eq!(defaulted(&POD, torn)["status"]["podIPs"], json!([{ "ip": "10.0.0.1" }]));
    }
}
