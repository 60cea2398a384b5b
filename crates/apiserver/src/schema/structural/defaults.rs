//! Defaults of a schema under admission: each must be a value that its own schema would accept.
//!
//! Owns that check. Must never be run on a schema that is not structural.

use serde_json::{Value, json};

use super::Node;
use crate::error::FieldError;
use crate::schema::{from_crd, unknown_fields, validate};

pub fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, path, true, &mut errors);
    errors
}

fn walk(schema: &Value, path: &str, root: bool, errors: &mut Vec<FieldError>) {
    let Some(node) = Node::of(schema) else { return };
    // The defaults of apiVersion, kind and metadata are refused altogether.
    if let Some(default) = node.json("default").filter(|_| !root) {
        one(schema, default, &format!("{path}.default"), errors);
    }
    if let Some(items) = node.json("items") {
        walk(items, &format!("{path}.items"), false, errors);
    }
    let properties = node.json("properties").and_then(Value::as_object);
    for (name, field) in properties.into_iter().flatten() {
        if !(root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")) {
            walk(field, &format!("{path}.properties[{name}]"), false, errors);
        }
    }
}

/// The default is put where the schema expects values: into an object with this one field.
fn one(schema: &Value, default: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "default";
    let Ok(around) = from_crd(&json!({"type": "object", "properties": {FIELD: schema}})) else { return };
    let object = json!({FIELD: default});
    if !unknown_fields(&around, &object).is_empty() {
        errors.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
    }
    let place = |text: String| match text.strip_prefix(FIELD) {
        Some(below) => format!("{path}{below}"),
        None => text,
    };
    for error in validate(&around, &object, None) {
        errors.push(FieldError { path: place(error.path), detail: place(error.detail), ..error });
    }
}
