//! CSIStorageCapacity: how much space a driver has left for one class in one part of the cluster.
//!
//! Owns the rules of this kind. Must never choose where a volume goes.

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::CSIStorageCapacity;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{name, str_at};
use super::{Builtin, Column, PLAIN, column};

pub static CSI_STORAGE_CAPACITY: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "CSIStorageCapacity",
    plural: "csistoragecapacities",
    singular: "csistoragecapacity",
    namespaced: true,
    needs_version: true,
    schema: CSIStorageCapacity::json_schema,
    columns: &[
        column::NAME,
        Column::text("StorageClassName", "The class that the number is about."),
        Column::text("Capacity", "The space left, as the driver reports it."),
    ],
    row,
    ..PLAIN
};

fn row(capacity: &Value, _now: Timestamp) -> Vec<Value> {
    let space = match str_at(capacity, "/capacity") {
        "" => "<unset>",
        quantity => quantity,
    };
    vec![name(capacity).into(), str_at(capacity, "/storageClassName").into(), space.into()]
}
