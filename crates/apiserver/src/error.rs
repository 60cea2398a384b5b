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

    pub fn too_long(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), reason: FieldReason::TooLong, value: None, detail: detail.into() }
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

/// One entry of `Status.details.causes`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

/// A refusal with everything its `Status` object shows.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: StatusCode,
    /// The machine-readable reason, e.g. `NotFound`; empty where Kubernetes gives none.
    pub reason: &'static str,
    pub message: String,
    pub subject: Option<Subject>,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: Option<u32>,
    /// Where an expired list can go on, at the price of consistency.
    pub continue_token: Option<String>,
}

/// The most faults that one answer lists.
const MAX_CAUSES: usize = 100;

impl ApiError {
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            subject: None,
            causes: Vec::new(),
            retry_after_seconds: None,
            continue_token: None,
        }
    }

    fn about(mut self, subject: Subject) -> Self {
        self.subject = Some(subject);
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub fn forbidden(subject: Subject, why: impl fmt::Display) -> Self {
        let message = format!("{} is forbidden: {why}", subject.qualified());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(subject)
    }

    pub fn not_found(subject: Subject) -> Self {
        let message = format!("{} not found", subject.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(subject)
    }

    /// The path names nothing the server knows.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(Subject::default())
    }

    /// The path is there, but nothing can be done to it with this method.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(Subject::default())
    }

    pub fn not_acceptable(wanted: &str) -> Self {
        Self::new(
            StatusCode::NOT_ACCEPTABLE,
            "NotAcceptable",
            format!("only application/json and application/yaml are served, not {wanted:?}"),
        )
    }

    pub fn already_exists(subject: Subject) -> Self {
        let message = format!("{} already exists", subject.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(subject)
    }

    pub fn conflict(subject: Subject, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {}: {why}", subject.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(subject)
    }

    /// The client wrote on the basis of a version that is no longer the current one.
    pub fn stale(subject: Subject) -> Self {
        Self::conflict(
            subject,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// The body was taken, but what would be stored is more than the store keeps.
    pub fn object_too_large(why: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!("Request entity too large: {why}"),
        )
    }

    pub fn unsupported_media_type(supported: &[&str]) -> Self {
        let list = supported.join(", ");
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {list}"
            ),
        )
    }

    /// `subject.kind` is the kind, not the resource, as Kubernetes does for this reason.
    pub fn invalid(subject: Subject, errors: &[FieldError]) -> Self {
        // A hostile body can have a million faults; the first ones are enough to go on with.
        let errors = &errors[..errors.len().min(MAX_CAUSES)];
        let list = match errors {
            [one] => one.to_string(),
            many => {
                format!("[{}]", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
        };
        let kind = if subject.group.is_empty() {
            subject.kind.clone()
        } else {
            format!("{}.{}", subject.kind, subject.group)
        };
        let message = format!("{kind} {:?} is invalid: {list}", subject.name);
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(subject);
        error.causes = errors
            .iter()
            .map(|e| Cause {
                reason: e.reason.cause().into(),
                message: e.message(),
                field: if e.path.is_empty() { "<nil>".into() } else { e.path.clone() },
            })
            .collect();
        error
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {}", message.into()),
        )
    }

    pub fn out_of_space(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", message)
    }

    /// The server is starting or stopping; the client should come back.
    pub fn unavailable(message: impl Into<String>) -> Self {
        let mut error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message);
        error.retry_after_seconds = Some(1);
        error
    }

    /// The `Status` object for this error.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = token.as_str().into();
        }
        let details = self.details();
        if self.subject.is_some() || !details.is_empty() {
            status["details"] = Value::Object(details);
        }
        status
    }

    fn details(&self) -> serde_json::Map<String, Value> {
        let mut details = serde_json::Map::new();
        if let Some(subject) = &self.subject {
            for (key, text) in [("name", &subject.name), ("group", &subject.group), ("kind", &subject.kind)] {
                if !text.is_empty() {
                    details.insert(key.into(), text.as_str().into());
                }
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_json).collect();
            details.insert("causes".into(), Value::Array(causes));
        }
        if let Some(seconds) = self.retry_after_seconds {
            details.insert("retryAfterSeconds".into(), seconds.into());
        }
        details
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut cause = json!({ "reason": self.reason, "message": self.message });
        if !self.field.is_empty() {
            cause["field"] = self.field.as_str().into();
        }
        cause
    }
}
