//! Quantities inside objects: bringing them to canonical text, and refusing what is none.
//!
//! Owns where Kubernetes rewrites `1024Mi` to `1Gi`. Must never parse on its own; `granary_api` does.

use granary_api::quantity::Quantity;
use serde_json::Value;

use super::field::Field;
use crate::error::FieldError;

const NEGATIVE: &str = "must be greater than or equal to 0";
const NOT_POSITIVE: &str = "must be greater than zero";

/// Reads a quantity that JSON gives as text or as a number.
pub fn parse(value: &Value) -> Option<Quantity> {
    text(value).and_then(|text| Quantity::parse(&text).ok())
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Rewrites one quantity to canonical text; what is none stays, to be refused later.
pub fn canonical(object: &mut Value, pointer: &str) {
    if let Some(value) = object.pointer_mut(pointer) {
        rewrite(value);
    }
}

/// Rewrites all quantities of a map from resource to quantity.
pub fn canonical_map(object: &mut Value, pointer: &str) {
    if let Some(map) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        map.values_mut().for_each(rewrite);
    }
}

fn rewrite(value: &mut Value) {
    if let Some(quantity) = parse(value) {
        *value = quantity.to_string().into();
    }
}

/// A quantity that is not negative, in the words for capacities.
pub fn check_basic(field: &Field, errors: &mut Vec<FieldError>) {
    let Some(quantity) = parse(field.value).filter(|quantity| quantity.is_negative()) else { return };
    let whole = i64::try_from(quantity.value()).unwrap_or(i64::MIN);
    errors.push(FieldError::invalid(field.path.as_str(), whole, "must be a valid resource quantity"));
}

/// A text or number that is a quantity at all.
pub fn check_readable(field: &Field, errors: &mut Vec<FieldError>) {
    readable(field, errors);
}

/// A quantity of zero or more. Returns it, unless it was refused.
pub fn check(field: &Field, errors: &mut Vec<FieldError>) -> Option<Quantity> {
    let quantity = readable(field, errors)?;
    if quantity.is_negative() {
        errors.push(shown(field, quantity, NEGATIVE));
        return None;
    }
    Some(quantity)
}

/// A quantity of more than zero. Returns it, unless it was refused.
pub fn check_positive(field: &Field, errors: &mut Vec<FieldError>) -> Option<Quantity> {
    let quantity = readable(field, errors)?;
    if quantity.is_zero() || quantity.is_negative() {
        errors.push(shown(field, quantity, NOT_POSITIVE));
        return None;
    }
    Some(quantity)
}

fn readable(field: &Field, errors: &mut Vec<FieldError>) -> Option<Quantity> {
    match Quantity::parse(&text(field.value).unwrap_or_default()) {
        Ok(quantity) => Some(quantity),
        Err(error) => {
            errors.push(field.invalid(error.to_string()));
            None
        }
    }
}

fn shown(field: &Field, quantity: Quantity, detail: &str) -> FieldError {
    FieldError::invalid(field.path.as_str(), quantity.to_string(), detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_become_canonical_and_junk_stays() {
        let mut object =
            json!({ "requests": { "storage": "1024Mi", "cpu": 2, "memory": "lots", "odd": {} } });
        canonical_map(&mut object, "/requests");
        assert_eq!(
            object,
            json!({ "requests": { "storage": "1Gi", "cpu": "2", "memory": "lots", "odd": {} } })
        );
    }
}
