//! StorageClass: a named way to provision volumes.
//!
//! Owns defaults and immutability of this kind. Must never know a particular provisioner's parameters.

use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::storage::v1::StorageClass;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{bool_at, fill, name, str_at};
use super::field::Field;
use super::{Builtin, Column, PLAIN, column, human};
use crate::error::FieldError;

const MAX_PARAMETERS: usize = 512;
/// Keys and values of all parameters together.
const MAX_PARAMETERS_SIZE: usize = 256 * 1024;

pub static STORAGE_CLASS: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "StorageClass",
    plural: "storageclasses",
    singular: "storageclass",
    short_names: &["sc"],
    schema: StorageClass::json_schema,
    default,
    validate,
    columns: &[
        column::NAME,
        Column::text("Provisioner", "The driver that makes volumes of this class."),
        Column::text("ReclaimPolicy", "What happens to a volume when its claim is gone."),
        Column::text("VolumeBindingMode", "Whether volumes are made at once or when a pod needs them."),
        Column::text("AllowVolumeExpansion", "Whether claims of this class may grow."),
        column::AGE,
    ],
    row,
    ..PLAIN
};

fn default(class: &mut Value) {
    fill(class, "/reclaimPolicy", "Delete");
    fill(class, "/volumeBindingMode", "Immediate");
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let class = Field::root(new);
    check_provisioner(&class.at("provisioner"), errors);
    check_parameters(&class.at("parameters"), errors);
    let reclaim = class.at("reclaimPolicy");
    if !reclaim.is_empty() {
        reclaim.one_of(&["Delete", "Retain"], errors);
    }
    let binding = class.at("volumeBindingMode");
    if !binding.is_set() {
        errors.push(binding.required(""));
    }
    binding.one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    check_topologies(&class.at("allowedTopologies"), errors);
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            class.at(field).unchanged(&Field::root(old).at(field), errors);
        }
    }
}

/// The name of the driver of a class.
pub fn check_provisioner(provisioner: &Field, errors: &mut Vec<FieldError>) {
    provisioner.need_name(|name| names::label_key(&name.to_lowercase()), errors);
}

pub fn check_parameters(parameters: &Field, errors: &mut Vec<FieldError>) {
    if parameters.count() > MAX_PARAMETERS {
        errors.push(parameters.too_long(MAX_PARAMETERS));
        return;
    }
    let mut size = 0;
    for (key, value) in parameters.entries() {
        if key.is_empty() {
            errors.push(FieldError::invalid(parameters.path.as_str(), key, "field can not be empty."));
        }
        size += key.len() + value.text().len();
    }
    if size > MAX_PARAMETERS_SIZE {
        errors.push(parameters.too_long(MAX_PARAMETERS_SIZE));
    }
}

fn check_topologies(topologies: &Field, errors: &mut Vec<FieldError>) {
    let mut seen = Vec::new();
    for term in topologies.items() {
        let expressions = term.at("matchLabelExpressions");
        let mut keys = Vec::new();
        for expression in expressions.items() {
            let (key, values) = (expression.at("key"), expression.at("values"));
            check_topology_values(&values, errors);
            key.follow(names::label_key, errors);
            if keys.contains(&key.text()) {
                errors.push(key.duplicate());
            }
            keys.push(key.text());
        }
        // A term without expressions would match everywhere; Kubernetes refuses it in these words.
        if expressions.count() == 0 || seen.contains(&expressions.value) {
            errors.push(FieldError::duplicate(expressions.path.as_str(), ""));
        }
        seen.push(expressions.value);
    }
}

fn check_topology_values(values: &Field, errors: &mut Vec<FieldError>) {
    values.need(errors);
    let mut seen = Vec::new();
    for value in values.items() {
        if seen.contains(&value.text()) {
            errors.push(value.duplicate());
        }
        seen.push(value.text());
    }
}

fn row(class: &Value, now: Timestamp) -> Vec<Value> {
    let mark = if is_default(class) { " (default)" } else { "" };
    let text_or = |pointer, otherwise: &str| match str_at(class, pointer) {
        "" => otherwise.into(),
        text => text.into(),
    };
    vec![
        format!("{}{mark}", name(class)).into(),
        str_at(class, "/provisioner").into(),
        text_or("/reclaimPolicy", "Delete"),
        text_or("/volumeBindingMode", "Immediate"),
        bool_at(class, "/allowVolumeExpansion").into(),
        human::age(class, now).into(),
    ]
}

/// Whether claims without a class get this one.
fn is_default(class: &Value) -> bool {
    ["storageclass.kubernetes.io~1is-default-class", "storageclass.beta.kubernetes.io~1is-default-class"]
        .iter()
        .any(|key| str_at(class, &format!("/metadata/annotations/{key}")) == "true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, refusals, stored, update_refusals, with};
    use serde_json::json;

    fn class() -> Value {
        defaulted(
            &STORAGE_CLASS,
            json!({ "metadata": stored("fast"), "provisioner": "driver.longhorn.io", "parameters": { "n": "3" } }),
        )
    }

    #[test]
    fn volumes_are_deleted_and_bound_at_once_by_default() {
        assert_eq!(class()["reclaimPolicy"], "Delete");
        assert_eq!(class()["volumeBindingMode"], "Immediate");
        assert_eq!(refusals(&STORAGE_CLASS, &class()), [""; 0]);
    }

    #[test]
    fn enums_and_names_are_checked() {
        let bad = json!({
            "parameters": { "": "x" }, "reclaimPolicy": "Recycle", "volumeBindingMode": "Later",
            "allowedTopologies": [{ "matchLabelExpressions": [
                { "key": "zone", "values": ["a", "a"] }, { "key": "zone", "values": [] },
            ] }],
        });
        assert_eq!(
            refusals(&STORAGE_CLASS, &bad),
            [
                "provisioner: Required value",
                "parameters: Invalid value: \"\": field can not be empty.",
                "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\"",
                "volumeBindingMode: Unsupported value: \"Later\": supported values: \"Immediate\", \
                 \"WaitForFirstConsumer\"",
                "allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: \"a\"",
                "allowedTopologies[0].matchLabelExpressions[1].values: Required value",
                "allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: \"zone\"",
            ]
        );
    }

    #[test]
    fn what_volumes_were_made_from_never_changes() {
        let new = json!({
            "metadata": stored("fast"), "provisioner": "other.io", "parameters": { "n": "2" },
            "reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true,
        });
        assert_eq!(
            update_refusals(&STORAGE_CLASS, &class(), &new),
            [
                "parameters: Invalid value: {\"n\":\"2\"}: field is immutable",
                "provisioner: Invalid value: \"other.io\": field is immutable",
                "reclaimPolicy: Invalid value: \"Retain\": field is immutable",
                "volumeBindingMode: Invalid value: \"WaitForFirstConsumer\": field is immutable",
            ]
        );
        let grown = with(class(), "/allowVolumeExpansion", json!(true));
        assert_eq!(update_refusals(&STORAGE_CLASS, &class(), &grown), [""; 0]);
    }

    #[test]
    fn the_default_class_is_marked() {
        assert_eq!(
            cells(&STORAGE_CLASS, &class()),
            ["fast", "driver.longhorn.io", "Delete", "Immediate", "false", "5m12s"]
        );
        let annotations = json!({ "storageclass.kubernetes.io/is-default-class": "true" });
        let marked = with(class(), "/metadata/annotations", annotations);
        assert_eq!(cells(&STORAGE_CLASS, &marked)[0], "fast (default)");
    }
}
