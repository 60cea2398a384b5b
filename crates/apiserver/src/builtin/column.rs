//! Short ways to write down a printed column.
//!
//! Owns the columns every kind shares. Must never format a cell; each kind does that in its `row`.

use super::Column;

/// The first column of nearly every kind.
pub const NAME: Column =
    Column { format: "name", ..Column::text("Name", "The name, unique within kind and namespace.") };

/// The last column that is always shown.
pub const AGE: Column = Column::text("Age", "How long ago the object was created.");

impl Column {
    pub const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: "string", format: "", description, priority: 0 }
    }

    pub const fn integer(name: &'static str, description: &'static str) -> Self {
        Self { kind: "integer", ..Self::text(name, description) }
    }

    pub const fn boolean(name: &'static str, description: &'static str) -> Self {
        Self { kind: "boolean", ..Self::text(name, description) }
    }

    /// Shown only with `-o wide`.
    pub const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }
}
