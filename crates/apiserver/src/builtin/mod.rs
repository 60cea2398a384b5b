//! The kinds that Kubernetes itself brings, one file each: names, defaults, validation, printed columns.
//!
//! Owns what is particular to a built-in kind. Must never store anything; the generic verbs do that.

use jiff::Timestamp;
use serde_json::Value;

use crate::error::FieldError;

/// Everything the generic verbs need to know about one built-in kind.
pub struct Builtin {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    /// Whether the kind has a `status` subresource: then `status` changes only there, and all else only outside.
    pub has_status: bool,
    /// Whether `metadata.generation` counts changes of the spec.
    pub has_generation: bool,
    /// The JSON schema of the kind with descriptions; definitions go to the generator.
    pub schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// Fills what Kubernetes fills when a client leaves it out. Runs on create and on update.
    pub default: fn(&mut Value),
    /// Checks values beyond their types; `old` is there on update, for immutable fields.
    pub validate: fn(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>),
    pub columns: &'static [Column],
    /// The cells of one object, one for each column.
    pub row: fn(object: &Value, now: Timestamp) -> Vec<Value>,
    /// Fields that a field selector may name besides `metadata.name` and `metadata.namespace`.
    pub fields: fn(object: &Value) -> Vec<(&'static str, String)>,
}

/// One column of a server-side table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `date`, …
    pub kind: &'static str,
    pub format: &'static str,
    pub description: &'static str,
    /// 0 is always shown, 1 only with `-o wide`.
    pub priority: i32,
}
