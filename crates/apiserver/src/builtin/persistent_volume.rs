//! PersistentVolume: a piece of storage in the cluster.
//!
//! Owns defaults and printed cells of this kind. Must never bind a volume to a claim.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{fill, fill_zero, is_set, name, str_at, texts_at};
use super::human::parse;
use super::{Builtin, Column, PLAIN, access, column, human};

pub static PERSISTENT_VOLUME: Builtin = Builtin {
    kind: "PersistentVolume",
    plural: "persistentvolumes",
    singular: "persistentvolume",
    short_names: &["pv"],
    has_status: true,
    schema: PersistentVolume::json_schema,
    default,
    carry,
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
