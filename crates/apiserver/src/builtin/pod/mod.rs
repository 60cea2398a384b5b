//! Pod: containers that run together on one node.
//!
//! Owns names, columns and selectable fields; defaults, cells and rules are in the files beside it.
//! Must never run anything.

mod containers;
mod defaults;
mod environment;
mod mounts;
mod probes;
mod qos;
mod resources;
mod row;
mod rules;
mod scheduling;
mod update;
mod volumes;

use k8s_openapi::api::core::v1::Pod;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{bool_at, list_at, str_at};
use super::{Builtin, Column, PLAIN, column};

pub static POD: Builtin = Builtin {
    kind: "Pod",
    plural: "pods",
    singular: "pod",
    short_names: &["po"],
    categories: &["all"],
    namespaced: true,
    has_status: true,
    has_generation: true,
    schema: Pod::json_schema,
    default: defaults::default,
    validate: rules::validate,
    columns: &[
        column::NAME,
        Column::text("Ready", "How many of its containers are ready."),
        Column::text("Status", "What the pod is doing, or what is wrong with it."),
        Column::text("Restarts", "How often containers were restarted, and when last."),
        column::AGE,
        Column::text("IP", "The address of the pod.").wide(),
        Column::text("Node", "The node it runs on.").wide(),
        Column::text("Nominated Node", "The node where room is being made for it.").wide(),
        Column::text("Readiness Gates", "How many extra conditions for readiness are met.").wide(),
    ],
    row: row::row,
    fields,
    ..PLAIN
};

fn fields(pod: &Value) -> Vec<(&'static str, String)> {
    vec![
        ("spec.nodeName", str_at(pod, "/spec/nodeName").into()),
        ("spec.restartPolicy", str_at(pod, "/spec/restartPolicy").into()),
        ("spec.schedulerName", str_at(pod, "/spec/schedulerName").into()),
        ("spec.serviceAccountName", str_at(pod, "/spec/serviceAccountName").into()),
        ("spec.hostNetwork", bool_at(pod, "/spec/hostNetwork").to_string()),
        ("status.phase", str_at(pod, "/status/phase").into()),
        ("status.podIP", ip(pod).into()),
        ("status.podIPs", ip(pod).into()),
        ("status.nominatedNodeName", str_at(pod, "/status/nominatedNodeName").into()),
    ]
}

/// The pod's first address.
fn ip(pod: &Value) -> &str {
    match list_at(pod, "/status/podIPs").first() {
        Some(first) => str_at(first, "/ip"),
        None => str_at(pod, "/status/podIP"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{defaulted, stored, with};
    use serde_json::json;

    /// A pod with one container that mounts a claim.
    pub fn pod() -> Value {
        defaulted(
            &POD,
            json!({ "metadata": stored("web-0"), "spec": {
                "containers": [{
                    "name": "web", "image": "nginx", "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
                }],
                "volumes": [
                    { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
                    { "name": "scratch", "emptyDir": {} },
                ],
            } }),
        )
    }

    #[test]
    fn selectors_see_where_a_pod_runs() {
        let pod = with(with(pod(), "/spec/nodeName", json!("node-1")), "/status/podIP", json!("10.0.0.1"));
        let fields = (POD.fields)(&pod);
        for wanted in [
            ("spec.nodeName", "node-1"),
            ("spec.restartPolicy", "Always"),
            ("spec.hostNetwork", "false"),
            ("status.phase", "Pending"),
            ("status.podIP", "10.0.0.1"),
        ] {
            assert!(fields.contains(&(wanted.0, wanted.1.into())), "{wanted:?} in {fields:?}");
        }
    }
}
