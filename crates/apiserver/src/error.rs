//! Every refusal the API can give, and the `Status` object that a client sees.
//!
//! Owns the mapping from a cause to code, reason and details. Must never leak internals of the store.

use std::fmt;

use http::StatusCode;
use serde_json::{Value, json};

pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// The group, resource and name an error is about, as `Status.details` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    pub group: String,
    /// The plural resource name for most errors, the kind for `Invalid`.
    pub kind: String,
    pub name: String,
}

impl Subject {
    /// `pods "web"` or `volumes.longhorn.io "v1"`.
    fn qualified(&self) -> String {
        let resource =
            if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) };
        if self.name.is_empty() { resource } else { format!("{resource} {:?}", self.name) }
    }
}

/// Why one field is refused. `Display` is the text Kubernetes users know.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    pub path: String,
    pub reason: FieldReason,
    /// The offending value, where it helps to see it.
    pub value: Option<Value>,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldReason {
    Required,
    Invalid,
    NotSupported,
    Forbidden,
    Duplicate,
    NotFound,
    TooLong,
    TooMany,
    TypeInvalid,
}

impl FieldReason {
    /// The machine-readable cause in `Status.details.causes[].reason`.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

impl FieldError {
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), reason: FieldReason::Required, value: None, detail: detail.into() }
    }

    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: FieldReason::Invalid,
            value: Some(value.into()),
            detail: detail.into(),
        }
    }

    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), reason: FieldReason::Forbidden, value: None, detail: detail.into() }
    }

    pub fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            path: path.into(),
            reason: FieldReason::Duplicate,
            value: Some(value.into()),
            detail: String::new(),
        }
    }

    pub fn not_supported(path: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let list = supported.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
        Self {
            path: path.into(),
            reason: FieldReason::NotSupported,
            value: Some(value.into()),
            detail: format!("supported values: {list}"),
        }
    }

    /// The text without the path, as it stands in `details.causes[].message`.
    pub fn message(&self) -> String {
        let mut text = self.reason.label().to_string();
        if let Some(value) = &self.value {
            text.push_str(": ");
            match value {
                Value::String(s) => text.push_str(&format!("{s:?}")),
                other => text.push_str(&other.to_string()),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "{}", self.message())
        } else {
            write!(f, "{}: {}", self.path, self.message())
        }
    }
}
