//! Node selectors: which nodes a volume can be reached from, or a pod may run on.
//!
//! Owns their rules. Must never select anything.

use granary_api::names;

use super::field::Field;
use crate::error::FieldError;

/// A required selector: at least one term, each valid.
pub fn check(selector: &Field, errors: &mut Vec<FieldError>) {
    let terms = selector.at("nodeSelectorTerms");
    if terms.count() == 0 {
        errors.push(terms.required("must have at least one node selector term"));
    }
    terms.items().for_each(|term| check_term(&term, errors));
}

pub fn check_term(term: &Field, errors: &mut Vec<FieldError>) {
    for requirement in term.at("matchExpressions").items() {
        check_requirement(&requirement, errors);
        requirement.at("key").follow(names::label_key, errors);
        requirement.at("values").items().for_each(|value| value.follow(names::label_value, errors));
    }
    for requirement in term.at("matchFields").items() {
        check_field(&requirement, errors);
    }
}

fn check_requirement(requirement: &Field, errors: &mut Vec<FieldError>) {
    let (operator, values) = (requirement.at("operator"), requirement.at("values"));
    match (operator.text(), values.count()) {
        ("In" | "NotIn", 0) => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(values.forbidden(detail));
        }
        ("Gt" | "Lt", 0 | 2..) => {
            errors.push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
}

fn check_field(requirement: &Field, errors: &mut Vec<FieldError>) {
    let (key, operator, values) =
        (requirement.at("key"), requirement.at("operator"), requirement.at("values"));
    match (operator.text(), values.count()) {
        ("In" | "NotIn", 1) => {}
        ("In" | "NotIn", _) => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(values.required(detail));
        }
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    if key.text() == "metadata.name" {
        values.items().for_each(|value| value.follow(names::dns1123_subdomain, errors));
    } else {
        errors.push(key.invalid("not a valid field selector key"));
    }
}
