//! Service: a stable name for a set of pods.
//!
//! Owns defaults and printed cells of this kind; its rules are in the file beside it. Must never hand out
//! addresses or ports: there is no allocator.

mod rules;

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{
    at, each_mut, entries_at, fill, fill_zero, int_at, is_set, is_zero, list_at, name, remove, str_at,
    texts_at,
};
use super::{Builtin, Column, NameRule, PLAIN, column, human};

/// How long a client sticks to one pod when `sessionAffinity` is `ClientIP`: three hours.
const STICKY_SECONDS: i64 = 10800;

pub static SERVICE: Builtin = Builtin {
    kind: "Service",
    plural: "services",
    singular: "service",
    short_names: &["svc"],
    categories: &["all"],
    namespaced: true,
    name_rule: NameRule::Label,
    has_status: true,
    create_on_update: true,
    schema: Service::json_schema,
    default,
    carry,
    validate: rules::validate,
    columns: &[
        column::NAME,
        Column::text("Type", "How the service can be reached."),
        Column::text("Cluster-IP", "Its address within the cluster."),
        Column::text("External-IP", "Its addresses outside the cluster."),
        Column::text("Port(s)", "The ports it listens on."),
        column::AGE,
        Column::text("Selector", "The labels of the pods behind it.").wide(),
    ],
    row,
    fields: |service| {
        vec![
            ("spec.clusterIP", str_at(service, "/spec/clusterIP").into()),
            ("spec.type", str_at(service, "/spec/type").into()),
        ]
    },
    ..PLAIN
};

fn default(service: &mut Value) {
    fill_zero(service, "/spec/sessionAffinity", "None");
    match str_at(service, "/spec/sessionAffinity") {
        "None" => drop(remove(service, "/spec/sessionAffinityConfig")),
        "ClientIP" => fill(service, "/spec/sessionAffinityConfig/clientIP/timeoutSeconds", STICKY_SECONDS),
        _ => {}
    }
    fill_zero(service, "/spec/type", "ClusterIP");
    for port in each_mut(service, "/spec/ports") {
        fill_zero(port, "/protocol", "TCP");
        let number = at(port, "/port").clone();
        if !number.is_null() {
            fill_zero(port, "/targetPort", number);
        }
    }
    let kind = str_at(service, "/spec/type").to_string();
    let external = !is_zero(at(service, "/spec/externalIPs"));
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && external) {
        fill_zero(service, "/spec/externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        fill(service, "/spec/internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(service, "/spec/allocateLoadBalancerNodePorts", true);
        for ingress in each_mut(service, "/status/loadBalancer/ingress") {
            if !str_at(ingress, "/ip").is_empty() {
                fill(ingress, "/ipMode", "VIP");
            }
        }
    }
    let address = str_at(service, "/spec/clusterIP").to_string();
    if !address.is_empty() {
        fill_zero(service, "/spec/clusterIPs", json!([address]));
    }
    fill(service, "/status/loadBalancer", json!({}));
}

/// A service keeps the address it has when an update does not mention it, and loses what its new type cannot have.
fn carry(new: &mut Value, old: &Value, _now: Timestamp) {
    drop_what_the_type_lost(new, old);
    keep_address(new, old);
}

/// Clears fields that no longer make sense, but only where the update left them as they were: a value that the
/// client set on purpose is refused later.
fn drop_what_the_type_lost(new: &mut Value, old: &Value) {
    let is = |service: &Value, kinds: &[&str]| kinds.contains(&str_at(service, "/spec/type"));
    let lost = |kinds: &[&str], new: &Value| is(old, kinds) && !is(new, kinds);
    let mut gone = Vec::new();
    if lost(&["ClusterIP", "NodePort", "LoadBalancer"], new) && is(new, &["ExternalName"]) {
        gone.extend(["/spec/clusterIP", "/spec/clusterIPs", "/spec/ipFamilies", "/spec/ipFamilyPolicy"]);
    }
    if lost(&["LoadBalancer"], new) {
        gone.extend([
            "/spec/loadBalancerClass",
            "/spec/allocateLoadBalancerNodePorts",
            "/spec/healthCheckNodePort",
        ]);
    }
    if lost(&["NodePort", "LoadBalancer"], new) {
        if is_zero(at(new, "/spec/externalIPs")) {
            gone.push("/spec/externalTrafficPolicy");
        }
        let had: Vec<Option<i64>> =
            list_at(old, "/spec/ports").iter().map(|p| int_at(p, "/nodePort")).collect();
        for port in each_mut(new, "/spec/ports") {
            if had.contains(&int_at(port, "/nodePort")) {
                remove(port, "/nodePort");
            }
        }
    }
    for pointer in gone {
        if at(new, pointer) == at(old, pointer) {
            remove(new, pointer);
        }
    }
    if !is(new, &["LoadBalancer"]) {
        remove(new, "/status/loadBalancer");
        fill(new, "/status/loadBalancer", json!({}));
    }
}

fn keep_address(new: &mut Value, old: &Value) {
    let external_name = |service: &Value| str_at(service, "/spec/type") == "ExternalName";
    let mentioned = !str_at(new, "/spec/clusterIP").is_empty() || !is_zero(at(new, "/spec/clusterIPs"));
    if mentioned || external_name(new) || external_name(old) {
        return;
    }
    for pointer in ["/spec/clusterIP", "/spec/clusterIPs"] {
        let stored = at(old, pointer).clone();
        if !is_zero(&stored) {
            fill_zero(new, pointer, stored);
        }
    }
}

fn row(service: &Value, now: Timestamp) -> Vec<Value> {
    let cluster_ip = match texts_at(service, "/spec/clusterIPs").first() {
        Some(address) => address,
        None => "<none>",
    };
    let ports = list_at(service, "/spec/ports").iter().map(port).collect::<Vec<_>>().join(",");
    vec![
        name(service).into(),
        str_at(service, "/spec/type").into(),
        cluster_ip.into(),
        external_ip(service).into(),
        or_none(ports).into(),
        human::age(service, now).into(),
        selector(service).into(),
    ]
}

fn port(port: &Value) -> String {
    let number = int_at(port, "/port").unwrap_or_default();
    let protocol = str_at(port, "/protocol");
    match int_at(port, "/nodePort").unwrap_or_default() {
        ..=0 => format!("{number}/{protocol}"),
        node_port => format!("{number}:{node_port}/{protocol}"),
    }
}

fn external_ip(service: &Value) -> String {
    let mut addresses = texts_at(service, "/spec/externalIPs");
    match str_at(service, "/spec/type") {
        "ClusterIP" | "NodePort" => or_none(addresses.join(",")),
        "LoadBalancer" => {
            let ingress = list_at(service, "/status/loadBalancer/ingress").iter();
            let balancers: BTreeSet<&str> = ingress
                .map(|i| if is_set(i, "/ip") { str_at(i, "/ip") } else { str_at(i, "/hostname") })
                .filter(|text| !text.is_empty())
                .collect();
            let mut all: Vec<&str> = balancers.into_iter().collect();
            all.append(&mut addresses);
            if all.is_empty() { "<pending>".into() } else { all.join(",") }
        }
        "ExternalName" => str_at(service, "/spec/externalName").into(),
        _ => "<unknown>".into(),
    }
}

fn selector(service: &Value) -> String {
    let mut pairs: Vec<String> = entries_at(service, "/spec/selector")
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    or_none(pairs.join(","))
}

fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, now, stored, with};

    fn service() -> Value {
        defaulted(
            &SERVICE,
            json!({ "metadata": stored("web"), "spec": {
                "selector": { "app": "web", "a": "b" }, "ports": [{ "port": 80 }, { "port": 443, "targetPort": "tls" }],
            } }),
        )
    }

    #[test]
    fn a_service_is_reached_within_the_cluster_by_default() {
        assert_eq!(
            service()["spec"],
            json!({
                "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                "selector": { "app": "web", "a": "b" },
                "ports": [
                    { "port": 80, "targetPort": 80, "protocol": "TCP" },
                    { "port": 443, "targetPort": "tls", "protocol": "TCP" },
                ],
            })
        );
        assert_eq!(service()["status"], json!({ "loadBalancer": {} }));

        let sticky =
            defaulted(&SERVICE, json!({ "spec": { "sessionAffinity": "ClientIP", "clusterIP": "None" } }));
        assert_eq!(
            sticky["spec"]["sessionAffinityConfig"],
            json!({ "clientIP": { "timeoutSeconds": 10800 } })
        );
        assert_eq!(sticky["spec"]["clusterIPs"], json!(["None"]));

        let balanced = defaulted(&SERVICE, json!({ "spec": { "type": "LoadBalancer" } }));
        assert_eq!(balanced["spec"]["externalTrafficPolicy"], "Cluster");
        assert_eq!(balanced["spec"]["allocateLoadBalancerNodePorts"], true);
    }

    #[test]
    fn an_update_without_the_address_keeps_it() {
        let old = defaulted(&SERVICE, with(service(), "/spec/clusterIP", json!("10.96.0.7")));
        let mut new = service();
        (SERVICE.carry)(&mut new, &old, now());
        assert_eq!(new["spec"]["clusterIP"], "10.96.0.7");
        assert_eq!(new["spec"]["clusterIPs"], json!(["10.96.0.7"]));
    }

    #[test]
    fn a_service_that_is_no_longer_balanced_forgets_its_balancer() {
        let spec = json!({ "type": "LoadBalancer", "loadBalancerClass": "x.io/y", "ports": [{ "port": 80, "nodePort": 30080 }] });
        let mut old = defaulted(&SERVICE, json!({ "metadata": stored("web"), "spec": spec }));
        old["status"]["loadBalancer"]["ingress"] = json!([{ "ip": "192.0.2.7" }]);
        let mut new = defaulted(&SERVICE, with(old.clone(), "/spec/type", json!("ClusterIP")));
        (SERVICE.carry)(&mut new, &old, now());
        let left = json!({
            "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{ "port": 80, "targetPort": 80, "protocol": "TCP" }],
        });
        assert_eq!(new["spec"], left);
        assert_eq!(new["status"], json!({ "loadBalancer": {} }));
    }

    #[test]
    fn the_row_shows_addresses_and_ports() {
        assert_eq!(
            cells(&SERVICE, &service()),
            ["web", "ClusterIP", "<none>", "<none>", "80/TCP,443/TCP", "5m12s", "a=b,app=web"]
        );
        let mut balanced = with(service(), "/spec/type", json!("LoadBalancer"));
        assert_eq!(cells(&SERVICE, &balanced)[3], "<pending>");
        balanced["status"]["loadBalancer"]["ingress"] = json!([{ "ip": "192.0.2.7" }, { "hostname": "lb" }]);
        balanced["spec"]["ports"][0]["nodePort"] = json!(30080);
        let row = cells(&SERVICE, &balanced);
        assert_eq!(row[3..5], ["192.0.2.7,lb", "80:30080/TCP,443/TCP"]);
    }
}
