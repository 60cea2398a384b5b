//! Node: a machine that runs pods.
//!
//! Owns taints, addresses and printed cells of this kind. Must never decide where a pod runs.

use std::collections::BTreeSet;

use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{at, bool_at, entries_at, fill, list_at, mirror_first, name, str_at};
use super::field::Field;
use super::{Builtin, Column, PLAIN, address, column, human, quantity};
use crate::error::{FieldError, FieldReason};

pub static NODE: Builtin = Builtin {
    kind: "Node",
    plural: "nodes",
    singular: "node",
    short_names: &["no"],
    has_status: true,
    status_on_create: true,
    schema: Node::json_schema,
    default,
    validate,
    columns: &[
        column::NAME,
        Column::text("Status", "Ready, NotReady or Unknown, and whether pods may be placed on it."),
        Column::text("Roles", "What its labels say it is for."),
        column::AGE,
        Column::text("Version", "The version of its agent."),
        Column::text("Internal-IP", "Its address within the cluster.").wide(),
        Column::text("External-IP", "Its address outside the cluster.").wide(),
        Column::text("OS-Image", "The operating system it runs.").wide(),
        Column::text("Kernel-Version", "The kernel it runs.").wide(),
        Column::text("Container-Runtime", "The program that runs its containers.").wide(),
    ],
    row,
    fields: |node| vec![("spec.unschedulable", bool_at(node, "/spec/unschedulable").to_string())],
    ..PLAIN
};

fn default(node: &mut Value) {
    fill(node, "/spec", json!({}));
    mirror_first(node, "/spec/podCIDR", "/spec/podCIDRs");
    let capacity = at(node, "/status/capacity").clone();
    if capacity.is_object() {
        fill(node, "/status/allocatable", capacity);
    }
    quantity::canonical_map(node, "/status/capacity");
    quantity::canonical_map(node, "/status/allocatable");
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = Field::root(new);
    check_taints(&root.at("spec.taints").known_as("metadata.taints"), errors);
    for list in ["status.capacity", "status.allocatable"] {
        for (resource, amount) in root.at(list).entries() {
            quantity::check(&amount.known_as(format!("{list}.{resource}")), errors);
        }
    }
    let ranges = root.at("spec.podCIDRs");
    ranges.items().for_each(|range| range.follow(address::cidr, errors));
    let six = ranges.items().filter(|range| range.text().contains(':')).count();
    if ranges.count() > 2 || (ranges.count() == 2 && six != 1) {
        errors.push(ranges.invalid("may specify no more than one CIDR for each IP family"));
    }
    if let Some(old) = old {
        check_update(&root, &Field::root(old), errors);
    }
}

fn check_taints(taints: &Field, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for taint in taints.items() {
        taint.at("key").follow(names::label_key, errors);
        let value = taint.at("value");
        let complaints = names::label_value(value.text());
        if !complaints.is_empty() {
            errors.push(value.invalid(complaints.join(";")));
        }
        taint.at("effect").need_one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        if !seen.insert((taint.at("key").text(), taint.at("effect").text())) {
            let detail = "taints must be unique by key and effect pair".into();
            errors.push(FieldError { reason: FieldReason::Duplicate, detail, ..taint.duplicate() });
        }
    }
}

fn check_update(new: &Field, old: &Field, errors: &mut Vec<FieldError>) {
    let mut seen = Vec::new();
    for address in new.at("status.addresses").items() {
        if seen.contains(&address.value) {
            errors.push(address.duplicate());
        }
        seen.push(address.value);
    }
    for (field, name) in [("spec.podCIDRs", "podCIDR"), ("spec.providerID", "providerID")] {
        let (new, old) = (new.at(field), old.at(field));
        if !old.is_empty() && new.value != old.value {
            let detail = format!("node updates may not change {name} except from \"\" to valid");
            errors.push(new.forbidden(detail));
        }
    }
}

fn row(node: &Value, now: Timestamp) -> Vec<Value> {
    let info = |field| str_at(node, &format!("/status/nodeInfo/{field}"));
    let mut kernel = or_unknown(info("kernelVersion")).to_string();
    if !info("architecture").is_empty() {
        kernel.push_str(&format!(" ({})", info("architecture")));
    }
    vec![
        name(node).into(),
        status(node).into(),
        roles(node).into(),
        human::age(node, now).into(),
        info("kubeletVersion").into(),
        address_of(node, "InternalIP").into(),
        address_of(node, "ExternalIP").into(),
        or_unknown(info("osImage")).into(),
        kernel.into(),
        or_unknown(info("containerRuntimeVersion")).into(),
    ]
}

fn status(node: &Value) -> String {
    let ready = list_at(node, "/status/conditions").iter().rfind(|c| str_at(c, "/type") == "Ready");
    let mut status = match ready.map(|c| str_at(c, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_string();
    if bool_at(node, "/spec/unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(node: &Value) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in entries_at(node, "/metadata/labels") {
        let role = match key {
            "kubernetes.io/role" => value.as_str().unwrap_or_default(),
            _ => key.strip_prefix("node-role.kubernetes.io/").unwrap_or_default(),
        };
        if !role.is_empty() {
            roles.insert(role);
        }
    }
    if roles.is_empty() { "<none>".into() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn address_of<'a>(node: &'a Value, kind: &str) -> &'a str {
    let found = list_at(node, "/status/addresses").iter().find(|a| str_at(a, "/type") == kind);
    found.map_or("<none>", |a| str_at(a, "/address"))
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() { "<unknown>" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, refusals, stored, update_refusals, with};

    fn node() -> Value {
        let mut node = json!({ "metadata": stored("node-1"), "spec": { "podCIDRs": ["10.1.0.0/24"] }, "status": {
            "capacity": { "cpu": "2", "memory": "2048Mi" },
            "conditions": [{ "type": "Ready", "status": "True" }],
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
            "nodeInfo": { "kubeletVersion": "v1.36.0", "kernelVersion": "6.12", "architecture": "amd64" },
        } });
        node["metadata"]["labels"] =
            json!({ "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "control-plane" });
        defaulted(&NODE, node)
    }

    #[test]
    fn all_of_a_node_can_be_used_unless_it_says_otherwise() {
        assert_eq!(node()["status"]["allocatable"], json!({ "cpu": "2", "memory": "2Gi" }));
        assert_eq!(refusals(&NODE, &node()), [""; 0]);
    }

    #[test]
    fn taints_ranges_and_amounts_are_checked() {
        let mut bad = node();
        bad["spec"]["taints"] = json!([
            { "key": "a", "effect": "NoSchedule" }, { "key": "a", "effect": "NoSchedule" },
            { "key": "b", "effect": "Never" },
        ]);
        bad["spec"]["podCIDRs"] = json!(["10.0.0.0/24", "10.1.0.0/24"]);
        bad["status"]["capacity"]["cpu"] = json!("-1");
        assert_eq!(
            refusals(&NODE, &bad),
            [
                "metadata.taints[1]: Duplicate value: {\"effect\":\"NoSchedule\",\"key\":\"a\"}: taints must be \
                 unique by key and effect pair",
                "metadata.taints[2].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \
                 \"PreferNoSchedule\", \"NoExecute\"",
                "status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
                "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no more than one \
                 CIDR for each IP family",
            ]
        );
    }

    #[test]
    fn a_node_keeps_its_range_and_address() {
        let moved = with(node(), "/spec/podCIDRs", json!(["10.2.0.0/24"]));
        assert_eq!(
            update_refusals(&NODE, &node(), &moved),
            ["spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid"]
        );
        let address = json!({ "type": "InternalIP", "address": "10.0.0.1" });
        let twice = with(node(), "/status/addresses", json!([address, address]));
        assert_eq!(
            update_refusals(&NODE, &node(), &twice),
            ["status.addresses[1]: Duplicate value: {\"address\":\"10.0.0.1\",\"type\":\"InternalIP\"}"]
        );
    }

    #[test]
    fn the_row_shows_readiness_and_roles() {
        assert_eq!(
            cells(&NODE, &node()),
            [
                "node-1",
                "Ready",
                "control-plane,worker",
                "5m12s",
                "v1.36.0",
                "10.0.0.1",
                "<none>",
                "<unknown>",
                "6.12 (amd64)",
                "<unknown>"
            ]
        );
        let mut cordoned = with(node(), "/status/conditions/0/status", json!("Unknown"));
        cordoned["spec"]["unschedulable"] = json!(true);
        assert_eq!(cells(&NODE, &cordoned)[1], "NotReady,SchedulingDisabled");
        assert_eq!(cells(&NODE, &json!({}))[1..3], ["Unknown", "<none>"]);
        assert_eq!((NODE.fields)(&cordoned), [("spec.unschedulable", "true".to_string())]);
    }
}
