//! Node: a machine that runs pods.
//!
//! Owns taints, addresses and printed cells of this kind. Must never decide where a pod runs.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{at, bool_at, entries_at, fill, list_at, name, str_at};
use super::{Builtin, Column, PLAIN, column, human};

pub static NODE: Builtin = Builtin {
    kind: "Node",
    plural: "nodes",
    singular: "node",
    short_names: &["no"],
    has_status: true,
    status_on_create: true,
    schema: Node::json_schema,
    default,
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
    let capacity = at(node, "/status/capacity").clone();
    if capacity.is_object() {
        fill(node, "/status/allocatable", capacity);
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
        address(node, "InternalIP").into(),
        address(node, "ExternalIP").into(),
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

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let found = list_at(node, "/status/addresses").iter().find(|a| str_at(a, "/type") == kind);
    found.map_or("<none>", |a| str_at(a, "/address"))
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() { "<unknown>" } else { text }
}
