//! The query parameters of the API, parsed once.
//!
//! Must never act on a parameter; the verbs do.

use http::Method;

use crate::error::{ApiError, FieldError, FieldReason, Result, Subject};
use crate::selector::{FieldSelector, LabelSelector};

/// How unknown and duplicate fields in a body are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

impl Propagation {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "Orphan" => Some(Self::Orphan),
            "Background" => Some(Self::Background),
            "Foreground" => Some(Self::Foreground),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    Exact,
    NotOlderThan,
}

#[derive(Debug, Clone, Default)]
pub struct Query {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    pub limit: usize,
    pub continue_token: String,
    /// `None` when absent; `"0"` means "any".
    pub resource_version: Option<u64>,
    pub version_match: Option<VersionMatch>,
    pub watch: bool,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_seconds: Option<u64>,
    pub dry_run: bool,
    pub field_manager: String,
    pub field_validation: FieldValidation,
    pub force: bool,
    pub propagation: Option<Propagation>,
    pub grace_seconds: Option<i64>,
    pub pretty: bool,
    /// `includeObject` of tables.
    pub include_object: String,
    pub verbose: bool,
}

impl Query {
    pub fn parse(query: &str, method: &Method) -> Result<Self> {
        let mut parsed = Self::default();
        for (key, value) in form_pairs(query) {
            parsed.set(&key, &value, method)?;
        }
        Ok(parsed)
    }

    fn set(&mut self, key: &str, value: &str, method: &Method) -> Result<()> {
        let bad = |what: &str| ApiError::bad_request(format!("query parameter {key}={value:?}: {what}"));
        match key {
            "labelSelector" => {
                self.labels = LabelSelector::parse(value)
                    .map_err(|e| ApiError::bad_request(format!("unable to parse requirement: {e}")))?;
            }
            "fieldSelector" => {
                self.fields = FieldSelector::parse(value).map_err(ApiError::bad_request)?;
            }
            "limit" => {
                let limit: i64 = value.parse().map_err(|_| bad("must be a number"))?;
                self.limit = usize::try_from(limit).unwrap_or(0);
            }
            "continue" => self.continue_token = value.into(),
            "resourceVersion" if value.is_empty() => {}
            "resourceVersion" => {
                self.resource_version = Some(value.parse().map_err(|_| invalid_version(value))?);
            }
            "resourceVersionMatch" => {
                self.version_match = match value {
                    "" => None,
                    "Exact" => Some(VersionMatch::Exact),
                    "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                    _ => return Err(bad("must be Exact or NotOlderThan")),
                }
            }
            "watch" => self.watch = truth(value),
            "allowWatchBookmarks" => self.bookmarks = truth(value),
            "sendInitialEvents" => self.send_initial_events = Some(truth(value)),
            "timeoutSeconds" => {
                self.timeout_seconds = Some(value.parse().map_err(|_| bad("must be a number of seconds"))?);
            }
            "dryRun" => match value {
                "All" => self.dry_run = true,
                "" => {}
                _ => {
                    let given = serde_json::Value::from(vec![value]);
                    return Err(refused(method, FieldError::not_supported("dryRun", given, &["All"])));
                }
            },
            "fieldManager" => {
                if value.chars().count() > 128 {
                    let mut long = FieldError::forbidden("fieldManager", "may not be more than 128 bytes");
                    long.reason = FieldReason::TooLong;
                    return Err(refused(method, long));
                }
                if value.chars().any(char::is_control) {
                    let odd = FieldError::invalid(
                        "fieldManager",
                        value,
                        "should only contain printable characters",
                    );
                    return Err(refused(method, odd));
                }
                self.field_manager = value.into();
            }
            "fieldValidation" => {
                self.field_validation = match value {
                    "" | "Warn" => FieldValidation::Warn,
                    "Ignore" => FieldValidation::Ignore,
                    "Strict" => FieldValidation::Strict,
                    _ => {
                        let known = ["", "Ignore", "Strict", "Warn"];
                        return Err(refused(
                            method,
                            FieldError::not_supported("fieldValidation", value, &known),
                        ));
                    }
                }
            }
            "force" => self.force = truth(value),
            "propagationPolicy" => {
                self.propagation = Some(
                    Propagation::parse(value)
                        .ok_or_else(|| bad("must be Orphan, Background or Foreground"))?,
                );
            }
            "orphanDependents" => {
                self.propagation =
                    Some(if truth(value) { Propagation::Orphan } else { Propagation::Background });
            }
            "gracePeriodSeconds" => {
                self.grace_seconds = Some(value.parse().map_err(|_| bad("must be a number of seconds"))?);
            }
            "pretty" => self.pretty = truth(value),
            "includeObject" => self.include_object = value.into(),
            "verbose" => self.verbose = true,
            // Kubernetes ignores parameters it does not know.
            _ => {}
        }
        Ok(())
    }
}

/// A parameter that is one of the options of this kind of request.
fn refused(method: &Method, error: FieldError) -> ApiError {
    let kind = match method.as_str() {
        "POST" => "CreateOptions",
        "PUT" => "UpdateOptions",
        "PATCH" => "PatchOptions",
        "DELETE" => "DeleteOptions",
        _ => "ListOptions",
    };
    let subject = Subject { group: "meta.k8s.io".into(), kind: kind.into(), name: String::new() };
    ApiError::invalid(subject, &[error])
}

fn invalid_version(value: &str) -> ApiError {
    ApiError::bad_request(format!(
        "resourceVersion: Invalid value: {value:?}: strconv.ParseUint: parsing {value:?}: invalid syntax"
    ))
}

fn truth(value: &str) -> bool {
    !matches!(value, "false" | "0" | "f" | "F" | "False" | "FALSE")
}

/// The pairs of an `application/x-www-form-urlencoded` string.
pub fn form_pairs(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (form_decode(key), form_decode(value))
    })
}

fn form_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (escaped, bytes[at]) {
            (Some(byte), _) => {
                out.push(byte);
                at += 2;
            }
            (None, b'+') => out.push(b' '),
            (None, byte) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{FieldValidation, Propagation, Query};

    #[test]
    fn parameters_are_read_and_unknown_ones_ignored() {
        let query = Query::parse(
            "limit=500&labelSelector=app%20in%20(a%2Cb)&watch=true&fieldValidation=Strict&propagationPolicy=Foreground&x=1",
            &Method::GET,
        )
        .unwrap();
        assert_eq!((query.limit, query.watch), (500, true));
        assert_eq!(query.field_validation, FieldValidation::Strict);
        assert_eq!(query.propagation, Some(Propagation::Foreground));
        assert!(!query.labels.is_empty());
    }

    #[test]
    fn nonsense_is_refused_with_the_parameter_named() {
        for (query, code, word) in [
            ("limit=many", 400, "limit"),
            ("dryRun=Some", 422, "dryRun"),
            ("resourceVersion=abc", 400, "resourceVersion"),
            ("labelSelector=a%20inn%20b", 400, "requirement"),
        ] {
            let error = Query::parse(query, &Method::POST).unwrap_err();
            assert_eq!(error.code.as_u16(), code, "{query}");
            assert!(error.message.contains(word), "{}", error.message);
        }
    }
}
