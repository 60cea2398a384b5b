//! CSINode: which CSI drivers a node has.
//!
//! Owns the rules for entries of this kind. Must never look at the Node object.

use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::storage::v1::CSINode;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{fill, len_at, name, remove, same};
use super::field::{Field, IMMUTABLE};
use super::{Builtin, Column, PLAIN, column, human};
use crate::error::FieldError;

const MAX_NODE_ID: usize = 256;

pub static CSI_NODE: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "CSINode",
    plural: "csinodes",
    singular: "csinode",
    needs_version: true,
    schema: CSINode::json_schema,
    default: |node| fill(node, "/spec/drivers", json!([])),
    validate,
    columns: &[
        column::NAME,
        Column::integer("Drivers", "How many CSI drivers are registered on the node."),
        column::AGE,
    ],
    row,
    ..PLAIN
};

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let drivers = Field::root(new).at("spec.drivers");
    let mut seen = Vec::new();
    for driver in drivers.items() {
        let name = driver.at("name");
        name.csi_driver_name(errors);
        let id = driver.at("nodeID");
        id.need(errors);
        if id.text().len() > MAX_NODE_ID {
            errors.push(id.invalid(format!("must be {MAX_NODE_ID} characters or less")));
        }
        driver.at("allocatable.count").not_negative(errors);
        if seen.contains(&name.text()) {
            errors.push(name.duplicate());
        }
        seen.push(name.text());
        check_topology_keys(&driver, errors);
        if let Some(old) = old {
            check_unchanged(&driver, old, errors);
        }
    }
}

fn check_topology_keys(driver: &Field, errors: &mut Vec<FieldError>) {
    let mut seen = Vec::new();
    for key in driver.at("topologyKeys").items() {
        let key = key.known_as(driver.path.as_str());
        key.need(errors);
        if seen.contains(&key.text()) {
            errors.push(key.duplicate());
        }
        seen.push(key.text());
        key.follow(names::label_key, errors);
    }
}

/// A registered driver may report another volume limit, and nothing else.
fn check_unchanged(driver: &Field, old: &Value, errors: &mut Vec<FieldError>) {
    let without_limit = |driver: &Value| {
        let mut driver = driver.clone();
        remove(&mut driver, "/allocatable");
        driver
    };
    let new = without_limit(driver.value);
    let stored = Field::root(old).at("spec.drivers");
    let mut namesakes = stored.items().filter(|d| d.at("name").text() == driver.at("name").text()).peekable();
    if namesakes.peek().is_some() && !namesakes.any(|stored| same(&new, &without_limit(stored.value))) {
        errors.push(FieldError::invalid("spec.drivers", new, IMMUTABLE));
    }
}

fn row(node: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(node).into(), len_at(node, "/spec/drivers").into(), human::age(node, now).into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, refusals, stored, update_refusals, with};

    fn node() -> Value {
        json!({ "metadata": stored("node-1"), "spec": { "drivers": [
            { "name": "driver.longhorn.io", "nodeID": "n1", "topologyKeys": ["kubernetes.io/hostname"] },
        ] } })
    }

    #[test]
    fn entries_are_complete_and_unique() {
        assert_eq!(refusals(&CSI_NODE, &node()), [""; 0]);
        let bad = json!({ "spec": { "drivers": [
            { "name": "a.io", "nodeID": "1", "topologyKeys": ["zone", "zone"], "allocatable": { "count": -1 } },
            { "name": "a.io" },
        ] } });
        assert_eq!(
            refusals(&CSI_NODE, &bad),
            [
                "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
                "spec.drivers[0]: Duplicate value: \"zone\"",
                "spec.drivers[1].nodeID: Required value",
                "spec.drivers[1].name: Duplicate value: \"a.io\"",
            ]
        );
    }

    #[test]
    fn only_the_volume_limit_of_an_entry_changes() {
        let limited = with(node(), "/spec/drivers/0/allocatable", json!({ "count": 8 }));
        assert_eq!(update_refusals(&CSI_NODE, &node(), &limited), [""; 0]);
        let moved = with(node(), "/spec/drivers/0/nodeID", json!("n2"));
        assert_eq!(
            update_refusals(&CSI_NODE, &node(), &moved),
            ["spec.drivers: Invalid value: {\"name\":\"driver.longhorn.io\",\"nodeID\":\"n2\",\
                 \"topologyKeys\":[\"kubernetes.io/hostname\"]}: field is immutable"]
        );
    }

    #[test]
    fn the_row_counts_drivers() {
        assert_eq!(cells(&CSI_NODE, &node()), ["node-1", "1", "5m12s"]);
    }
}
