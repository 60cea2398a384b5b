//! Defaults of a schema under admission: each must be a value that its own schema would accept.
//!
//! Owns that check. Must never be run on a schema that is not structural.

use serde_json::Value;

use super::Node;
use crate::error::FieldError;
use crate::schema::parse::part;
use crate::schema::path::NO_FIELD;
use crate::schema::validate::constraints;
use crate::schema::{cel, invariants, unknown_fields};

pub fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, path, true, &mut errors);
    errors
}

fn walk(schema: &Value, path: &str, root: bool, errors: &mut Vec<FieldError>) {
    let Some(node) = Node::of(schema) else { return };
    if let Some(default) = node.json("default") {
        one(schema, default, &format!("{path}.default"), errors);
    }
    if let Some(items) = node.json("items") {
        walk(items, &format!("{path}.items"), false, errors);
    }
    let properties = node.json("properties").and_then(Value::as_object);
    for (name, field) in properties.into_iter().flatten() {
        // Their defaults are refused altogether.
        if !(root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")) {
            walk(field, &format!("{path}.properties[{name}]"), false, errors);
        }
    }
}

fn one(schema: &Value, default: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Ok(schema) = part(schema) else { return };
    if !unknown_fields(&schema, default).is_empty() {
        errors.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
    }
    let mut found = constraints(&schema, default, None);
    if found.is_empty() {
        found = invariants::embedded(&schema, default);
        found.extend(cel::validate(&schema, default, None));
    }
    if found.is_empty() {
        // Rules about changes must let the default stay what it is.
        found = cel::validate(&schema, default, Some(default));
    }
    for error in found {
        let at = if error.path == NO_FIELD { path.to_string() } else { format!("{path}.{}", error.path) };
        errors.push(FieldError { path: at, ..error });
    }
}
