//! VolumeAttributesClass: named settings of a driver that a volume can be switched to.
//!
//! Owns the rules of this kind. Must never know what a parameter means.

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{name, str_at};
use super::{Builtin, Column, PLAIN, column, human};

pub static VOLUME_ATTRIBUTES_CLASS: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "VolumeAttributesClass",
    plural: "volumeattributesclasses",
    singular: "volumeattributesclass",
    short_names: &["vac"],
    schema: VolumeAttributesClass::json_schema,
    columns: &[
        column::NAME,
        Column::text("DriverName", "The driver that understands the parameters."),
        column::AGE,
    ],
    row,
    ..PLAIN
};

fn row(class: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(class).into(), str_at(class, "/driverName").into(), human::age(class, now).into()]
}
