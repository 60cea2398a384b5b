//! Field ownership: who set which field of an object, and server-side apply on top of it.
//!
//! Owns `metadata.managedFields`, the sets behind it and the merging of applied configurations. Works on
//! plain JSON values and a schema; must never touch storage, HTTP or a particular kind.

mod apply;
mod conflict;
mod entry;
mod last_applied;
mod managed;
mod path;
mod set;
#[cfg(test)]
mod tests;
pub mod typed;
mod wire;

use serde_json::Value;

pub use apply::{ApplyError, apply};
pub use conflict::{Conflict, conflict_causes, conflict_message};
pub use entry::Operation;
pub use managed::{WriteContext, reset_all_but, track_update};
pub(crate) use path::Ordered;
pub use path::{Path, PathElement};
pub use set::{Node, Set};

/// The deepest object whose ownership is tracked. `managedFields` mirrors the object five levels down, and
/// JSON is read back only to 127 levels: a deeper object would be written and never read again.
pub const MAX_DEPTH: usize = 100;

/// Why ownership of an object's fields cannot be worked out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FieldsError {
    /// Where, as in conflict messages; empty for the object as a whole.
    pub path: String,
    pub problem: Problem,
}

impl std::fmt::Display for FieldsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() { self.problem.fmt(f) } else { write!(f, "{}: {}", self.path, self.problem) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("duplicate entries for key {0}")]
    Duplicate(String),
    #[error("an item of a list with keys has none of its key fields: {}", .0.join(", "))]
    NoKey(Vec<String>),
    #[error("an item of a list with keys must be an object")]
    ItemNotObject,
    #[error("an item of a set must be a string, a number or a boolean")]
    ItemNotScalar,
    #[error("fields are nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("managedFields cannot be decoded: {0}")]
    Undecodable(String),
}

impl Problem {
    fn here(self) -> FieldsError {
        FieldsError { path: String::new(), problem: self }
    }
}

impl FieldsError {
    /// Says that the error happened inside `element`.
    fn within(mut self, element: &PathElement) -> Self {
        self.path.insert_str(0, &element.to_string());
        self
    }
}

/// Whether containers nest deeper than `limit`. Stops looking there, so hostile depth costs nothing.
pub(crate) fn deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Object(map) => limit == 0 || map.values().any(|v| deeper_than(v, limit - 1)),
        Value::Array(list) => limit == 0 || list.iter().any(|v| deeper_than(v, limit - 1)),
        _ => false,
    }
}
