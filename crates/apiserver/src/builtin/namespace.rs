//! Namespace: where namespaced objects live.
//!
//! Owns the `kubernetes` finalizer, the name label and the phase of a namespace. Must never delete contents.

use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{at, fill_zero, is_set, map_mut, name, remove, same_at, str_at};
use super::field::Field;
use super::{Builtin, Column, NameRule, PLAIN, column, human};
use crate::error::FieldError;

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub static NAMESPACE: Builtin = Builtin {
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short_names: &["ns"],
    name_rule: NameRule::Label,
    has_status: true,
    schema: Namespace::json_schema,
    default,
    carry,
    validate,
    columns: &[
        column::NAME,
        Column::text("Status", "Active, or Terminating while its contents are deleted."),
        column::AGE,
    ],
    row,
    fields: |namespace| vec![("status.phase", str_at(namespace, "/status/phase").into())],
    ..PLAIN
};

fn default(namespace: &mut Value) {
    let own_name = name(namespace).to_string();
    if !own_name.is_empty()
        && let Some(labels) = map_mut(namespace, "/metadata/labels")
    {
        labels.insert(NAME_LABEL.into(), own_name.into());
    }
    // Once deletion has begun, the finalizer may go, and must not come back.
    if !is_set(namespace, "/metadata/deletionTimestamp") {
        fill_zero(namespace, "/spec/finalizers", json!(["kubernetes"]));
    }
    fill_zero(namespace, "/status/phase", "Active");
}

/// `spec.finalizers` changes only through the `finalize` subresource.
fn carry(new: &mut Value, old: &Value, _now: Timestamp) {
    remove(new, "/spec/finalizers");
    let finalizers = at(old, "/spec/finalizers").clone();
    if !finalizers.is_null() {
        fill_zero(new, "/spec/finalizers", finalizers);
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = Field::root(new);
    let finalizers = root.at("spec.finalizers");
    for finalizer in finalizers.items() {
        let finalizer = finalizer.known_as(finalizers.path.as_str());
        finalizer.follow(names::label_key, errors);
        if !matches!(finalizer.text(), "kubernetes" | "foregroundDeletion" | "orphan")
            && !finalizer.text().contains('/')
        {
            errors.push(
                finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified"),
            );
        }
    }
    if old.is_some_and(|old| !same_at(new, old, "/status/phase")) {
        check_phase(&root, errors);
    }
}

fn check_phase(root: &Field, errors: &mut Vec<FieldError>) {
    let phase = root.at("status.phase").known_as("status.Phase");
    let deleted = root.at("metadata.deletionTimestamp").is_set();
    let (wanted, detail) = match deleted {
        true => ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
        false => ("Active", "may only be 'Active' if `deletionTimestamp` is empty"),
    };
    if phase.text() != wanted {
        errors.push(phase.invalid(detail));
    }
}

fn row(namespace: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(namespace).into(), str_at(namespace, "/status/phase").into(), human::age(namespace, now).into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, now, refusals, stored, update_refusals, with};

    #[test]
    fn a_fresh_namespace_is_active_and_finalized_by_the_server() {
        assert_eq!(
            defaulted(&NAMESPACE, json!({ "metadata": { "name": "blue" } })),
            json!({
                "metadata": { "name": "blue", "labels": { "kubernetes.io/metadata.name": "blue" } },
                "spec": { "finalizers": ["kubernetes"] },
                "status": { "phase": "Active" },
            })
        );
        let unnamed = defaulted(&NAMESPACE, json!({ "metadata": { "generateName": "blue-" } }));
        assert_eq!(unnamed["metadata"], json!({ "generateName": "blue-" }));
    }

    #[test]
    fn the_finalizer_goes_only_through_finalize() {
        let old = defaulted(&NAMESPACE, json!({ "metadata": stored("blue") }));
        let mut new = with(old.clone(), "/spec", json!({ "finalizers": ["example.com/mine"] }));
        (NAMESPACE.carry)(&mut new, &old, now());
        assert_eq!(new["spec"], json!({ "finalizers": ["kubernetes"] }));

        let dying = json!({ "metadata": { "name": "blue", "deletionTimestamp": "2024-05-01T12:00:00Z" } });
        assert_eq!(at(&defaulted(&NAMESPACE, dying), "/spec"), &Value::Null);
    }

    #[test]
    fn phase_and_finalizers_are_checked() {
        let old = defaulted(&NAMESPACE, json!({ "metadata": stored("blue") }));
        assert_eq!(update_refusals(&NAMESPACE, &old, &old), [""; 0]);
        let gone = with(old.clone(), "/status/phase", json!("Terminating"));
        assert_eq!(
            update_refusals(&NAMESPACE, &old, &gone),
            ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` \
                 is empty"]
        );
        assert_eq!(
            refusals(&NAMESPACE, &with(old, "/spec/finalizers", json!(["mine"]))),
            ["spec.finalizers: Invalid value: \"mine\": name is neither a standard finalizer name nor is \
                 it fully qualified"]
        );
    }

    #[test]
    fn the_row_shows_the_phase() {
        let namespace = defaulted(&NAMESPACE, json!({ "metadata": stored("blue") }));
        assert_eq!(cells(&NAMESPACE, &namespace), ["blue", "Active", "5m12s"]);
    }
}
