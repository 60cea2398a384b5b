//! ConfigMap: plain settings as text or bytes.
//!
//! Owns the key rules, the size limit and the `immutable` flag of this kind. Must never look into values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{bool_at, len_at, name, same_at};
use super::field::Field;
use super::{Builtin, Column, PLAIN, column, human};
use crate::error::FieldError;

/// All values of one ConfigMap or Secret together.
pub const MAX_SIZE: usize = 1024 * 1024;

pub static CONFIG_MAP: Builtin = Builtin {
    kind: "ConfigMap",
    plural: "configmaps",
    singular: "configmap",
    short_names: &["cm"],
    namespaced: true,
    schema: ConfigMap::json_schema,
    validate,
    columns: &[column::NAME, Column::text("Data", "How many keys it holds."), column::AGE],
    row,
    ..PLAIN
};

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if let Some(old) = old {
        check_frozen(new, old, &["data", "binaryData"], errors);
    }
    let root = Field::root(new);
    let (data, binary) = (root.at("data"), root.at("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, errors);
        if binary.entry(key).is_set() {
            errors.push(FieldError::invalid(
                value.path.as_str(),
                key,
                "duplicate of key present in binaryData",
            ));
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        check_key(key, &value, errors);
        match BASE64.decode(value.text()) {
            Ok(bytes) => size += bytes.len(),
            Err(error) => errors.push(value.invalid(format!("must be base64: {error}"))),
        }
    }
    if size > MAX_SIZE {
        // The whole object is meant; Kubernetes spells that as an empty list of keys.
        errors.push(FieldError { path: "[]".into(), ..root.too_long(MAX_SIZE) });
    }
}

pub fn check_key(key: &str, value: &Field, errors: &mut Vec<FieldError>) {
    let complaints = names::config_key(key).into_iter();
    errors.extend(complaints.map(|complaint| FieldError::invalid(value.path.as_str(), key, complaint)));
}

/// An object that was declared immutable keeps its flag and its data.
pub fn check_frozen(new: &Value, old: &Value, data: &[&str], errors: &mut Vec<FieldError>) {
    if !bool_at(old, "/immutable") {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if !bool_at(new, "/immutable") {
        errors.push(FieldError::forbidden("immutable", detail));
    }
    for field in data {
        if !same_at(new, old, &format!("/{field}")) {
            errors.push(FieldError::forbidden(*field, detail));
        }
    }
}

fn row(map: &Value, now: Timestamp) -> Vec<Value> {
    let keys = len_at(map, "/data") + len_at(map, "/binaryData");
    vec![name(map).into(), keys.into(), human::age(map, now).into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, refusals, stored, update_refusals, with};
    use serde_json::json;

    fn map() -> Value {
        json!({ "metadata": stored("settings"), "data": { "a": "1" }, "binaryData": { "b": "AAE=" } })
    }

    #[test]
    fn keys_values_and_size_are_checked() {
        assert_eq!(refusals(&CONFIG_MAP, &map()), [""; 0]);
        let bad = with(map(), "/data", json!({ "b": "x", "no/slash": "y" }));
        assert_eq!(
            refusals(&CONFIG_MAP, &bad),
            [
                "data[b]: Invalid value: \"b\": duplicate of key present in binaryData",
                "data[no/slash]: Invalid value: \"no/slash\": a valid config key must consist of alphanumeric \
                 characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for \
                 validation is '[-._a-zA-Z0-9]+')",
            ]
        );
        let large = with(map(), "/data", json!({ "a": "x".repeat(MAX_SIZE) }));
        assert_eq!(refusals(&CONFIG_MAP, &large), ["[]: Too long: may not be more than 1048576 bytes"]);
        let text = with(map(), "/binaryData", json!({ "b": "not base64!" }));
        assert_eq!(refusals(&CONFIG_MAP, &text).len(), 1);
    }

    #[test]
    fn an_immutable_map_keeps_its_data() {
        let frozen = with(map(), "/immutable", json!(true));
        assert_eq!(update_refusals(&CONFIG_MAP, &frozen, &frozen), [""; 0]);
        assert_eq!(update_refusals(&CONFIG_MAP, &map(), &frozen), [""; 0]);
        assert_eq!(
            update_refusals(&CONFIG_MAP, &frozen, &with(map(), "/data", json!({ "a": "2" }))),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ]
        );
    }

    #[test]
    fn the_row_counts_text_and_binary_keys() {
        assert_eq!(cells(&CONFIG_MAP, &map()), ["settings", "2", "5m12s"]);
    }
}
