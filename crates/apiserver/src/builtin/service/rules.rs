//! What a service must say about its ports and addresses.
//!
//! Owns the rules of this kind. Must never hand out an address or a port.

use std::collections::BTreeSet;

use granary_api::names;
use serde_json::{Value, json};

use super::super::address;
use super::super::field::Field;
use crate::error::FieldError;

const LOAD_BALANCER_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
const MAX_STICKY_SECONDS: i64 = 86400;

pub fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let spec = Field::root(new).at("spec");
    let kind = spec.at("type").text();
    if spec.at("ports").count() == 0 && !is_headless(&spec) && kind != "ExternalName" {
        errors.push(spec.at("ports").required(""));
    }
    check_type(&spec, errors);
    check_ports(&spec, errors);
    spec.at("selector").labels(errors);
    check_affinity(&spec, errors);
    if kind != "ExternalName" {
        check_cluster_ips(&spec, errors);
    }
    spec.at("externalIPs").items().for_each(|ip| ip.follow(external_ip, errors));
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    spec.at("type").need_one_of(&types, errors);
    check_balancer(&spec, errors);
    check_traffic(&spec, errors);
    if let Some(old) = old {
        check_update(&spec, &Field::root(old).at("spec"), errors);
    }
}

/// An address that is none needs no second complaint.
fn external_ip(text: &str) -> Vec<String> {
    let complaints = address::ip(text);
    if complaints.is_empty() { address::endpoint(text) } else { complaints }
}

fn is_headless(spec: &Field) -> bool {
    spec.at("clusterIPs").value == &json!(["None"])
}

fn check_type(spec: &Field, errors: &mut Vec<FieldError>) {
    match spec.at("type").text() {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(spec) => {
            errors.push(FieldError::invalid(
                "spec.clusterIPs[0]",
                "None",
                format!("may not be set to 'None' for {kind} services"),
            ));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !spec.at(field).is_empty() {
                    errors.push(spec.at(field).forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.at("externalName");
            match name.text().strip_suffix('.').unwrap_or(name.text()) {
                "" => errors.push(name.required("")),
                _ => name
                    .follow(|name| names::dns1123_subdomain(name.strip_suffix('.').unwrap_or(name)), errors),
            }
        }
        _ => {}
    }
}

fn check_ports(spec: &Field, errors: &mut Vec<FieldError>) {
    let ports = spec.at("ports");
    let mut seen_names = BTreeSet::new();
    for port in ports.items() {
        let name = port.at("name");
        if ports.count() > 1 || !name.is_empty() {
            name.need_name(names::dns1123_label, errors);
        }
        if !name.is_empty() && !seen_names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        port.at("port").port_number(errors);
        port.at("protocol").need_one_of(&["SCTP", "TCP", "UDP"], errors);
        port.at("targetPort").port(errors);
        port.at("appProtocol").follow_if_set(names::label_key, errors);
    }
    if spec.at("type").text() == "ClusterIP" {
        for port in ports.items().map(|port| port.at("nodePort")).filter(|port| !port.is_empty()) {
            errors.push(port.forbidden("may not be used when `type` is 'ClusterIP'"));
        }
    }
    check_unique_ports(&ports, errors);
}

fn check_unique_ports(ports: &Field, errors: &mut Vec<FieldError>) {
    let (mut node_ports, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for port in ports.items() {
        let protocol = port.at("protocol").text();
        let node_port = port.at("nodePort");
        if !node_port.is_empty() && !node_ports.insert((protocol, node_port.int())) {
            errors.push(node_port.duplicate());
        }
        let number = port.at("port").int();
        if !numbers.insert((protocol, number)) {
            let shown = json!({ "protocol": protocol, "port": number });
            errors.push(FieldError::duplicate(port.path.as_str(), shown));
        }
    }
}

fn check_affinity(spec: &Field, errors: &mut Vec<FieldError>) {
    let affinity = spec.at("sessionAffinity");
    affinity.need_one_of(&["ClientIP", "None"], errors);
    let timeout = spec.at("sessionAffinityConfig.clientIP.timeoutSeconds");
    if affinity.text() != "ClientIP" {
        return;
    }
    if !timeout.is_set() {
        errors.push(timeout.required("when session affinity type is ClientIP"));
    } else {
        let detail = format!("must be greater than 0 and less than {MAX_STICKY_SECONDS}");
        timeout.in_range(1, MAX_STICKY_SECONDS, &detail, errors);
    }
}

fn check_cluster_ips(spec: &Field, errors: &mut Vec<FieldError>) {
    let (single, all) = (spec.at("clusterIP"), spec.at("clusterIPs"));
    let first = all.items().next().map(|ip| ip.text()).unwrap_or_default();
    match single.text() {
        "" if all.count() > 0 => errors.push(all.invalid("must be empty when `clusterIP` is not specified")),
        "" => {}
        _ if all.count() == 0 => errors.push(all.required("")),
        ip if ip != first => errors.push(all.invalid("first value must match `clusterIP`")),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for family in spec.at("ipFamilies").items() {
        family.one_of(&["IPv4", "IPv6"], errors);
        if !seen.insert(family.text()) {
            errors.push(family.duplicate());
        }
    }
    spec.at("ipFamilyPolicy").one_of(&["PreferDualStack", "RequireDualStack", "SingleStack"], errors);
    if first == "None" {
        if all.count() > 1 {
            errors.push(all.invalid("'None' must be the first and only value"));
        }
        return;
    }
    let before = errors.len();
    all.items().for_each(|ip| ip.follow(address::ip, errors));
    let six = all.items().filter(|ip| ip.text().contains(':')).count();
    if all.count() > 2 {
        errors.push(all.invalid("may only hold up to 2 values"));
    } else if all.count() == 2 && six != 1 && errors.len() == before {
        errors.push(all.invalid("may specify no more than one IP for each IP family"));
    }
}

fn check_balancer(spec: &Field, errors: &mut Vec<FieldError>) {
    let balanced = spec.at("type").text() == "LoadBalancer";
    let ranges = spec.at("loadBalancerSourceRanges").known_as("spec.LoadBalancerSourceRanges");
    if ranges.count() > 0 && !balanced {
        errors.push(ranges.forbidden(LOAD_BALANCER_ONLY));
    }
    ranges.items().for_each(|range| range.follow(|text| address::cidr(text.trim()), errors));
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if spec.at(field).is_set() && !balanced {
            errors.push(spec.at(field).forbidden(LOAD_BALANCER_ONLY));
        }
    }
    if balanced && spec.at("loadBalancerClass").is_set() {
        spec.at("loadBalancerClass").follow(names::label_key, errors);
    }
}

fn check_traffic(spec: &Field, errors: &mut Vec<FieldError>) {
    let kind = spec.at("type").text();
    let external = spec.at("externalTrafficPolicy");
    let reachable = matches!(kind, "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !spec.at("externalIPs").is_empty());
    if reachable {
        external.need_one_of(&["Cluster", "Local"], errors);
    } else if !external.is_empty() {
        errors.push(external.invalid("may only be set for externally-accessible services"));
    }
    let health = spec.at("healthCheckNodePort");
    if !health.is_empty() {
        if kind == "LoadBalancer" && external.text() == "Local" {
            health.port_number(errors);
        } else {
            let detail =
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(health.invalid(detail));
        }
    }
    let internal = spec.at("internalTrafficPolicy");
    if !internal.is_set() && matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
        errors.push(internal.required(""));
    }
    internal.one_of(&["Cluster", "Local"], errors);
    spec.at("trafficDistribution").one_of(&["PreferClose", "PreferSameZone", "PreferSameNode"], errors);
}

fn check_update(new: &Field, old: &Field, errors: &mut Vec<FieldError>) {
    let external_name = |spec: &Field| spec.at("type").text() == "ExternalName";
    let balanced = |spec: &Field| spec.at("type").text() == "LoadBalancer";
    let (class, old_class) = (new.at("loadBalancerClass"), old.at("loadBalancerClass"));
    if balanced(new) && balanced(old) && class.value != old_class.value {
        errors.push(FieldError::invalid(class.path, class.value.clone(), "may not change once set"));
    }
    if external_name(new) || external_name(old) || (is_headless(new) && is_headless(old)) {
        return;
    }
    let (ips, old_ips) = (new.at("clusterIPs"), old.at("clusterIPs"));
    let mut refuse = |i: usize, detail: &str| {
        let path = format!("spec.clusterIPs[{i}]");
        errors.push(FieldError::invalid(path, ips.value.clone(), detail));
    };
    if old_ips.count() > 0 && ips.count() == 0 {
        refuse(0, "primary clusterIP can not be unset");
    }
    for (i, (now, before)) in ips.items().zip(old_ips.items()).enumerate() {
        if now.text() != before.text() {
            refuse(i, "may not change once set");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SERVICE;
    use crate::builtin::testing::{defaulted, refusals, stored, update_refusals, with};
    use serde_json::{Value, json};

    fn service() -> Value {
        defaulted(
            &SERVICE,
            json!({ "metadata": stored("web"), "spec": { "clusterIP": "10.96.0.7", "ports": [{ "port": 80 }] } }),
        )
    }

    #[test]
    fn a_service_has_named_unique_ports() {
        assert_eq!(refusals(&SERVICE, &service()), [""; 0]);
        assert_eq!(
            refusals(&SERVICE, &defaulted(&SERVICE, json!({ "spec": {} }))),
            ["spec.ports: Required value"]
        );
        let headless = json!({ "spec": { "clusterIP": "None" } });
        assert_eq!(refusals(&SERVICE, &defaulted(&SERVICE, headless)), [""; 0]);
        let ports = json!([
            { "port": 80, "name": "a" }, { "port": 80, "name": "a", "targetPort": "a_b" }, { "port": 0, "nodePort": 1 },
        ]);
        assert_eq!(
            refusals(&SERVICE, &defaulted(&SERVICE, with(service(), "/spec/ports", ports))),
            [
                "spec.ports[1].name: Duplicate value: \"a\"",
                "spec.ports[1].targetPort: Invalid value: \"a_b\": must contain only alpha-numeric characters \
                 (a-z, 0-9), and hyphens (-)",
                "spec.ports[2].name: Required value",
                "spec.ports[2].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[2].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[2].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
                "spec.ports[1]: Duplicate value: {\"port\":80,\"protocol\":\"TCP\"}",
            ]
        );
    }

    #[test]
    fn an_external_name_is_a_name_and_nothing_else() {
        let external = json!({ "spec": { "type": "ExternalName", "externalName": "db.example.com." } });
        assert_eq!(refusals(&SERVICE, &defaulted(&SERVICE, external)), [""; 0]);
        let addressed = json!({ "spec": { "type": "ExternalName", "clusterIP": "10.0.0.1" } });
        assert_eq!(
            refusals(&SERVICE, &defaulted(&SERVICE, addressed)),
            [
                "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
                "spec.externalName: Required value",
            ]
        );
    }

    #[test]
    fn enums_and_addresses_are_checked() {
        for (pointer, value, refusal) in [
            (
                "/spec/sessionAffinity",
                json!("Sticky"),
                "spec.sessionAffinity: Unsupported value: \"Sticky\": supported values: \"ClientIP\", \"None\"",
            ),
            (
                "/spec/externalTrafficPolicy",
                json!("Local"),
                "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible \
                 services",
            ),
            (
                "/spec/loadBalancerClass",
                json!("a/b"),
                "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
            ),
            (
                "/spec/clusterIP",
                json!("10.96.0.8"),
                "spec.clusterIPs: Invalid value: [\"10.96.0.7\"]: first value must match `clusterIP`",
            ),
            (
                "/spec/healthCheckNodePort",
                json!(1234),
                "spec.healthCheckNodePort: Invalid value: 1234: may only be set when `type` is 'LoadBalancer' and \
                 `externalTrafficPolicy` is 'Local'",
            ),
        ] {
            assert_eq!(refusals(&SERVICE, &with(service(), pointer, value)), [refusal]);
        }
    }

    #[test]
    fn an_address_stays() {
        let mut moved = service();
        moved["spec"]["clusterIP"] = json!("10.96.0.8");
        moved["spec"]["clusterIPs"] = json!(["10.96.0.8"]);
        assert_eq!(
            update_refusals(&SERVICE, &service(), &moved),
            ["spec.clusterIPs[0]: Invalid value: [\"10.96.0.8\"]: may not change once set"]
        );
    }
}
