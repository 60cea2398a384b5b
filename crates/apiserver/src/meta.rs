//! `metadata`: what the server fills, keeps and refuses, for every kind alike.
//!
//! Must never look outside `metadata`, except at what a caller hands in.

use granary_api::names;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::builtin::NameRule;
use crate::error::FieldError;

/// RFC 3339 with whole seconds, as Kubernetes writes times.
pub fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub fn name(object: &Value) -> &str {
    text(object, "name")
}

pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub fn finalizers(object: &Value) -> Vec<&str> {
    let list = object["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

pub fn set_finalizers(object: &mut Value, finalizers: &[&str]) {
    let Some(meta) = members(object) else { return };
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".into(), finalizers.iter().map(|f| Value::from(*f)).collect());
    }
}

/// The members of `metadata`, which is made when it is missing.
pub fn members(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let root = object.as_object_mut()?;
    let meta = root.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if meta.is_null() {
        *meta = Value::Object(Map::new());
    }
    meta.as_object_mut()
}

const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A name from a `generateName` prefix.
pub fn generated_name(prefix: &str) -> String {
    let cut = prefix.char_indices().nth(names::GENERATE_NAME_MAX).map_or(prefix.len(), |(at, _)| at);
    let random = uuid::Uuid::new_v4();
    let letter = |byte: &u8| SUFFIX_LETTERS[usize::from(*byte) % SUFFIX_LETTERS.len()] as char;
    format!("{}{}", &prefix[..cut], random.as_bytes()[..5].iter().map(letter).collect::<String>())
}

/// Fills what only the server may say about a new object.
pub fn prepare_create(object: &mut Value, namespace: &str, namespaced: bool, now: Timestamp) {
    let Some(meta) = members(object) else { return };
    for field in
        ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "resourceVersion"]
    {
        meta.remove(field);
    }
    let generate = meta.get("generateName").and_then(Value::as_str).map(str::to_string);
    if meta.get("name").and_then(Value::as_str).is_none_or(str::is_empty)
        && let Some(prefix) = generate
    {
        meta.insert("name".into(), generated_name(&prefix).into());
    }
    if namespaced {
        meta.insert("namespace".into(), namespace.into());
    } else {
        meta.remove("namespace");
    }
    meta.insert("uid".into(), uuid::Uuid::new_v4().to_string().into());
    meta.insert("creationTimestamp".into(), time_text(now).into());
    drop_empty(meta);
}

/// Keeps what no client may change.
pub fn prepare_update(object: &mut Value, live: &Value) {
    let Some(meta) = members(object) else { return };
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
        "generateName",
        "selfLink",
    ] {
        match live["metadata"].get(field) {
            Some(kept) => meta.insert(field.into(), kept.clone()),
            None => meta.remove(field),
        };
    }
    drop_empty(meta);
}

/// Kubernetes never shows empty maps and lists here.
fn drop_empty(meta: &mut Map<String, Value>) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences", "managedFields"] {
        let empty = match meta.get(field) {
            Some(Value::Null) => true,
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty() && field != "managedFields",
            _ => false,
        };
        if empty {
            meta.remove(field);
        }
    }
    if meta.get("creationTimestamp").is_some_and(Value::is_null) {
        meta.remove("creationTimestamp");
    }
}

/// Refuses what Kubernetes refuses in the metadata of any kind. `name_rule` judges the name.
pub fn validate(object: &Value, old: Option<&Value>, name_rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let meta = &object["metadata"];
    validate_name(meta, old, name_rule, &mut errors);
    validate_labels(meta, &mut errors);
    validate_annotations(meta, &mut errors);
    validate_finalizers(object, old, &mut errors);
    validate_owners(meta, &mut errors);
    errors
}

fn validate_name(meta: &Value, old: Option<&Value>, name_rule: NameRule, errors: &mut Vec<FieldError>) {
    let name = meta["name"].as_str().unwrap_or_default();
    if let Some(old) = old {
        if old["metadata"]["name"] != meta["name"] {
            errors.push(FieldError::invalid("metadata.name", name, "field is immutable"));
        }
        return;
    }
    if let Some(prefix) = meta["generateName"].as_str().filter(|p| !p.is_empty()) {
        for problem in name_rule.complaints(&names::mask_generate_name(prefix)) {
            errors.push(FieldError::invalid("metadata.generateName", prefix, problem));
        }
    }
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
        return;
    }
    for problem in name_rule.complaints(name) {
        errors.push(FieldError::invalid("metadata.name", name, problem));
    }
}

fn validate_labels(meta: &Value, errors: &mut Vec<FieldError>) {
    let Some(labels) = meta["labels"].as_object() else { return };
    for (key, value) in labels {
        for problem in names::label_key(key) {
            errors.push(FieldError::invalid("metadata.labels", key.as_str(), problem));
        }
        for problem in names::label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid("metadata.labels", value.clone(), problem));
        }
    }
}

fn validate_annotations(meta: &Value, errors: &mut Vec<FieldError>) {
    let Some(annotations) = meta["annotations"].as_object() else { return };
    let mut size = 0;
    for (key, value) in annotations {
        size += key.len() + value.as_str().map_or(0, str::len);
        for problem in names::annotation_key(key) {
            errors.push(FieldError::invalid("metadata.annotations", key.as_str(), problem));
        }
    }
    if size > names::ANNOTATIONS_MAX_BYTES {
        let detail = format!("may not be more than {} bytes", names::ANNOTATIONS_MAX_BYTES);
        errors.push(FieldError::too_long("metadata.annotations", detail));
    }
}

fn validate_finalizers(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let finalizers = finalizers(object);
    for finalizer in &finalizers {
        for problem in names::label_key(finalizer) {
            errors.push(FieldError::invalid("metadata.finalizers", *finalizer, problem));
        }
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        errors.push(FieldError::invalid(
            "metadata.finalizers",
            object["metadata"]["finalizers"].clone(),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    let Some(old) = old.filter(|old| is_deleting(old)) else { return };
    let before = self::finalizers(old);
    let added: Vec<_> = finalizers.iter().filter(|f| !before.contains(f)).collect();
    if !added.is_empty() {
        let list = added.iter().map(|f| format!("{f:?}")).collect::<Vec<_>>().join(", ");
        errors.push(FieldError::forbidden(
            "metadata.finalizers",
            format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{list}}}"
            ),
        ));
    }
}

/// Built-in kinds also insist that a finalizer says whose it is.
pub fn validate_qualified_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    for (at, finalizer) in finalizers(object).into_iter().enumerate() {
        let standard = matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion");
        if !standard && !finalizer.contains('/') {
            errors.push(FieldError::invalid(
                format!("metadata.finalizers[{at}]"),
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
}

fn validate_owners(meta: &Value, errors: &mut Vec<FieldError>) {
    let Some(owners) = meta["ownerReferences"].as_array() else { return };
    let mut controllers = Vec::new();
    for owner in owners {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                // Kubernetes does not say which of the references it is.
                let path = format!("metadata.ownerReferences.{field}");
                let what =
                    if field == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                errors.push(FieldError::invalid(path, "", what));
            }
        }
        if owner["controller"] == true {
            controllers.push(owner["name"].as_str().unwrap_or_default());
        }
    }
    if controllers.len() > 1 {
        errors.push(FieldError::invalid(
            "metadata.ownerReferences",
            Value::Array(owners.clone()),
            format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                controllers[0], controllers[1]
            ),
        ));
    }
}

#[cfg(test)]
mod tests {
    use granary_api::names;
    use serde_json::json;

    use super::{NameRule, generated_name, prepare_create, prepare_update, validate};

    fn paths(object: &serde_json::Value, old: Option<&serde_json::Value>) -> Vec<String> {
        validate(object, old, NameRule::Subdomain).into_iter().map(|e| e.path).collect()
    }

    #[test]
    fn a_new_object_gets_its_identity_from_the_server() {
        let mut object = json!({"metadata": {"generateName": "web-", "uid": "mine", "labels": {}}});
        prepare_create(&mut object, "prod", true, jiff::Timestamp::UNIX_EPOCH);
        let meta = &object["metadata"];
        assert!(meta["name"].as_str().unwrap().starts_with("web-"));
        assert_ne!(meta["uid"], "mine");
        assert_eq!(
            (&meta["namespace"], &meta["creationTimestamp"]),
            (&json!("prod"), &json!("1970-01-01T00:00:00Z"))
        );
        assert!(meta.get("labels").is_none());
    }

    #[test]
    fn an_update_cannot_forge_what_the_server_said() {
        let live = json!({"metadata": {"name": "a", "uid": "u", "creationTimestamp": "t", "generation": 3}});
        let mut object =
            json!({"metadata": {"name": "a", "uid": "x", "generation": 9, "deletionTimestamp": "now"}});
        prepare_update(&mut object, &live);
        assert_eq!(object, live);
    }

    #[test]
    fn bad_metadata_is_refused_at_its_path() {
        assert_eq!(paths(&json!({"metadata": {}}), None), ["metadata.name"]);
        assert_eq!(paths(&json!({"metadata": {"name": "A_b"}}), None), ["metadata.name"]);
        assert_eq!(
            paths(&json!({"metadata": {"name": "a", "labels": {"k": "a b"}}}), None),
            ["metadata.labels"]
        );
        let old = json!({"metadata": {"name": "a", "deletionTimestamp": "t", "finalizers": ["x.io/a"]}});
        let new = json!({"metadata": {"name": "a", "deletionTimestamp": "t", "finalizers": ["x.io/b"]}});
        assert_eq!(paths(&new, Some(&old)), ["metadata.finalizers"]);
        let orphaned =
            json!({"metadata": {"name": "a", "ownerReferences": [{"kind": "K", "name": "n", "uid": "u"}]}});
        assert_eq!(paths(&orphaned, None), ["metadata.ownerReferences.apiVersion"]);
    }

    #[test]
    fn generated_names_keep_within_the_limit() {
        assert_eq!(generated_name(&"x".repeat(300)).len(), names::GENERATE_NAME_MAX + 5);
    }
}
