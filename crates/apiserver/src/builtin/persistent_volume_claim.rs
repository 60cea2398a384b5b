//! PersistentVolumeClaim: the wish for a volume.
//!
//! Owns defaults and printed cells of this kind. Must never bind a claim to a volume.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{at, fill, fill_zero, is_set, name, remove, str_at, texts_at};
use super::persistent_volume::{access_modes, or_unset, phase, quantity_or_zero, storage_class};
use super::{Builtin, Column, PLAIN, column, human};

pub static PERSISTENT_VOLUME_CLAIM: Builtin = Builtin {
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    singular: "persistentvolumeclaim",
    short_names: &["pvc"],
    namespaced: true,
    has_status: true,
    schema: PersistentVolumeClaim::json_schema,
    default,
    columns: &[
        column::NAME,
        Column::text("Status", "Pending, Bound, Lost or Terminating."),
        Column::text("Volume", "The volume that the claim is bound to."),
        Column::text("Capacity", "How large that volume is."),
        Column::text("Access Modes", "How many nodes may use it at once, and how."),
        Column::text("StorageClass", "The class the claim asks for."),
        Column::text("VolumeAttributesClass", "The settings the claim asks for."),
        column::AGE,
        Column::text("VolumeMode", "Filesystem or Block.").wide(),
    ],
    row,
    ..PLAIN
};

fn default(claim: &mut Value) {
    fill_zero(claim, "/status/phase", "Pending");
    default_spec(claim);
}

/// The part that an ephemeral volume's claim template shares with a claim.
pub fn default_spec(claim: &mut Value) {
    fill(claim, "/spec/volumeMode", "Filesystem");
    normalize_data_source(claim);
}

/// Keeps `dataSource` and `dataSourceRef` in step: a client may set either.
fn normalize_data_source(claim: &mut Value) {
    if is_set(claim, "/spec/dataSource") && !is_pvc_or_snapshot(at(claim, "/spec/dataSource")) {
        remove(claim, "/spec/dataSource");
    }
    if !str_at(claim, "/spec/dataSourceRef/namespace").is_empty() {
        return;
    }
    let source = at(claim, "/spec/dataSource").clone();
    let reference = at(claim, "/spec/dataSourceRef");
    if source.is_object() && reference.is_null() {
        fill(claim, "/spec/dataSourceRef", source);
    } else if reference.is_object() && source.is_null() {
        let mut copy = json!({ "kind": at(reference, "/kind"), "name": at(reference, "/name") });
        if is_set(reference, "/apiGroup") {
            copy["apiGroup"] = at(reference, "/apiGroup").clone();
        }
        fill(claim, "/spec/dataSource", copy);
    }
}

/// Other sources were silently ignored before `dataSourceRef` existed, and still are.
fn is_pvc_or_snapshot(source: &Value) -> bool {
    matches!(
        (str_at(source, "/apiGroup"), str_at(source, "/kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

fn row(claim: &Value, now: Timestamp) -> Vec<Value> {
    let volume = str_at(claim, "/spec/volumeName");
    let (capacity, modes) = match volume {
        "" => ("", String::new()),
        _ => (
            quantity_or_zero(str_at(claim, "/status/capacity/storage")),
            access_modes(&texts_at(claim, "/status/accessModes")),
        ),
    };
    vec![
        name(claim).into(),
        phase(claim).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        storage_class(claim).into(),
        or_unset(claim, "/spec/volumeAttributesClassName").into(),
        human::age(claim, now).into(),
        or_unset(claim, "/spec/volumeMode").into(),
    ]
}
