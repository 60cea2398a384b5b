//! Lease: who holds a lock or is alive, and since when.
//!
//! Owns the rules for durations and strategies of a lease. Must never decide who may hold it.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{fill, name, str_at};
use super::{Builtin, Column, PLAIN, column, human};

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
    columns: &[column::NAME, Column::text("Holder", "The identity that holds the lease."), column::AGE],
    row,
    ..PLAIN
};

fn row(lease: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(lease).into(), str_at(lease, "/spec/holderIdentity").into(), human::age(lease, now).into()]
}
