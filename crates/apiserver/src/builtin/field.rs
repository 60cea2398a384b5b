//! A value together with its path, so that a refusal always names the field it is about.
//!
//! Owns how paths are written and the checks that many kinds share. Must never know a particular kind.

use granary_api::names;
use serde_json::Value;

use super::access::{self, is_zero};
use crate::error::{FieldError, FieldReason};

pub const IMMUTABLE: &str = "field is immutable";

static NULL: Value = Value::Null;

/// A place in an object. A field that is not there has the value `null`.
#[derive(Debug, Clone)]
pub struct Field<'a> {
    pub value: &'a Value,
    pub path: String,
}

impl<'a> Field<'a> {
    pub fn root(object: &'a Value) -> Self {
        Self { value: object, path: String::new() }
    }

    /// A field below this one; `names` may go several levels down: `source.persistentVolumeName`.
    pub fn at(&self, names: &str) -> Self {
        let value = names.split('.').fold(self.value, |value, name| value.get(name).unwrap_or(&NULL));
        let path = if self.path.is_empty() { names.into() } else { format!("{}.{names}", self.path) };
        Self { value, path }
    }

    /// The elements of a list, with `[0]`, `[1]`, … in their paths.
    pub fn items(&self) -> impl Iterator<Item = Self> {
        let list = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().enumerate().map(|(i, value)| Self { value, path: format!("{}[{i}]", self.path) })
    }

    /// The entries of a map, with `[key]` in their paths.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> {
        let map = self.value.as_object().into_iter().flatten();
        map.map(|(key, value)| (key.as_str(), Self { value, path: format!("{}[{key}]", self.path) }))
    }

    /// One entry of a map, there or not.
    pub fn entry(&self, key: &str) -> Self {
        Self { value: self.value.get(key).unwrap_or(&NULL), path: format!("{}[{key}]", self.path) }
    }

    /// The same value under another path, where Kubernetes reports it elsewhere.
    pub fn known_as(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self }
    }

    pub fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub fn is_true(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Absent, or the zero of its type.
    pub fn is_empty(&self) -> bool {
        is_zero(self.value)
    }

    /// How many elements or entries there are.
    pub fn count(&self) -> usize {
        access::len_at(self.value, "")
    }
}

/// Refusals of this field.
impl Field<'_> {
    pub fn required(&self, detail: &str) -> FieldError {
        FieldError::required(self.path.as_str(), detail)
    }

    /// What is absent shows as an empty text; numbers and lists have refusals of their own.
    pub fn invalid(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path.as_str(), self.shown(), detail)
    }

    fn shown(&self) -> Value {
        if self.value.is_null() { "".into() } else { self.value.clone() }
    }

    fn invalid_number(&self, detail: impl Into<String>) -> FieldError {
        let number = if self.value.is_null() { 0.into() } else { self.value.clone() };
        FieldError::invalid(self.path.as_str(), number, detail)
    }

    pub fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(self.path.as_str(), detail)
    }

    pub fn not_supported(&self, supported: &[&str]) -> FieldError {
        FieldError::not_supported(self.path.as_str(), self.value.clone(), supported)
    }

    pub fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.path.as_str(), self.shown())
    }

    pub fn not_found(&self) -> FieldError {
        self.error(FieldReason::NotFound, Some(self.shown()), String::new())
    }

    pub fn too_long(&self, most: usize) -> FieldError {
        self.error(FieldReason::TooLong, None, format!("may not be more than {most} bytes"))
    }

    fn error(&self, reason: FieldReason, value: Option<Value>, detail: String) -> FieldError {
        FieldError { path: self.path.clone(), reason, value, detail }
    }
}

/// Checks that say nothing when all is well.
impl Field<'_> {
    /// Refuses a field that is absent or empty.
    pub fn need(&self, errors: &mut Vec<FieldError>) -> bool {
        if self.is_empty() {
            errors.push(self.required(""));
        }
        !self.is_empty()
    }

    /// Refuses a text that a rule of `granary_api::names` has complaints about.
    pub fn follow(&self, rule: fn(&str) -> Vec<String>, errors: &mut Vec<FieldError>) {
        let refuse = |complaint| FieldError::invalid(self.path.as_str(), self.text(), complaint);
        errors.extend(rule(self.text()).into_iter().map(refuse));
    }

    /// As `follow`, for a text that must be there.
    pub fn need_name(&self, rule: fn(&str) -> Vec<String>, errors: &mut Vec<FieldError>) {
        if self.need(errors) {
            self.follow(rule, errors);
        }
    }

    /// As `follow`, for a text that may be left out.
    pub fn follow_if_set(&self, rule: fn(&str) -> Vec<String>, errors: &mut Vec<FieldError>) {
        if !self.is_empty() {
            self.follow(rule, errors);
        }
    }

    /// Refuses a value that is there but not in the list.
    pub fn one_of(&self, allowed: &[&str], errors: &mut Vec<FieldError>) {
        if self.is_set() && !allowed.contains(&self.text()) {
            errors.push(self.not_supported(allowed));
        }
    }

    /// As `one_of`, for a value that must be there.
    pub fn need_one_of(&self, allowed: &[&str], errors: &mut Vec<FieldError>) {
        if self.need(errors) {
            self.one_of(allowed, errors);
        }
    }

    pub fn not_negative(&self, errors: &mut Vec<FieldError>) {
        if self.int().is_some_and(|n| n < 0) {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    pub fn within(&self, least: i64, most: i64, errors: &mut Vec<FieldError>) {
        self.in_range(least, most, &format!("must be between {least} and {most}, inclusive"), errors);
    }

    /// As `within`, where Kubernetes has other words for it.
    pub fn in_range(&self, least: i64, most: i64, detail: &str, errors: &mut Vec<FieldError>) {
        if !self.int().is_some_and(|n| (least..=most).contains(&n)) {
            errors.push(self.invalid_number(detail));
        }
    }

    pub fn port_number(&self, errors: &mut Vec<FieldError>) {
        self.within(1, 65535, errors);
    }

    /// A port by number or by name.
    pub fn port(&self, errors: &mut Vec<FieldError>) {
        if self.value.is_string() { self.follow(port_name, errors) } else { self.port_number(errors) }
    }

    /// Refuses a value that differs from the stored one.
    pub fn unchanged(&self, old: &Field, errors: &mut Vec<FieldError>) {
        if !access::same(self.value, old.value) {
            let shown = if old.value.is_string() { self.shown() } else { self.value.clone() };
            errors.push(FieldError::invalid(self.path.as_str(), shown, IMMUTABLE));
        }
    }

    /// Keys and values of a label map, all reported at the map itself.
    pub fn labels(&self, errors: &mut Vec<FieldError>) {
        for (key, value) in self.entries() {
            let key = Value::from(key);
            Field { value: &key, path: self.path.clone() }.follow(names::label_key, errors);
            value.known_as(self.path.as_str()).follow(names::label_value, errors);
        }
    }

    /// A label selector: `matchLabels` and `matchExpressions`.
    pub fn label_selector(&self, errors: &mut Vec<FieldError>) {
        self.at("matchLabels").labels(errors);
        for expression in self.at("matchExpressions").items() {
            let values = expression.at("values");
            let operator = expression.at("operator");
            match operator.text() {
                "In" | "NotIn" if values.count() == 0 => {
                    errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
                }
                "Exists" | "DoesNotExist" if values.count() > 0 => {
                    errors.push(
                        values
                            .forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
                    );
                }
                "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
                _ => errors.push(operator.invalid("not a valid selector operator")),
            }
            expression.at("key").follow(names::label_key, errors);
            values.items().for_each(|value| value.follow(names::label_value, errors));
        }
    }

    /// A path that does not climb up.
    pub fn no_backsteps(&self, errors: &mut Vec<FieldError>) {
        if self.text().split('/').any(|part| part == "..") {
            errors.push(self.invalid("must not contain '..'"));
        }
    }

    /// A path that stays below where it starts.
    pub fn descending_path(&self, errors: &mut Vec<FieldError>) {
        if self.text().starts_with('/') {
            errors.push(self.invalid("must be a relative path"));
        }
        self.no_backsteps(errors);
    }

    /// The name of a CSI driver: a domain name of at most 63 characters, upper case allowed.
    pub fn csi_driver_name(&self, errors: &mut Vec<FieldError>) {
        if !self.need(errors) {
            return;
        }
        if self.text().len() > names::DNS_LABEL_MAX {
            errors.push(self.too_long(names::DNS_LABEL_MAX));
        }
        self.follow(|name| names::dns1123_subdomain(&name.to_lowercase()), errors);
    }
}

/// The short name of a port, as IANA allows it.
pub fn port_name(name: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut complain = |wrong: bool, text: &str| {
        if wrong {
            complaints.push(text.to_string());
        }
    };
    complain(name.len() > 15, "must be no more than 15 characters");
    complain(
        name.is_empty() || !name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-')),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    complain(!name.contains(|c: char| c.is_ascii_lowercase()), "must contain at least one letter (a-z)");
    complain(name.contains("--"), "must not contain consecutive hyphens");
    complain(name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen");
    complaints
}
