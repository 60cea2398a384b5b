//! PersistentVolume: a piece of storage in the cluster.
//!
//! Owns defaults and printed cells of this kind; its rules are in the file beside it. Must never bind a volume.

mod rules;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{fill, fill_zero, is_set, name, str_at, texts_at};
use super::human::parse;
use super::{Builtin, Column, PLAIN, access, column, human, quantity};

pub use rules::{VOLUME_MODES, check_access_modes, check_inline_spec};

pub static PERSISTENT_VOLUME: Builtin = Builtin {
    kind: "PersistentVolume",
    plural: "persistentvolumes",
    singular: "persistentvolume",
    short_names: &["pv"],
    has_status: true,
    schema: PersistentVolume::json_schema,
    default,
    carry,
    validate: rules::validate,
    columns: &[
        column::NAME,
        Column::text("Capacity", "How large the volume is."),
        Column::text("Access Modes", "How many nodes may use it at once, and how."),
        Column::text("Reclaim Policy", "What happens to the volume when its claim is gone."),
        Column::text("Status", "Available, Bound, Released, Failed, Pending or Terminating."),
        Column::text("Claim", "The claim that has the volume, as namespace/name."),
        Column::text("StorageClass", "The class the volume belongs to."),
        Column::text("VolumeAttributesClass", "The settings the volume was switched to."),
        Column::text("Reason", "Why the volume failed, in one word."),
        column::AGE,
        Column::text("VolumeMode", "Filesystem or Block.").wide(),
    ],
    row,
    ..PLAIN
};

fn default(volume: &mut Value) {
    fill_zero(volume, "/status/phase", "Pending");
    fill_zero(volume, "/spec/persistentVolumeReclaimPolicy", "Retain");
    fill(volume, "/spec/volumeMode", "Filesystem");
    quantity::canonical_map(volume, "/spec/capacity");
    if is_set(volume, "/spec/iscsi") {
        fill_zero(volume, "/spec/iscsi/iscsiInterface", "default");
    }
    if is_set(volume, "/spec/hostPath") {
        fill(volume, "/spec/hostPath/type", "");
    }
    if is_set(volume, "/spec/rbd") {
        fill_zero(volume, "/spec/rbd/pool", "rbd");
        fill_zero(volume, "/spec/rbd/user", "admin");
        fill_zero(volume, "/spec/rbd/keyring", "/etc/ceph/keyring");
    }
}

/// Notes when the phase changed, unless the client did.
fn carry(new: &mut Value, old: &Value, now: Timestamp) {
    let pointer = "/status/lastPhaseTransitionTime";
    let stored = access::at(old, pointer).clone();
    if str_at(new, "/status/phase") == str_at(old, "/status/phase") {
        if !stored.is_null() {
            fill(new, pointer, stored);
        }
        return;
    }
    let given = access::at(new, pointer);
    if given.is_null() || parse(given) == parse(&stored) {
        access::remove(new, pointer);
        fill(new, pointer, now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
}

fn row(volume: &Value, now: Timestamp) -> Vec<Value> {
    let claim = match is_set(volume, "/spec/claimRef") {
        true => format!(
            "{}/{}",
            str_at(volume, "/spec/claimRef/namespace"),
            str_at(volume, "/spec/claimRef/name")
        ),
        false => String::new(),
    };
    vec![
        name(volume).into(),
        quantity_or_zero(str_at(volume, "/spec/capacity/storage")).into(),
        access_modes(&texts_at(volume, "/spec/accessModes")).into(),
        str_at(volume, "/spec/persistentVolumeReclaimPolicy").into(),
        phase(volume).into(),
        claim.into(),
        storage_class(volume).into(),
        or_unset(volume, "/spec/volumeAttributesClassName").into(),
        str_at(volume, "/status/reason").into(),
        human::age(volume, now).into(),
        or_unset(volume, "/spec/volumeMode").into(),
    ]
}

/// `status.phase`, unless the object is on its way out.
pub fn phase(object: &Value) -> &str {
    if is_set(object, "/metadata/deletionTimestamp") {
        "Terminating"
    } else {
        str_at(object, "/status/phase")
    }
}

/// The class of a volume or claim; the old annotation wins.
pub fn storage_class(object: &Value) -> &str {
    let annotation = access::at(object, "/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    annotation.as_str().unwrap_or_else(|| str_at(object, "/spec/storageClassName"))
}

/// `RWO,ROX,RWX,RWOP`, in this order.
pub fn access_modes(modes: &[&str]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let present = short.iter().filter(|(long, _)| modes.contains(long)).map(|(_, short)| *short);
    present.collect::<Vec<_>>().join(",")
}

pub fn or_unset<'a>(object: &'a Value, pointer: &str) -> &'a str {
    access::at(object, pointer).as_str().unwrap_or("<unset>")
}

/// A quantity that nobody set prints as zero.
pub fn quantity_or_zero(quantity: &str) -> &str {
    if quantity.is_empty() { "0" } else { quantity }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{CREATED, cells, defaulted, now, stored, with};
    use serde_json::json;

    fn volume() -> Value {
        defaulted(
            &PERSISTENT_VOLUME,
            json!({ "metadata": stored("pv-1"), "spec": {
                "capacity": { "storage": "10240Mi" }, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "csi": { "driver": "driver.longhorn.io", "volumeHandle": "vol-1" },
            } }),
        )
    }

    #[test]
    fn a_volume_is_kept_by_default() {
        let volume = volume();
        assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain");
        assert_eq!(volume["spec"]["volumeMode"], "Filesystem");
        assert_eq!(volume["spec"]["capacity"]["storage"], "10Gi");
        assert_eq!(volume["status"], json!({ "phase": "Pending" }));
    }

    #[test]
    fn a_change_of_phase_is_timed() {
        let old = with(volume(), "/status/lastPhaseTransitionTime", json!(CREATED));
        let mut same_phase = volume();
        (PERSISTENT_VOLUME.carry)(&mut same_phase, &old, now());
        assert_eq!(same_phase["status"]["lastPhaseTransitionTime"], CREATED);

        let mut bound = with(old.clone(), "/status/phase", json!("Bound"));
        (PERSISTENT_VOLUME.carry)(&mut bound, &old, now());
        assert_eq!(bound["status"]["lastPhaseTransitionTime"], "2024-05-01T12:00:00Z");

        let mut timed = with(bound.clone(), "/status/lastPhaseTransitionTime", json!("2024-05-01T11:59:00Z"));
        (PERSISTENT_VOLUME.carry)(&mut timed, &old, now());
        assert_eq!(timed["status"]["lastPhaseTransitionTime"], "2024-05-01T11:59:00Z");
    }

    #[test]
    fn the_row_names_claim_and_class() {
        let free =
            ["pv-1", "10Gi", "RWO,RWX", "Retain", "Pending", "", "", "<unset>", "", "5m12s", "Filesystem"];
        assert_eq!(cells(&PERSISTENT_VOLUME, &volume()), free);
        let mut bound = with(volume(), "/spec/claimRef", json!({ "namespace": "default", "name": "data" }));
        bound["spec"]["storageClassName"] = json!("fast");
        bound["metadata"]["deletionTimestamp"] = json!("2024-05-01T12:00:00Z");
        assert_eq!(cells(&PERSISTENT_VOLUME, &bound)[4..7], ["Terminating", "default/data", "fast"]);
    }
}
