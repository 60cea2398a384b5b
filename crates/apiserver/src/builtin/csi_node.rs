//! CSINode: which CSI drivers a node has.
//!
//! Owns the rules for entries of this kind. Must never look at the Node object.

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::CSINode;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{fill, len_at, name};
use super::{Builtin, Column, PLAIN, column, human};

pub static CSI_NODE: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "CSINode",
    plural: "csinodes",
    singular: "csinode",
    needs_version: true,
    schema: CSINode::json_schema,
    default: |node| fill(node, "/spec/drivers", json!([])),
    columns: &[
        column::NAME,
        Column::integer("Drivers", "How many CSI drivers are registered on the node."),
        column::AGE,
    ],
    row,
    ..PLAIN
};

fn row(node: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(node).into(), len_at(node, "/spec/drivers").into(), human::age(node, now).into()]
}
