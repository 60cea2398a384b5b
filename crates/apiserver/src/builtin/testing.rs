//! Short ways for tests to put an object through a kind.
//!
//! Owns the clock of tests. Must never be compiled into the product.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Builtin;

/// Objects in tests are created five minutes and twelve seconds earlier.
pub const CREATED: &str = "2024-05-01T11:54:48Z";

pub fn now() -> Timestamp {
    "2024-05-01T12:00:00Z".parse().unwrap()
}

/// Metadata of an object that the server has stored.
pub fn stored(name: &str) -> Value {
    json!({ "name": name, "namespace": "default", "creationTimestamp": CREATED })
}

pub fn defaulted(kind: &Builtin, mut object: Value) -> Value {
    (kind.default)(&mut object);
    object
}

/// The object with one field set to something else.
pub fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let holder = object.pointer_mut(parent).unwrap();
    match holder {
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
        _ => holder[key] = value,
    }
    object
}

/// The refusals of a create.
pub fn refusals(kind: &Builtin, object: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    (kind.validate)(object, None, &mut errors);
    errors.iter().map(ToString::to_string).collect()
}

/// The refusals of an update.
pub fn update_refusals(kind: &Builtin, old: &Value, new: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    (kind.validate)(new, Some(old), &mut errors);
    errors.iter().map(ToString::to_string).collect()
}

/// The printed cells, as text.
pub fn cells(kind: &Builtin, object: &Value) -> Vec<String> {
    let cells = (kind.row)(object, now());
    assert_eq!(cells.len(), kind.columns.len(), "one cell for each column");
    cells.iter().map(|cell| cell.as_str().map_or_else(|| cell.to_string(), Into::into)).collect()
}
