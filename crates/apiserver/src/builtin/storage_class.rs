//! StorageClass: a named way to provision volumes.
//!
//! Owns defaults and immutability of this kind. Must never know a particular provisioner's parameters.

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::StorageClass;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{bool_at, fill, name, str_at};
use super::{Builtin, Column, PLAIN, column, human};

pub static STORAGE_CLASS: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "StorageClass",
    plural: "storageclasses",
    singular: "storageclass",
    short_names: &["sc"],
    schema: StorageClass::json_schema,
    default,
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
