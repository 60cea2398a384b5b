//! The three kinds of patches that are plain functions of a document: JSON patch, merge patch and strategic
//! merge patch.
//!
//! Owns their semantics and limits. Must never touch storage or HTTP; a patch that fails may leave the
//! document half changed, so callers patch a copy.

mod json;
mod merge;
mod strategic;

pub use json::json;
pub use merge::merge;
pub use strategic::strategic;

/// Why a patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is not a patch of its kind: the client's fault whatever the document is (400).
    #[error("{0}")]
    Malformed(String),
    /// It does not fit the document: a failed test, a path that is not there (422).
    #[error("{0}")]
    Unprocessable(String),
    /// It asks for more than one request may (413).
    #[error("{0}")]
    TooLarge(String),
}
