//! Lease: who holds a lock or is alive, and since when.
//!
//! Owns the rules for durations and strategies of a lease. Must never decide who may hold it.

use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{fill, name, str_at};
use super::field::Field;
use super::{Builtin, Column, PLAIN, column, human};
use crate::error::FieldError;

pub static LEASE: Builtin = Builtin {
    group: "coordination.k8s.io",
    kind: "Lease",
    plural: "leases",
    singular: "lease",
    namespaced: true,
    create_on_update: true,
    needs_version: true,
    schema: Lease::json_schema,
    default: |lease| fill(lease, "/spec", json!({})),
    validate,
    columns: &[column::NAME, Column::text("Holder", "The identity that holds the lease."), column::AGE],
    row,
    ..PLAIN
};

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let spec = Field::root(new).at("spec");
    let duration = spec.at("leaseDurationSeconds");
    if duration.int().is_some_and(|seconds| seconds <= 0) {
        errors.push(duration.invalid("must be greater than 0"));
    }
    spec.at("leaseTransitions").not_negative(errors);
    let strategy = spec.at("strategy");
    if strategy.text().contains('/') {
        strategy.clone().known_as("spec.strategy.strategy").follow(names::label_key, errors);
    } else {
        strategy.clone().known_as("spec.strategy.strategy").one_of(&["OldestEmulationVersion"], errors);
    }
    let preferred = spec.at("preferredHolder");
    if !preferred.is_empty() && strategy.is_empty() {
        errors.push(preferred.forbidden("may only be specified if `strategy` is defined"));
    }
}

fn row(lease: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(lease).into(), str_at(lease, "/spec/holderIdentity").into(), human::age(lease, now).into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, refusals, stored};

    #[test]
    fn durations_and_strategies_are_checked() {
        let held = json!({ "spec": { "holderIdentity": "node-1", "leaseDurationSeconds": 40, "leaseTransitions": 0 } });
        assert_eq!(refusals(&LEASE, &held), [""; 0]);
        let bad = json!({ "spec": {
            "leaseDurationSeconds": 0, "leaseTransitions": -1, "preferredHolder": "me",
        } });
        assert_eq!(
            refusals(&LEASE, &bad),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
                "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
            ]
        );
    }

    #[test]
    fn the_row_names_the_holder() {
        let lease = json!({ "metadata": stored("node-1"), "spec": { "holderIdentity": "node-1" } });
        assert_eq!(cells(&LEASE, &lease), ["node-1", "node-1", "5m12s"]);
    }
}
