//! What the `x-kubernetes-` marks of a schema promise about values: unique elements of sets and map lists,
//! and embedded objects that say what they are.
//!
//! Owns these promises; plain constraints are `validate`'s. Must never look at a list without such a mark.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::path::Path;
use super::{ListKind, Schema};
use crate::error::FieldError;

/// Duplicates in sets and map lists.
pub fn duplicates(schema: &Schema, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, value, &mut Path::default(), &mut errors, &mut |schema, value, path, errors| {
        if let Value::Array(list) = value {
            unique(&schema.list, list, path, errors);
        }
    });
    errors
}

/// Embedded objects without a usable `apiVersion` and `kind`.
pub fn embedded(schema: &Schema, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, value, &mut Path::default(), &mut errors, &mut |schema, value, path, errors| {
        if let (true, Value::Object(object)) = (schema.embedded_resource, value) {
            type_meta(object, path, errors);
        }
    });
    errors
}

type Visit<'a> = &'a mut dyn FnMut(&Schema, &Value, &mut Path, &mut Vec<FieldError>);

fn walk(schema: &Schema, value: &Value, path: &mut Path, errors: &mut Vec<FieldError>, visit: Visit<'_>) {
    visit(schema, value, path, errors);
    match value {
        Value::Object(object) => {
            for (name, child) in object {
                let (field, mark) = match (schema.properties.get(&**name), &schema.additional) {
                    (Some(field), _) => (field, path.field(name)),
                    (None, Some(values)) => (values, path.key(name)),
                    (None, None) => continue,
                };
                walk(field, child, path, errors, visit);
                path.back(mark);
            }
        }
        Value::Array(list) => {
            let Some(items) = &schema.items else { return };
            for (index, child) in list.iter().enumerate() {
                let mark = path.index(index);
                walk(items, child, path, errors, visit);
                path.back(mark);
            }
        }
        _ => {}
    }
}

fn unique(kind: &ListKind, list: &[Value], path: &mut Path, errors: &mut Vec<FieldError>) {
    match kind {
        ListKind::Atomic => {}
        ListKind::Set => {
            for index in repeated(list.iter().map(ToString::to_string)) {
                let mark = path.index(index);
                errors.push(FieldError::duplicate(path.as_str(), list[index].clone()));
                path.back(mark);
            }
        }
        ListKind::Map(keys) => {
            if let Some(index) = list.iter().position(|v| !v.is_object() && !v.is_null()) {
                let mark = path.index(index);
                let why = "must be an object for an array of list-type map";
                errors.push(FieldError::invalid(path.as_str(), list[index].clone(), why));
                path.back(mark);
                return;
            }
            let identity = |value: &Value| {
                let present =
                    keys.iter().filter_map(|key| Some((key.to_string(), value.get(&**key)?.clone())));
                Value::Object(present.collect::<Map<_, _>>())
            };
            for index in repeated(list.iter().map(|value| identity(value).to_string())) {
                let mark = path.index(index);
                errors.push(FieldError::duplicate(path.as_str(), identity(&list[index])));
                path.back(mark);
            }
        }
    }
}

/// The place of the second appearance of everything that appears more than once.
fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut again = Vec::new();
    for (index, text) in texts.enumerate() {
        let times = seen.entry(text).or_default();
        *times += 1;
        if *times == 2 {
            again.push(index);
        }
    }
    again
}

fn type_meta(object: &Map<String, Value>, path: &mut Path, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let mark = path.field(name);
        let at = path.as_str();
        match object.get(name) {
            None => errors.push(FieldError::required(at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(at, "", "must not be empty"));
            }
            Some(Value::String(text)) if name == "apiVersion" && text.matches('/').count() > 1 => {
                let why = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(at, text.as_str(), why));
            }
            Some(Value::String(text)) if name == "kind" && !is_kind(text) => {
                let why = "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower \
                           case alphanumeric characters or '-', start with an alphabetic character, and end with an \
                           alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                           '[a-z]([-a-z0-9]*[a-z0-9])?')";
                errors.push(FieldError::invalid(at, text.as_str(), why));
            }
            Some(Value::String(_)) => {}
            Some(other) => errors.push(FieldError::invalid(at, other.clone(), "must be a string")),
        }
        path.back(mark);
    }
}

fn is_kind(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::from_crd;
    use super::*;

    fn texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn keys_of_map_lists_and_members_of_sets_are_unique() {
        let schema = from_crd(&json!({"type": "object", "properties": {
            "disks": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "bus"],
                "items": {"type": "object", "properties": {"tags": {"type": "array", "x-kubernetes-list-type": "set"}}}},
            "groups": {"type": "object", "additionalProperties": {"type": "array", "x-kubernetes-list-type": "set"}},
        }}))
        .expect("a good schema");
        let value = json!({
            "disks": [{"name": "a"}, {"name": "b", "bus": 1, "tags": ["x", "y", "x", "x"]}, {"name": "a"}],
            "groups": {"g": [1, 1]},
        });
        assert_eq!(
            texts(&duplicates(&schema, &value)),
            [
                "disks[2]: Duplicate value: {\"name\":\"a\"}",
                "disks[1].tags[2]: Duplicate value: \"x\"",
                "groups[g][1]: Duplicate value: 1",
            ]
        );
        assert_eq!(
            texts(&duplicates(&schema, &json!({"disks": ["x"]}))),
            ["disks[0]: Invalid value: \"x\": must be an object for an array of list-type map"]
        );
    }

    #[test]
    fn an_embedded_object_says_what_it_is() {
        let schema = from_crd(&json!({"type": "object", "properties": {"template": {
            "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
        }}}))
        .expect("a good schema");
        assert_eq!(
            texts(&embedded(&schema, &json!({"template": {"apiVersion": "a/b/c"}}))),
            [
                "template.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "template.kind: Required value",
            ]
        );
        assert!(embedded(&schema, &json!({"template": {"apiVersion": "v1", "kind": "Pod"}})).is_empty());
    }
}
