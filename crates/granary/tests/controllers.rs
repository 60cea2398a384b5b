//! The `kube` crate's runtime against Granary, in this process and over TLS: the same stories, the same ends.

#![expect(clippy::unwrap_used, reason = "a story ends where its scenery breaks")]

#[path = "controllers/admission.rs"]
mod admission;
#[path = "controllers/controller.rs"]
mod controller;
#[path = "controllers/kinds.rs"]
mod kinds;
#[path = "controllers/leases_and_events.rs"]
mod leases_and_events;
#[path = "controllers/restart.rs"]
mod restart;
mod support;
#[path = "controllers/watching.rs"]
mod watching;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;

fn config_map(name: &str, labels: &[(&str, &str)]) -> ConfigMap {
    let labels: BTreeMap<_, _> = labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            labels: (!labels.is_empty()).then_some(labels),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}
