//! CustomResourceDefinition: a kind that a user brings.
//!
//! Owns names, defaults and columns of this kind. Must never judge the schema inside; `crate::schema` does that.

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{bool_at, fill, fill_zero, is_set, list_at, name, str_at};
use super::{Builtin, Column, PLAIN, column};

pub static CUSTOM_RESOURCE_DEFINITION: Builtin = Builtin {
    group: "apiextensions.k8s.io",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    singular: "customresourcedefinition",
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    has_status: true,
    has_generation: true,
    needs_version: true,
    schema: CustomResourceDefinition::json_schema,
    default,
    columns: &[
        column::NAME,
        Column { kind: "date", ..Column::text("Created At", "When the definition was created.") },
    ],
    row,
    ..PLAIN
};

fn default(crd: &mut Value) {
    let kind = str_at(crd, "/spec/names/kind").to_string();
    if !kind.is_empty() {
        fill_zero(crd, "/spec/names/singular", kind.to_lowercase());
        fill_zero(crd, "/spec/names/listKind", format!("{kind}List"));
    }
    fill(crd, "/spec/conversion", json!({ "strategy": "None" }));
    if is_set(crd, "/spec/conversion/webhook/clientConfig/service") {
        fill(crd, "/spec/conversion/webhook/clientConfig/service/port", 443);
    }
    let stored = list_at(crd, "/spec/versions").iter().find(|v| bool_at(v, "/storage"));
    if let Some(version) = stored.map(|v| str_at(v, "/name").to_string()) {
        fill_zero(crd, "/status/storedVersions", json!([version]));
    }
}

fn row(crd: &Value, _now: Timestamp) -> Vec<Value> {
    vec![name(crd).into(), str_at(crd, "/metadata/creationTimestamp").into()]
}
