//! Secret: settings that must not be shown around.
//!
//! Owns folding `stringData` into `data`, the types with required keys, and immutability. Must never log a value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{fill_zero, len_at, map_mut, name, remove, str_at};
use super::{Builtin, Column, PLAIN, column, human};

pub static SECRET: Builtin = Builtin {
    kind: "Secret",
    plural: "secrets",
    singular: "secret",
    namespaced: true,
    schema: Secret::json_schema,
    default,
    columns: &[
        column::NAME,
        Column::text("Type", "What the secret is for; decides which keys it must have."),
        Column::text("Data", "How many keys it holds."),
        column::AGE,
    ],
    row,
    fields: |secret| vec![("type", str_at(secret, "/type").into())],
    ..PLAIN
};

fn default(secret: &mut Value) {
    fill_zero(secret, "/type", "Opaque");
    // A `stringData` of another shape stays where it is, for the schema check to refuse.
    if !secret.pointer("/stringData").is_some_and(Value::is_object) {
        return;
    }
    let Some(Value::Object(texts)) = remove(secret, "/stringData") else { return };
    let Some(data) = map_mut(secret, "/data") else { return };
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(key, BASE64.encode(text).into());
    }
}

fn row(secret: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(secret).into(),
        str_at(secret, "/type").into(),
        len_at(secret, "/data").into(),
        human::age(secret, now).into(),
    ]
}
