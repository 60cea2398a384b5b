//! CSIStorageCapacity: how much space a driver has left for one class in one part of the cluster.
//!
//! Owns the rules of this kind. Must never choose where a volume goes.

use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::storage::v1::CSIStorageCapacity;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{name, str_at};
use super::field::Field;
use super::{Builtin, Column, PLAIN, column, quantity};
use crate::error::FieldError;

pub static CSI_STORAGE_CAPACITY: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "CSIStorageCapacity",
    plural: "csistoragecapacities",
    singular: "csistoragecapacity",
    namespaced: true,
    needs_version: true,
    schema: CSIStorageCapacity::json_schema,
    default,
    validate,
    columns: &[
        column::NAME,
        Column::text("StorageClassName", "The class that the number is about."),
        Column::text("Capacity", "The space left, as the driver reports it."),
    ],
    row,
    ..PLAIN
};

fn default(capacity: &mut Value) {
    quantity::canonical(capacity, "/capacity");
    quantity::canonical(capacity, "/maximumVolumeSize");
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = Field::root(new);
    root.at("nodeTopology").label_selector(errors);
    root.at("storageClassName").follow(names::dns1123_subdomain, errors);
    if root.at("capacity").is_set() {
        quantity::check(&root.at("capacity"), errors);
    }
    if root.at("maximumVolumeSize").is_set() {
        quantity::check_readable(&root.at("maximumVolumeSize"), errors);
    }
    if let Some(old) = old {
        for field in ["nodeTopology", "storageClassName"] {
            root.at(field).unchanged(&Field::root(old).at(field), errors);
        }
    }
}

fn row(capacity: &Value, _now: Timestamp) -> Vec<Value> {
    let space = match str_at(capacity, "/capacity") {
        "" => "<unset>",
        quantity => quantity,
    };
    vec![name(capacity).into(), str_at(capacity, "/storageClassName").into(), space.into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, refusals, stored, update_refusals, with};
    use serde_json::json;

    fn capacity() -> Value {
        let object = json!({ "metadata": stored("c1"), "storageClassName": "fast", "capacity": "1024Gi" });
        defaulted(&CSI_STORAGE_CAPACITY, object)
    }

    #[test]
    fn sizes_and_selectors_are_checked() {
        assert_eq!(refusals(&CSI_STORAGE_CAPACITY, &capacity()), [""; 0]);
        let bad = json!({
            "storageClassName": "fast", "capacity": "-1", "maximumVolumeSize": "big",
            "nodeTopology": { "matchExpressions": [{ "key": "zone", "operator": "In" }] },
        });
        assert_eq!(
            refusals(&CSI_STORAGE_CAPACITY, &bad),
            [
                "nodeTopology.matchExpressions[0].values: Required value: must be specified when `operator` is \
                 'In' or 'NotIn'",
                "capacity: Invalid value: \"-1\": must be greater than or equal to 0",
                "maximumVolumeSize: Invalid value: \"big\": quantities must match the regular expression \
                 '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ]
        );
    }

    #[test]
    fn what_the_number_is_about_never_changes() {
        let grown = with(capacity(), "/capacity", json!("2Ti"));
        assert_eq!(update_refusals(&CSI_STORAGE_CAPACITY, &capacity(), &grown), [""; 0]);
        let moved = with(capacity(), "/storageClassName", json!("slow"));
        assert_eq!(
            update_refusals(&CSI_STORAGE_CAPACITY, &capacity(), &moved),
            ["storageClassName: Invalid value: \"slow\": field is immutable"]
        );
    }

    #[test]
    fn the_row_shows_the_canonical_size() {
        assert_eq!(cells(&CSI_STORAGE_CAPACITY, &capacity()), ["c1", "fast", "1Ti"]);
    }
}
