//! The checks of one value by itself: its type, and the limits of strings and numbers.
//!
//! Owns their wording. Must never look into a list or an object.

use serde_json::{Number, Value};

use super::path::{NO_FIELD, Path};
use super::validate::type_name;
use super::{Bound, Format, Kind, Rules, Schema};
use crate::error::{FieldError, FieldReason};

pub fn check_type(schema: &Schema, rules: &Rules, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    if schema.kind == Kind::Any || (value.is_null() && schema.nullable) || has_kind(schema.kind, value) {
        return;
    }
    // Where a format narrows the type, Kubernetes answers in terms of formats, except for strings and lists.
    let (wanted, got) = match rules.format {
        Some(format) if matches!(value, Value::Number(_) | Value::Bool(_) | Value::Object(_)) => {
            (format.name(), format_of(value))
        }
        _ => (type_name(schema.kind), type_of(value)),
    };
    errors.push(type_invalid(path, wanted, got));
}

/// Whether a value is of this kind; numbers without a fraction are integers, however they are written.
pub fn has_kind(kind: Kind, value: &Value) -> bool {
    match kind {
        Kind::Any => true,
        Kind::Object => value.is_object(),
        Kind::Array => value.is_array(),
        Kind::String => value.is_string(),
        Kind::Boolean => value.is_boolean(),
        Kind::Number => value.is_number(),
        Kind::Integer => is_integer(value),
        Kind::IntOrString => value.is_string() || is_integer(value),
    }
}

fn is_integer(value: &Value) -> bool {
    /// Beyond this a float no longer tells integers apart.
    const EXACT: f64 = 9_007_199_254_740_991.0;
    value.is_i64()
        || value.as_f64().is_some_and(|f| value.is_number() && f.fract() == 0.0 && f.abs() <= EXACT)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn format_of(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        _ => "",
    }
}

fn type_invalid(path: &Path, wanted: &str, got: &str) -> FieldError {
    FieldError {
        path: path.shown().into(),
        reason: FieldReason::TypeInvalid,
        value: Some(got.into()),
        detail: format!("{} in body must be of type {wanted}: {got:?}", path.as_str()),
    }
}

fn invalid(path: &Path, value: impl Into<Value>, demand: &str) -> FieldError {
    FieldError::invalid(path.shown(), value, format!("{} in body {demand}", path.as_str()))
}

/// Length and pattern end at the first failure, the format is checked besides.
pub fn check_string(rules: &Rules, text: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let length = || text.chars().count() as i64;
    let too_long = rules.max_length.filter(|limit| length() > *limit);
    let too_short = rules.min_length.filter(|limit| length() < *limit);
    if let Some(limit) = too_long {
        errors.push(FieldError {
            path: path.shown().into(),
            reason: FieldReason::TooLong,
            value: None,
            detail: format!("may not be more than {limit} byte{}", if limit == 1 { "" } else { "s" }),
        });
    } else if let Some(limit) = too_short {
        errors.push(invalid(path, text, &format!("should be at least {limit} chars long")));
    } else if let Some(pattern) = &rules.pattern {
        let source = pattern.source();
        match pattern.regex() {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => errors.push(invalid(path, text, &format!("should match '{source}'"))),
            Err(why) => {
                let demand = format!("should match '{source}, but pattern is invalid: {why}'");
                errors.push(invalid(path, text, &demand));
            }
        }
    }
    if let Some(format) = rules.format.filter(|format| !format.accepts(text)) {
        errors.push(type_invalid(path, format.name(), text));
    }
}

pub fn check_number(kind: Kind, rules: &Rules, number: &Number, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(why) = out_of_range(kind, rules.format, number, path) {
        errors.push(FieldError::invalid(NO_FIELD, "", why));
    }
    let value = shown(number);
    if let Some(factor) = rules.multiple_of {
        if factor <= 0.0 {
            let why = format!("factor MultipleOf declared for {} must be positive: {factor}", path.as_str());
            errors.push(FieldError::invalid(path.shown(), value.clone(), why));
        } else if !is_multiple(number, factor) {
            errors.push(invalid(path, value.clone(), &format!("should be a multiple of {factor}")));
        }
    }
    if let Some(Bound { value: limit, exclusive }) = rules.minimum.filter(|bound| below(number, *bound)) {
        let demand = if exclusive { "greater than" } else { "greater than or equal to" };
        errors.push(invalid(path, value.clone(), &format!("should be {demand} {limit}")));
    }
    if let Some(Bound { value: limit, exclusive }) = rules.maximum.filter(|bound| above(number, *bound)) {
        let demand = if exclusive { "less than" } else { "less than or equal to" };
        errors.push(invalid(path, value, &format!("should be {demand} {limit}")));
    }
}

/// A number as errors show it: a float without a fraction looks like the integer it is.
fn shown(number: &Number) -> Value {
    integer(number).map_or_else(|| Value::Number(number.clone()), Value::from)
}

fn out_of_range(kind: Kind, format: Option<Format>, number: &Number, path: &Path) -> Option<String> {
    let fits = match (kind, format) {
        (Kind::Integer, Some(Format::Int32)) => integer(number).is_some_and(|i| i32::try_from(i).is_ok()),
        (Kind::Integer, _) => integer(number).is_some(),
        (Kind::Number, Some(Format::Float)) => {
            number.as_f64().is_some_and(|f| f.abs() <= f64::from(f32::MAX))
        }
        _ => true,
    };
    let described = match format {
        Some(format) => format!("of type {} with format {}", type_name(kind), format.name()),
        None => format!("of type {} (default format)", type_name(kind)),
    };
    (!fits).then(|| format!("Checked value must be {described} in {}", path.as_str()))
}

/// The number as a 64-bit integer, if it is one.
fn integer(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() < i64::MAX as f64).then_some(float as i64)
    })
}

/// A bound as an integer, so that large integers are compared exactly.
fn whole(bound: f64) -> Option<i64> {
    (bound.fract() == 0.0 && bound.abs() < i64::MAX as f64).then_some(bound as i64)
}

fn compare(number: &Number, limit: f64) -> Option<std::cmp::Ordering> {
    match (number.as_i64(), whole(limit)) {
        (Some(value), Some(limit)) => Some(value.cmp(&limit)),
        _ => number.as_f64()?.partial_cmp(&limit),
    }
}

fn below(number: &Number, bound: Bound) -> bool {
    compare(number, bound.value).is_some_and(|order| order.is_lt() || (bound.exclusive && order.is_eq()))
}

fn above(number: &Number, bound: Bound) -> bool {
    compare(number, bound.value).is_some_and(|order| order.is_gt() || (bound.exclusive && order.is_eq()))
}

fn is_multiple(number: &Number, factor: f64) -> bool {
    match (number.as_i64(), whole(factor)) {
        (Some(value), Some(factor)) => value.checked_rem(factor) == Some(0),
        _ => {
            let quotient = number.as_f64().unwrap_or(f64::NAN) / factor;
            // Decimal fractions are not exact in binary: 0.3 is a multiple of 0.1.
            (quotient - quotient.round()).abs() < 1e-9 * quotient.abs().max(1.0)
        }
    }
}

pub fn check_enum(rules: &Rules, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    if rules.enumeration.is_empty() || rules.enumeration.iter().any(|choice| same(choice, value)) {
        return;
    }
    let choices: Vec<String> = rules
        .enumeration
        .iter()
        .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), String::from))
        .collect();
    let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
    errors.push(FieldError::not_supported(path.shown(), value.clone(), &choices));
}

/// `1` and `1.0` are the same choice.
fn same(choice: &Value, value: &Value) -> bool {
    choice == value
        || matches!((choice, value), (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() && (!a.is_i64() || !b.is_i64()))
}
