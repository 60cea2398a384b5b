//! Namespace: where namespaced objects live.
//!
//! Owns the `kubernetes` finalizer, the name label and the phase of a fresh namespace. Must never delete contents.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{fill_zero, is_set, map_mut, name, str_at};
use super::{Builtin, Column, NameRule, PLAIN, column, human};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub static NAMESPACE: Builtin = Builtin {
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short_names: &["ns"],
    name_rule: NameRule::Label,
    has_status: true,
    schema: Namespace::json_schema,
    default,
    columns: &[
        column::NAME,
        Column::text("Status", "Active, or Terminating while its contents are deleted."),
        column::AGE,
    ],
    row,
    fields: |namespace| vec![("status.phase", str_at(namespace, "/status/phase").into())],
    ..PLAIN
};

fn default(namespace: &mut Value) {
    let own_name = name(namespace).to_string();
    if !own_name.is_empty()
        && let Some(labels) = map_mut(namespace, "/metadata/labels")
    {
        labels.insert(NAME_LABEL.into(), own_name.into());
    }
    // Once deletion has begun, the finalizer may go, and must not come back.
    if !is_set(namespace, "/metadata/deletionTimestamp") {
        fill_zero(namespace, "/spec/finalizers", json!(["kubernetes"]));
    }
    fill_zero(namespace, "/status/phase", "Active");
}

fn row(namespace: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(namespace).into(), str_at(namespace, "/status/phase").into(), human::age(namespace, now).into()]
}
