//! The query parameters of the API, parsed once.
//!
//! Must never act on a parameter; the verbs do.

use crate::error::{ApiError, FieldError, Result, Subject};
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

    pub fn unsupported(value: &str) -> FieldError {
        FieldError::not_supported("propagationPolicy", value, &["Foreground", "Background", "Orphan", "nil"])
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
    /// What is wrong with parameters, for the verbs that have them.
    problems: Vec<FieldError>,
}

/// The longest name of a field manager, in bytes.
const MANAGER_MAX: usize = 128;

impl Query {
    pub fn parse(query: &str) -> Result<Self> {
        let mut parsed = Self::default();
        for (key, value) in form_pairs(query) {
            parsed.set(&key, &value)?;
        }
        Ok(parsed)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let bad = |what: &str| ApiError::bad_request(format!("query parameter {key}={value:?}: {what}"));
        match key {
            "labelSelector" => {
                self.labels = LabelSelector::parse(value)
                    .map_err(|e| ApiError::bad_request(format!("unable to parse requirement: {e}")))?;
            }
            "fieldSelector" => {
                self.fields = FieldSelector::parse(value).map_err(ApiError::bad_request)?;
            }
            // Less than one means no limit.
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
                    _ => {
                        let known = &["Exact", "NotOlderThan", ""];
                        self.problems.push(FieldError::not_supported(key, value, known));
                        None
                    }
                }
            }
            "watch" => self.watch = truth(value),
            "allowWatchBookmarks" => self.bookmarks = truth(value),
            "sendInitialEvents" => self.send_initial_events = Some(truth(value)),
            // Zero is as good as nothing, and less than that is over at once.
            "timeoutSeconds" => {
                let seconds: i64 = value.parse().map_err(|_| bad("must be a number of seconds"))?;
                self.timeout_seconds = (seconds != 0).then(|| u64::try_from(seconds).unwrap_or(0));
            }
            "dryRun" => match value {
                "All" => self.dry_run = true,
                "" => {}
                _ => self.problems.push(FieldError::not_supported(key, vec![value], &["All"])),
            },
            "fieldManager" => {
                self.problems.extend(manager_problem(value));
                self.field_manager = value.into();
            }
            "fieldValidation" => {
                self.field_validation = match value {
                    "" | "Warn" => FieldValidation::Warn,
                    "Ignore" => FieldValidation::Ignore,
                    "Strict" => FieldValidation::Strict,
                    _ => {
                        let known = &["", "Ignore", "Strict", "Warn"];
                        self.problems.push(FieldError::not_supported(key, value, known));
                        FieldValidation::Warn
                    }
                }
            }
            "force" => self.force = truth(value),
            "propagationPolicy" => {
                self.propagation = Propagation::parse(value);
                if self.propagation.is_none() {
                    self.problems.push(Propagation::unsupported(value));
                }
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

impl Query {
    /// Refuses parameters that the verb knows and that have no meaning, or none together.
    pub fn check(&self, verb: &str) -> Result<()> {
        let (options, known): (_, &[&str]) = match verb {
            "create" => ("CreateOptions", &["dryRun", "fieldManager", "fieldValidation"]),
            "update" => ("UpdateOptions", &["dryRun", "fieldManager", "fieldValidation"]),
            "patch" => ("PatchOptions", &["dryRun", "fieldManager", "fieldValidation"]),
            "delete" => ("DeleteOptions", &["dryRun", "propagationPolicy"]),
            "deletecollection" => ("DeleteOptions", &["dryRun", "propagationPolicy"]),
            "list" | "watch" => ("ListOptions", &["resourceVersionMatch"]),
            _ => return Ok(()),
        };
        let mut problems: Vec<FieldError> =
            self.problems.iter().filter(|p| known.contains(&p.path.as_str())).cloned().collect();
        if options == "ListOptions" && problems.is_empty() {
            problems.extend(self.list_problem());
        }
        refuse_options(options, &problems)?;
        if !self.continue_token.is_empty() && self.resource_version.is_some_and(|v| v > 0) {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        Ok(())
    }

    fn list_problem(&self) -> Option<FieldError> {
        let forbidden = |what: &str| Some(FieldError::forbidden("resourceVersionMatch", what));
        let matches = self.version_match;
        if !self.watch && self.send_initial_events.is_some() {
            return Some(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        if self.send_initial_events.is_some() && matches != Some(VersionMatch::NotOlderThan) {
            return forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if matches.is_none() || self.send_initial_events.is_some() {
            return None;
        }
        if self.watch {
            return forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if !self.continue_token.is_empty() {
            return forbidden("resourceVersionMatch is forbidden when continue is provided");
        }
        match self.resource_version {
            None => forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"),
            Some(0) if matches == Some(VersionMatch::Exact) => {
                forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
            }
            Some(_) => None,
        }
    }
}

/// An error about the options of a request, which errors treat as an object of their own.
pub fn refuse_options(kind: &str, problems: &[FieldError]) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let subject = Subject { group: "meta.k8s.io".into(), kind: kind.into(), name: String::new() };
    Err(ApiError::invalid(subject, problems))
}

fn manager_problem(name: &str) -> Option<FieldError> {
    if name.len() > MANAGER_MAX {
        let detail = format!("may not be more than {MANAGER_MAX} bytes");
        return Some(FieldError::too_long("fieldManager", detail));
    }
    let (at, odd) = name.chars().enumerate().find(|(_, c)| c.is_control())?;
    let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(odd));
    Some(FieldError::invalid("fieldManager", name, detail))
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
    use super::{FieldValidation, Propagation, Query};

    #[test]
    fn parameters_are_read_and_unknown_ones_ignored() {
        let query = Query::parse(
            "limit=500&labelSelector=app%20in%20(a%2Cb)&watch=true&fieldValidation=Strict&propagationPolicy=Foreground&x=1",
        )
        .unwrap();
        assert_eq!((query.limit, query.watch), (500, true));
        assert_eq!(query.field_validation, FieldValidation::Strict);
        assert_eq!(query.propagation, Some(Propagation::Foreground));
        assert!(!query.labels.is_empty());
    }

    #[test]
    fn nonsense_is_refused_with_the_parameter_named() {
        for (query, word) in [
            ("limit=many", "limit"),
            ("resourceVersion=abc", "resourceVersion"),
            ("labelSelector=a%20inn%20b", "requirement"),
        ] {
            let error = Query::parse(query).unwrap_err();
            assert_eq!(error.code.as_u16(), 400, "{query}");
            assert!(error.message.contains(word), "{}", error.message);
        }
    }

    #[test]
    fn a_parameter_counts_only_for_the_verbs_that_know_it() {
        for (query, verb, field) in [
            ("dryRun=Some", "create", "dryRun"),
            ("fieldManager=a%07", "patch", "fieldManager"),
            ("fieldValidation=Foo", "update", "fieldValidation"),
            ("propagationPolicy=Foo", "delete", "propagationPolicy"),
            ("resourceVersionMatch=Exact", "list", "resourceVersionMatch"),
        ] {
            let query = Query::parse(query).unwrap();
            let error = query.check(verb).unwrap_err();
            assert_eq!((error.code.as_u16(), error.causes[0].field.as_str()), (422, field));
            assert!(query.check("get").is_ok());
        }
    }
}
