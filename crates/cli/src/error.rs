//! Everything that can go wrong in a command: what to say, what to try next, which exit code.
//! It never prints by itself; `Output::error` does.

use std::{io, path::PathBuf, time::Duration};

use kube::core::Status;

use crate::{connection::Origin, exit::Exit};

/// A failed command. `Display` is the one-line reason, [`CliError::hint`] the next step.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("no Kubernetes API to talk to: {looked_in}")]
    NoApi { looked_in: String, hint: String },

    #[error("cannot use the kubeconfig {path}: {reason}")]
    Kubeconfig { path: String, reason: String },

    #[error("cannot reach the API at {}: {reason}", origin.server)]
    Unreachable { origin: Box<Origin>, reason: String, untrusted: bool },

    #[error("{}", api_message(status))]
    Api { origin: Box<Origin>, status: Box<Status> },

    #[error("the API sent an answer that cannot be read: {reason}")]
    Answer { reason: String },

    #[error("the API has no kind {asked:?}")]
    UnknownKind { asked: String, near: Vec<String> },

    #[error("{asked:?} could be any of {}", choices.join(", "))]
    AmbiguousKind { asked: String, choices: Vec<String> },

    #[error("{kind} cannot be {verb}: the API does not offer {missing:?} for it")]
    UnsupportedVerb { kind: String, verb: &'static str, missing: &'static str },

    #[error("{object} not found")]
    NotFound { object: String, hint: Option<String> },

    #[error("{place}: {reason}")]
    Manifest { place: String, reason: String },

    #[error("cannot read {}: {source}", path.display())]
    ReadFile { path: PathBuf, source: io::Error },

    #[error("{0}")]
    Usage(String),

    #[error("gave up after {} waiting for {what}{}", crate::duration::show(*after), seen.as_ref().map(|s| format!("; {s}")).unwrap_or_default())]
    Timeout { after: Duration, what: String, seen: Option<String>, hint: Option<String> },

    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

pub type Result<T, E = CliError> = std::result::Result<T, E>;

impl CliError {
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoApi { .. } | Self::Unreachable { .. } => Exit::Unreachable,
            Self::Api { status, .. } => status_exit(status),
            Self::UnknownKind { .. } | Self::NotFound { .. } => Exit::NotFound,
            Self::Usage(_) | Self::AmbiguousKind { .. } => Exit::Usage,
            Self::Timeout { .. } => Exit::Timeout,
            // The reader of a pipe has seen enough; that is no failure.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::Kubeconfig { .. }
            | Self::Answer { .. }
            | Self::UnsupportedVerb { .. }
            | Self::Manifest { .. }
            | Self::ReadFile { .. }
            | Self::Output(_) => Exit::Attention,
        }
    }

    /// What the user can do about it, if there is something better than reading the message again.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoApi { hint, .. } => Some(hint.clone()),
            Self::Kubeconfig { .. } => {
                Some("pass another file with --kubeconfig, or another context with --context".into())
            }
            Self::Unreachable { origin, untrusted: true, .. } => Some(format!(
                "the server's certificate does not fit {}; a server that was set up anew has a new one",
                origin.description
            )),
            Self::Unreachable { origin, .. } => Some(format!(
                "is `granary up` running? (address from {}; another API: --kubeconfig FILE)",
                origin.description
            )),
            Self::Api { origin, status } => api_hint(origin, status),
            Self::UnknownKind { near, .. } => Some(if near.is_empty() {
                "`granary kinds` lists what this API serves".into()
            } else {
                format!("did you mean {}? `granary kinds` lists what this API serves", near.join(" or "))
            }),
            Self::AmbiguousKind { .. } => Some("write the kind with its group".into()),
            Self::NotFound { hint, .. } | Self::Timeout { hint, .. } => hint.clone(),
            _ => None,
        }
    }

    /// True for failures that end when a server has restarted or caught up, which a watch survives.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { untrusted, .. } => !untrusted,
            Self::Api { status, .. } => matches!(status.code, 429 | 503 | 504),
            _ => false,
        }
    }

    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Api { status, .. } => status.code == 404,
            _ => false,
        }
    }

    /// True when a resource version (or a continue token) is older than the server remembers.
    pub fn is_expired(&self) -> bool {
        matches!(self, Self::Api { status, .. } if status.code == 410)
    }
}

/// Turns what kube reports for a request into our terms.
pub fn from_kube(origin: &Origin, error: kube::Error) -> CliError {
    match error {
        kube::Error::Api(status) => CliError::Api { origin: Box::new(origin.clone()), status },
        kube::Error::SerdeError(error) => CliError::Answer { reason: error.to_string() },
        kube::Error::FromUtf8(error) => CliError::Answer { reason: error.to_string() },
        kube::Error::Auth(error) => CliError::Kubeconfig {
            path: origin.description.clone(),
            reason: format!("no credentials from it: {error}"),
        },
        other => {
            let (reason, untrusted) = root_cause(&other);
            CliError::Unreachable { origin: Box::new(origin.clone()), reason, untrusted }
        }
    }
}

/// The innermost error is the one a person can act on ("connection refused"), and tells whether
/// the server was there but is not the one the kubeconfig describes.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> (String, bool) {
    let mut inner = error;
    loop {
        if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
            return (tls.to_string(), matches!(tls, rustls::Error::InvalidCertificate(_)));
        }
        // An `io::Error` hides what it wraps from `source`.
        let wrapped = inner
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .map(|wrapped| wrapped as &(dyn std::error::Error + 'static));
        match wrapped.or_else(|| inner.source()) {
            Some(next) => inner = next,
            None => return (inner.to_string(), false),
        }
    }
}

fn status_exit(status: &Status) -> Exit {
    match status.code {
        404 => Exit::NotFound,
        409 => Exit::Conflict,
        401 | 403 => Exit::Forbidden,
        _ => Exit::Attention,
    }
}

fn api_message(status: &Status) -> String {
    let message = status.message.trim();
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    if message.is_empty() {
        return format!("the API answered {} {}", status.code, status.reason).trim_end().to_owned();
    }
    // Several wrong fields in one sentence are hard to read; the answer also has them one by one.
    match message.split_once(" is invalid: [") {
        Some((what, _)) if causes.len() > 1 => {
            let lines = causes.iter().map(|cause| format!("\n  {}: {}", cause.field, cause.message));
            format!("{what} is invalid:{}", lines.collect::<String>())
        }
        _ => message.to_owned(),
    }
}

fn api_hint(origin: &Origin, status: &Status) -> Option<String> {
    match status.code {
        401 => Some(format!(
            "the API at {} does not accept the {} from {}",
            origin.server, origin.credentials, origin.description
        )),
        403 => Some(format!("asked with the {} from {}", origin.credentials, origin.description)),
        409 if status.reason == "Conflict" && has_field_owner_conflict(status) => Some(
            "another manager owns these fields: --force-conflicts takes them over, or leave them out of the file"
                .into(),
        ),
        503 => Some("the API is starting, stopping or overloaded: `granary status` shows what is not ready".into()),
        _ => None,
    }
}

fn has_field_owner_conflict(status: &Status) -> bool {
    status
        .details
        .as_ref()
        .is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "FieldManagerConflict"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, reason: &str, message: &str) -> CliError {
        CliError::Api {
            origin: Box::new(Origin::for_tests()),
            status: Status::failure(message, reason).with_code(code).boxed(),
        }
    }

    #[test]
    fn scripts_can_tell_failures_apart_by_code() {
        assert_eq!(api(404, "NotFound", "x").exit(), Exit::NotFound);
        assert_eq!(api(409, "AlreadyExists", "x").exit(), Exit::Conflict);
        assert_eq!(api(401, "Unauthorized", "x").exit(), Exit::Forbidden);
        assert_eq!(api(403, "Forbidden", "x").exit(), Exit::Forbidden);
        assert_eq!(api(422, "Invalid", "x").exit(), Exit::Attention);
        let gone = CliError::Unreachable {
            origin: Box::new(Origin::for_tests()),
            reason: "connection refused".into(),
            untrusted: false,
        };
        assert_eq!(gone.exit(), Exit::Unreachable);
        assert!(gone.hint().is_some_and(|hint| hint.contains("granary up")));
    }

    #[test]
    fn a_closed_pipe_is_not_a_failure_but_a_full_disk_is() {
        assert_eq!(CliError::Output(io::ErrorKind::BrokenPipe.into()).exit(), Exit::Ok);
        assert_eq!(CliError::Output(io::ErrorKind::StorageFull.into()).exit(), Exit::Attention);
    }

    #[test]
    fn refused_credentials_name_the_file_they_came_from() {
        let hint = api(401, "Unauthorized", "Unauthorized").hint().expect("a hint");
        assert!(hint.contains("/data/kubeconfig"), "{hint}");
        assert!(hint.contains("token of user \"admin\""), "{hint}");
    }

    #[test]
    fn each_wrong_field_gets_its_line() {
        let status: Status = serde_json::from_value(serde_json::json!({
            "code": 422, "reason": "Invalid", "message": "Pod \"a\" is invalid: [x: Required value, y: Invalid value: 1]",
            "details": {"causes": [
                {"field": "x", "message": "Required value", "reason": "FieldValueRequired"},
                {"field": "y", "message": "Invalid value: 1", "reason": "FieldValueInvalid"},
            ]},
        }))
        .unwrap();
        assert_eq!(api_message(&status), "Pod \"a\" is invalid:\n  x: Required value\n  y: Invalid value: 1");
    }

    #[test]
    fn an_answer_without_a_message_still_says_something() {
        assert_eq!(api(500, "InternalError", "").to_string(), "the API answered 500 InternalError");
        assert_eq!(api(502, "", "").to_string(), "the API answered 502");
    }
}
