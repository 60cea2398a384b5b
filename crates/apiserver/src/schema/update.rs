//! What an update leaves as it was, and which old element a new one replaces.
//!
//! Owns that comparison, for plain constraints and for rules alike. Must never guess: what cannot be found in
//! the old object counts as new.

use std::collections::HashMap;

use serde_json::Value;

use super::{ListKind, Schema};

/// Whether an update leaves a value as it was. Fields that the schema does not know are never taken for the same.
pub fn unchanged(schema: &Schema, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, child)| match (schema.field(name), old.get(name)) {
                    (Some(field), Some(old)) => unchanged(field, child, old),
                    _ => false,
                })
        }
        (Value::Array(new), Value::Array(list)) if matches!(schema.list, ListKind::Map(_)) => {
            let before = OldItems::new(schema, Some(old));
            let same = |child| match (&schema.items, before.matching(child)) {
                (Some(items), Some(old)) => unchanged(items, child, old),
                _ => false,
            };
            new.len() == list.len() && new.iter().all(same)
        }
        _ => new == old,
    }
}

/// The elements of the list that an update replaces, found by their keys; only map lists have such.
pub struct OldItems<'a> {
    keys: &'a [Box<str>],
    items: Option<&'a Schema>,
    known: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    pub fn new(schema: &'a Schema, old: Option<&'a Value>) -> Self {
        let mut this = Self { keys: &[], items: schema.items.as_deref(), known: HashMap::new() };
        if let (ListKind::Map(keys), Some(Value::Array(list))) = (&schema.list, old) {
            this.keys = keys;
            for value in list {
                if let Some(identity) = this.identity(value) {
                    this.known.entry(identity).or_insert(value);
                }
            }
        }
        this
    }

    pub fn matching(&self, new: &Value) -> Option<&'a Value> {
        if self.known.is_empty() { None } else { self.known.get(&self.identity(new)?).copied() }
    }

    /// The keys as text. A key that is left out has its default; without one the element has no identity.
    fn identity(&self, value: &Value) -> Option<String> {
        let mut text = String::new();
        for key in self.keys {
            let default = || self.items?.properties.get(key)?.default.as_ref();
            let part =
                value.get(&**key).or_else(default).filter(|part| !part.is_object() && !part.is_array())?;
            text.push_str(&part.to_string());
            text.push('\n');
        }
        Some(text)
    }
}
