//! The constraints that one schema node puts on values.
//!
//! Owns their stored form only; `validate` applies them. Must never hold what other readers of a schema need.

use std::sync::{Arc, OnceLock};

use regex::Regex;
use serde_json::Value;

use super::cel::CelRule;
use super::{Format, Schema};

/// Constraints on values; absent where any value of the right type will do.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub enumeration: Vec<Value>,
    pub format: Option<Format>,
    pub pattern: Option<Pattern>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub multiple_of: Option<f64>,
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub min_properties: Option<i64>,
    pub max_properties: Option<i64>,
    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
    /// `x-kubernetes-validations`.
    pub(super) cel: Arc<[CelRule]>,
}

/// One end of a numeric range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    pub value: f64,
    pub exclusive: bool,
}

/// A regular expression, compiled at its first use: most servers hold far more patterns than they ever apply.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: Box<str>,
    compiled: Arc<OnceLock<Result<Regex, String>>>,
}

impl Pattern {
    pub fn new(source: &str) -> Self {
        Self { source: source.into(), compiled: Arc::default() }
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// The expression, or why it is not one.
    pub fn regex(&self) -> Result<&Regex, &str> {
        self.compiled.get_or_init(|| compile(&self.source)).as_ref().map_err(String::as_str)
    }
}

/// A compiled program may take this much memory; a hostile `{1000}{1000}` is refused instead.
const REGEX_SIZE_LIMIT: usize = 1 << 20;

fn compile(source: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(source)
        .size_limit(REGEX_SIZE_LIMIT)
        .dfa_size_limit(REGEX_SIZE_LIMIT)
        .build()
        .map_err(|error| error.to_string().replace('\n', " "))
}

impl Rules {
    /// Whether any value passes.
    pub fn is_empty(&self) -> bool {
        let Self {
            enumeration,
            format,
            pattern,
            minimum,
            maximum,
            multiple_of,
            min_length,
            max_length,
            min_items,
            max_items,
            min_properties,
            max_properties,
            all_of,
            any_of,
            one_of,
            not,
            cel,
        } = self;
        let branches = [all_of, any_of, one_of].iter().all(|list| list.is_empty()) && not.is_none();
        let sizes = [min_length, max_length, min_items, max_items, min_properties, max_properties];
        enumeration.is_empty()
            && format.is_none()
            && pattern.is_none()
            && minimum.is_none()
            && maximum.is_none()
            && multiple_of.is_none()
            && sizes.iter().all(|limit| limit.is_none())
            && branches
            && cel.is_empty()
    }
}
