//! Secret: settings that must not be shown around.
//!
//! Owns folding `stringData` into `data`, the types with required keys, and immutability. Must never let a
//! value into a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::access::{fill_zero, len_at, map_mut, name, remove, str_at};
use super::config_map::{MAX_SIZE, check_frozen, check_key};
use super::field::Field;
use super::{Builtin, Column, PLAIN, column, human};
use crate::error::FieldError;

const REDACTED: &str = "<secret contents redacted>";

pub static SECRET: Builtin = Builtin {
    kind: "Secret",
    plural: "secrets",
    singular: "secret",
    namespaced: true,
    schema: Secret::json_schema,
    default,
    validate,
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
    let foldable =
        |value: &Value| value.as_object().is_some_and(|texts| texts.values().all(Value::is_string));
    if !secret.get("stringData").is_some_and(foldable) || map_mut(secret, "/data").is_none() {
        return;
    }
    let Some(Value::Object(texts)) = remove(secret, "/stringData") else { return };
    let Some(data) = map_mut(secret, "/data") else { return };
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(key, BASE64.encode(text).into());
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = Field::root(new);
    if let Some(old) = old {
        root.at("type").unchanged(&Field::root(old).at("type"), errors);
        check_frozen(new, old, &["data"], errors);
    }
    let data = root.at("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, errors);
        match BASE64.decode(value.text()) {
            Ok(bytes) => size += bytes.len(),
            Err(_) => errors.push(FieldError::invalid(value.path, REDACTED, "must be base64")),
        }
    }
    if size > MAX_SIZE {
        errors.push(data.too_long(MAX_SIZE));
    }
    check_type(&root, errors);
}

/// The keys that a secret of its type must have.
fn check_type(root: &Field, errors: &mut Vec<FieldError>) {
    let data = root.at("data");
    let mut need = |keys: &[&str]| {
        for key in keys.iter().map(|key| data.entry(key)).filter(|value| !value.is_set()) {
            errors.push(key.required(""));
        }
    };
    match root.at("type").text() {
        "kubernetes.io/service-account-token" => {
            let account = root.at("metadata.annotations").entry("kubernetes.io/service-account.name");
            account.need(errors);
        }
        "kubernetes.io/dockercfg" => check_docker_config(&data.entry(".dockercfg"), errors),
        "kubernetes.io/dockerconfigjson" => check_docker_config(&data.entry(".dockerconfigjson"), errors),
        // Either may be left out, but not both.
        "kubernetes.io/basic-auth"
            if !["username", "password"].iter().any(|key| data.entry(key).is_set()) =>
        {
            need(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth" => {
            data.entry("ssh-privatekey").need(errors);
        }
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"]),
        _ => {}
    }
}

fn check_docker_config(config: &Field, errors: &mut Vec<FieldError>) {
    if !config.is_set() {
        errors.push(config.required(""));
        return;
    }
    let bytes = BASE64.decode(config.text()).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<Map<String, Value>>(&bytes) {
        // Only where, never what: the message of the parser may quote the contents.
        let place = format!("must be a JSON object (line {}, column {})", error.line(), error.column());
        errors.push(FieldError::invalid(config.path.as_str(), REDACTED, place));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, refusals, stored, update_refusals, with};
    use serde_json::json;

    #[test]
    fn string_data_is_folded_into_data() {
        let sent =
            json!({ "data": { "kept": "AA==", "both": "AA==" }, "stringData": { "both": "hi", "new": "" } });
        assert_eq!(
            defaulted(&SECRET, sent),
            json!({ "type": "Opaque", "data": { "kept": "AA==", "both": "aGk=", "new": "" } })
        );
        let odd = json!({ "type": "x/y", "stringData": { "n": 1 }, "data": {} });
        assert_eq!(defaulted(&SECRET, odd.clone()), odd);
    }

    #[test]
    fn each_type_has_its_required_keys() {
        for (kind, data, wanted) in [
            ("Opaque", json!({}), vec![]),
            ("kubernetes.io/tls", json!({ "tls.crt": "" }), vec!["data[tls.key]: Required value"]),
            (
                "kubernetes.io/basic-auth",
                json!({}),
                vec!["data[username]: Required value", "data[password]: Required value"],
            ),
            ("kubernetes.io/basic-auth", json!({ "password": "" }), vec![]),
            ("kubernetes.io/ssh-auth", json!({}), vec!["data[ssh-privatekey]: Required value"]),
            ("kubernetes.io/dockerconfigjson", json!({}), vec!["data[.dockerconfigjson]: Required value"]),
            (
                "kubernetes.io/service-account-token",
                json!({}),
                vec!["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            ),
        ] {
            assert_eq!(refusals(&SECRET, &json!({ "type": kind, "data": data })), wanted, "{kind}");
        }
    }

    #[test]
    fn a_refusal_never_shows_the_value() {
        let secret = json!({
            "type": "kubernetes.io/dockercfg", "data": { ".dockercfg": BASE64.encode("hunter2"), "k": "hunter2!" },
        });
        let texts = refusals(&SECRET, &secret).join("\n");
        assert!(texts.contains("data[.dockercfg]: Invalid value: \"<secret contents redacted>\""), "{texts}");
        assert!(!texts.contains("hunter2"), "{texts}");
    }

    #[test]
    fn the_type_and_frozen_data_stay() {
        let old =
            json!({ "metadata": stored("s"), "type": "Opaque", "immutable": true, "data": { "a": "AA==" } });
        assert_eq!(update_refusals(&SECRET, &old, &old), [""; 0]);
        let new = with(with(old.clone(), "/type", json!("a/b")), "/data/a", json!("AB=="));
        assert_eq!(
            update_refusals(&SECRET, &old, &new),
            [
                "type: Invalid value: \"a/b\": field is immutable",
                "data: Forbidden: field is immutable when `immutable` is set",
                "data[a]: Invalid value: \"<secret contents redacted>\": must be base64",
            ]
        );
    }

    #[test]
    fn the_row_counts_keys() {
        let secret = json!({ "metadata": stored("s"), "type": "Opaque", "data": { "a": "", "b": "" } });
        assert_eq!(cells(&SECRET, &secret), ["s", "Opaque", "2", "5m12s"]);
        assert_eq!((SECRET.fields)(&secret), [("type", "Opaque".to_string())]);
    }
}
