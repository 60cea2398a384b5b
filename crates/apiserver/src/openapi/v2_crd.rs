//! Schemas of custom kinds in OpenAPI 2.0, which can say less than they do.
//!
//! Owns what is left out. A schema may become more permissive on the way, never stricter: clients check
//! objects against it before they send them.

use serde_json::{Map, Value};

/// The schema without what version 2 or its readers cannot take.
pub fn weaken(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let mut out: Map<String, Value> = object
        .iter()
        .filter(|(keyword, _)| !matches!(keyword.as_str(), "allOf" | "anyOf" | "oneOf" | "not" | "nullable"))
        .map(|(keyword, value)| (keyword.clone(), below(keyword, value)))
        .collect();
    let nullable = is_true(object, "nullable");
    let open = is_true(object, "x-kubernetes-preserve-unknown-fields");
    if nullable || open {
        out.remove("items");
        out.remove("properties");
    }
    // There is no type that a value or null has, and readers want a list's items to be described.
    let untyped = match object.get("type").and_then(Value::as_str) {
        Some("array") => !out.contains_key("items"),
        Some("object") => open,
        _ => false,
    };
    if nullable || untyped {
        out.remove("type");
    }
    forgive_nulls(object, &mut out);
    Value::Object(out)
}

fn below(keyword: &str, value: &Value) -> Value {
    match (keyword, value) {
        ("properties", Value::Object(fields)) => {
            Value::Object(fields.iter().map(|(name, field)| (name.clone(), weaken(field))).collect())
        }
        ("items" | "additionalProperties", schema) => weaken(schema),
        (_, other) => other.clone(),
    }
}

fn is_true(object: &Map<String, Value>, keyword: &str) -> bool {
    object.get(keyword) == Some(&Value::Bool(true))
}

/// A field that may be null need not be there, for a reader to whom null means absent.
fn forgive_nulls(object: &Map<String, Value>, out: &mut Map<String, Value>) {
    let null_allowed = |name: &Value| {
        let field = object.get("properties").and_then(|fields| fields.get(name.as_str()?));
        field.and_then(Value::as_object).is_some_and(|field| is_true(field, "nullable"))
    };
    if let Some(Value::Array(required)) = out.get_mut("required") {
        required.retain(|name| !null_allowed(name));
        if required.is_empty() {
            out.remove("required");
        }
    }
}
