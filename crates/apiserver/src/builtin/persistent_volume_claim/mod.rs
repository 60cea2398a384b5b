//! PersistentVolumeClaim: the wish for a volume.
//!
//! Owns defaults and printed cells of this kind; its rules are in the file beside it. Must never bind a claim.

mod rules;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{at, fill, fill_zero, is_set, name, remove, str_at, texts_at};
use super::persistent_volume::{access_modes, or_unset, phase, quantity_or_zero, storage_class};
use super::{Builtin, Column, PLAIN, column, human, quantity};

pub use rules::check_spec;

pub static PERSISTENT_VOLUME_CLAIM: Builtin = Builtin {
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    singular: "persistentvolumeclaim",
    short_names: &["pvc"],
    namespaced: true,
    has_status: true,
    schema: PersistentVolumeClaim::json_schema,
    default,
    validate: rules::validate,
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
    quantity::canonical_map(claim, "/status/capacity");
    quantity::canonical_map(claim, "/status/allocatedResources");
}

/// The part that an ephemeral volume's claim template shares with a claim.
pub fn default_spec(claim: &mut Value) {
    fill(claim, "/spec/volumeMode", "Filesystem");
    quantity::canonical_map(claim, "/spec/resources/requests");
    quantity::canonical_map(claim, "/spec/resources/limits");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, stored};

    const PVC: &Builtin = &PERSISTENT_VOLUME_CLAIM;

    #[test]
    fn a_claim_is_a_pending_file_system() {
        let sent = json!({ "spec": { "resources": { "requests": { "storage": "1024Mi" } } } });
        assert_eq!(
            defaulted(PVC, sent),
            json!({
                "spec": { "volumeMode": "Filesystem", "resources": { "requests": { "storage": "1Gi" } } },
                "status": { "phase": "Pending" },
            })
        );
    }

    #[test]
    fn either_form_of_a_data_source_fills_the_other() {
        let clone = json!({ "kind": "PersistentVolumeClaim", "name": "golden" });
        let old_form = defaulted(PVC, json!({ "spec": { "dataSource": clone } }));
        assert_eq!(old_form["spec"]["dataSourceRef"], clone);
        let new_form = defaulted(PVC, json!({ "spec": { "dataSourceRef": clone } }));
        assert_eq!(new_form["spec"]["dataSource"], clone);

        let elsewhere = json!({ "kind": "PersistentVolumeClaim", "name": "golden", "namespace": "images" });
        let foreign = defaulted(PVC, json!({ "spec": { "dataSourceRef": elsewhere } }));
        assert_eq!(at(&foreign, "/spec/dataSource"), &Value::Null);
        let unknown = json!({ "apiGroup": "example.com", "kind": "Tape", "name": "t" });
        let dropped = defaulted(PVC, json!({ "spec": { "dataSource": unknown } }));
        assert_eq!(at(&dropped, "/spec/dataSource"), &Value::Null);
    }

    #[test]
    fn the_row_shows_size_and_modes_once_bound() {
        let mut claim =
            defaulted(PVC, json!({ "metadata": stored("data"), "spec": { "storageClassName": "fast" } }));
        assert_eq!(
            cells(PVC, &claim),
            ["data", "Pending", "", "", "", "fast", "<unset>", "5m12s", "Filesystem"]
        );
        claim["spec"]["volumeName"] = json!("pv-1");
        claim["status"] = json!({
            "phase": "Bound", "capacity": { "storage": "10Gi" }, "accessModes": ["ReadWriteOncePod"],
        });
        assert_eq!(
            cells(PVC, &claim),
            ["data", "Bound", "pv-1", "10Gi", "RWOP", "fast", "<unset>", "5m12s", "Filesystem"]
        );
    }
}
