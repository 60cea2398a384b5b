//! ConfigMap: plain settings as text or bytes.
//!
//! Owns the key rules, the size limit and the `immutable` flag of this kind. Must never look into values.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{len_at, name};
use super::{Builtin, Column, PLAIN, column, human};

pub static CONFIG_MAP: Builtin = Builtin {
    kind: "ConfigMap",
    plural: "configmaps",
    singular: "configmap",
    short_names: &["cm"],
    namespaced: true,
    schema: ConfigMap::json_schema,
    columns: &[column::NAME, Column::text("Data", "How many keys it holds."), column::AGE],
    row,
    ..PLAIN
};

fn row(map: &Value, now: Timestamp) -> Vec<Value> {
    let keys = len_at(map, "/data") + len_at(map, "/binaryData");
    vec![name(map).into(), keys.into(), human::age(map, now).into()]
}
