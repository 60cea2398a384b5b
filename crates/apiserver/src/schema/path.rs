//! The path to the value under inspection, written the way Kubernetes writes paths in errors.
//!
//! Owns one growing string for a whole walk. Must never allocate per step.

use std::fmt::Write as _;

/// What stands in place of a path where an error is about no field in particular.
pub const NO_FIELD: &str = "<nil>";

/// `spec.disks[0].labels[a/b]`.
#[derive(Debug, Default)]
pub struct Path(String);

/// Where a step began, to go back to.
#[must_use]
pub struct Mark(usize);

impl Path {
    /// `.name`, as fields of objects are written.
    pub fn field(&mut self, name: &str) -> Mark {
        let mark = Mark(self.0.len());
        if !self.0.is_empty() {
            self.0.push('.');
        }
        self.0.push_str(name);
        mark
    }

    /// `[key]`, as keys of maps are written.
    pub fn key(&mut self, key: &str) -> Mark {
        let mark = Mark(self.0.len());
        self.0.push('[');
        self.0.push_str(key);
        self.0.push(']');
        mark
    }

    pub fn index(&mut self, index: usize) -> Mark {
        let mark = Mark(self.0.len());
        write!(self.0, "[{index}]").expect("writing to a string never fails");
        mark
    }

    #[expect(clippy::needless_pass_by_value, reason = "a mark is used once")]
    pub fn back(&mut self, mark: Mark) {
        self.0.truncate(mark.0);
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as the field of an error; the object as a whole is no field.
    pub fn shown(&self) -> &str {
        if self.0.is_empty() { NO_FIELD } else { &self.0 }
    }
}
