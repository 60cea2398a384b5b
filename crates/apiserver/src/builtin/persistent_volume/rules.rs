//! What a persistent volume must say, and what of it can never change.
//!
//! Owns the rules for its spec, also where an attachment carries one inline. Must never look at claims.

use granary_api::names;
use serde_json::Value;

use super::super::access::{is_set, remove, same};
use super::super::field::{Field, IMMUTABLE};
use super::super::volume_source::{
    Source, check as check_source, check_csi_persistent, check_host_path, check_local, check_nfs, source,
};
use super::super::{changes, node_selector, quantity};
use crate::error::FieldError;

pub const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

const SOURCES: &[Source] = &[
    source("hostPath", &["path"]).with(check_host_path),
    source("gcePersistentDisk", &["pdName"]),
    source("awsElasticBlockStore", &["volumeID"]),
    source("glusterfs", &["endpoints", "path"]),
    source("flocker", &[]),
    source("nfs", &["server", "path"]).with(check_nfs),
    source("rbd", &["monitors", "image"]),
    source("quobyte", &["registry", "volume"]),
    source("cephfs", &["monitors"]),
    source("iscsi", &["targetPortal", "iqn"]),
    source("cinder", &["volumeID"]),
    source("fc", &[]),
    source("flexVolume", &["driver"]),
    source("azureFile", &["secretName", "shareName"]),
    source("vsphereVolume", &["volumePath"]),
    source("photonPersistentDisk", &["pdID"]),
    source("portworxVolume", &["volumeID"]),
    source("azureDisk", &["diskName", "diskURI"]),
    source("scaleIO", &["gateway", "system", "volumeName"]),
    source("local", &["path"]).with(check_local),
    source("storageos", &[]),
    source("csi", &[]).with(check_csi_persistent),
];

/// Sources that are mounted with options of the user's choice.
const WITH_MOUNT_OPTIONS: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

pub fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = Field::root(new);
    let spec = root.at("spec");
    check_access_modes(&spec.at("accessModes"), "", errors);
    check_capacity(&spec.at("capacity"), errors);
    let reclaim = spec.at("persistentVolumeReclaimPolicy");
    if !reclaim.is_empty() {
        reclaim.one_of(&["Delete", "Recycle", "Retain"], errors);
    }
    check_affinity(&spec, errors);
    check_source(&spec, SOURCES, errors);
    if is_root(spec.at("hostPath.path").text()) && reclaim.text() == "Recycle" {
        errors.push(reclaim.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    spec.at("storageClassName").follow_if_set(names::dns1123_subdomain, errors);
    spec.at("volumeMode").one_of(&VOLUME_MODES, errors);
    check_attributes_class(&spec, errors);
    let options = root.at("metadata.annotations").entry(MOUNT_OPTIONS);
    if options.is_set() && !WITH_MOUNT_OPTIONS.iter().any(|name| spec.at(name).is_set()) {
        errors.push(FieldError::forbidden(
            format!("metadata.annotations.{MOUNT_OPTIONS}"),
            "may not specify mount options for this volume type",
        ));
    }
    if let Some(old) = old {
        check_update(&spec, &Field::root(old).at("spec"), errors);
    }
}

/// A volume that an attachment carries inside: only CSI, no claim, no size.
pub fn check_inline_spec(spec: &Field, errors: &mut Vec<FieldError>) {
    let inline = "may not be specified in the context of inline volumes";
    for field in ["claimRef", "capacity", "nodeAffinity"] {
        if !spec.at(field).is_empty() {
            errors.push(spec.at(field).forbidden(inline));
        }
    }
    if !spec.at("csi").is_set() {
        errors.push(spec.at("csi").required("has to be specified in the context of inline volumes"));
    }
    check_access_modes(&spec.at("accessModes"), "", errors);
    let reclaim = spec.at("persistentVolumeReclaimPolicy");
    if !matches!(reclaim.text(), "" | "Retain") {
        errors.push(reclaim.forbidden("may only be Retain in the context of inline volumes"));
    }
    check_source(spec, SOURCES, errors);
    if !spec.at("storageClassName").is_empty() {
        errors.push(spec.at("storageClassName").forbidden(inline));
    }
    let mode = spec.at("volumeMode");
    if mode.is_set() && mode.text() != "Filesystem" {
        let detail = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.push(mode.forbidden(detail));
    }
}

/// At least one known mode; a volume for a single pod is for nothing else.
pub fn check_access_modes(modes: &Field, why: &str, errors: &mut Vec<FieldError>) {
    if modes.count() == 0 {
        errors.push(modes.required(why));
    }
    for mode in modes.items() {
        mode.known_as(modes.path.as_str()).one_of(&ACCESS_MODES, errors);
    }
    let pod_only = |mode: &Field| mode.text() == "ReadWriteOncePod";
    let other = |mode: &Field| !pod_only(mode) && ACCESS_MODES.contains(&mode.text());
    if modes.items().any(|m| pod_only(&m)) && modes.items().any(|m| other(&m)) {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

/// `/`, `/.`, `/x/..` and so on.
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    path.starts_with('/') && depth == 0
}

fn check_capacity(capacity: &Field, errors: &mut Vec<FieldError>) {
    if capacity.count() == 0 {
        errors.push(capacity.required(""));
    }
    if !capacity.entry("storage").is_set() || capacity.count() > 1 {
        errors.push(capacity.not_supported(&["storage"]));
    }
    for (_, size) in capacity.entries() {
        quantity::check_basic(&size, errors);
        quantity::check_positive(&size, errors);
    }
}

fn check_affinity(spec: &Field, errors: &mut Vec<FieldError>) {
    let affinity = spec.at("nodeAffinity");
    if !affinity.is_set() {
        let first = SOURCES.iter().find(|source| spec.at(source.name).is_set());
        if first.is_some_and(|source| source.name == "local") {
            errors.push(affinity.required("Local volume requires node affinity"));
        }
        return;
    }
    let required = affinity.at("required");
    if required.is_set() {
        node_selector::check(&required, errors);
    } else {
        errors.push(required.required("must specify required node constraints"));
    }
}

fn check_attributes_class(spec: &Field, errors: &mut Vec<FieldError>) {
    let class = spec.at("volumeAttributesClassName");
    if !class.is_set() {
        return;
    }
    if class.is_empty() {
        errors.push(class.required("an empty string is disallowed"));
    } else {
        class.follow(names::dns1123_subdomain, errors);
    }
    if !spec.at("csi").is_set() {
        let detail = "has to be specified when using volumeAttributesClassName";
        errors.push(spec.at("csi").required(detail));
    }
}

fn check_update(new: &Field, old: &Field, errors: &mut Vec<FieldError>) {
    let mut new_source = only_source(new.value);
    let old_source = only_source(old.value);
    // Expansion secrets came later than volumes: they may be added once.
    if !is_set(&old_source, "/csi/controllerExpandSecretRef") && is_set(&old_source, "/csi") {
        remove(&mut new_source, "/csi/controllerExpandSecretRef");
    }
    if !same(&new_source, &old_source) {
        let listed = changes::listed(&old_source, &new_source);
        errors.push(FieldError::forbidden(
            "spec.persistentvolumesource",
            format!("spec.persistentvolumesource is immutable after creation{listed}"),
        ));
    }
    new.at("volumeMode").known_as("volumeMode").unchanged(&old.at("volumeMode"), errors);
    let (affinity, stored) = (new.at("nodeAffinity"), old.at("nodeAffinity"));
    if stored.is_set() && !same(affinity.value, stored.value) {
        let detail = format!("{IMMUTABLE}, except for updating from beta label to GA");
        errors.push(FieldError::invalid("nodeAffinity", affinity.value.clone(), detail));
    }
    let class = new.at("volumeAttributesClassName");
    if old.at("volumeAttributesClassName").is_set() && !class.is_set() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}

fn only_source(spec: &Value) -> Value {
    let fields = spec.as_object().into_iter().flatten();
    let is_source = |key: &str| SOURCES.iter().any(|source| source.name == key);
    fields.filter(|(key, _)| is_source(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::PERSISTENT_VOLUME;
    use crate::builtin::testing::{defaulted, refusals, stored, update_refusals, with};
    use serde_json::{Value, json};

    fn volume() -> Value {
        defaulted(
            &PERSISTENT_VOLUME,
            json!({ "metadata": stored("pv-1"), "spec": {
                "capacity": { "storage": "10Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                "csi": { "driver": "driver.longhorn.io", "volumeHandle": "vol-1" },
            } }),
        )
    }

    #[test]
    fn a_volume_has_a_size_modes_and_one_source() {
        assert_eq!(refusals(&PERSISTENT_VOLUME, &volume()), [""; 0]);
        assert_eq!(
            refusals(&PERSISTENT_VOLUME, &json!({ "spec": {} })),
            [
                "spec.accessModes: Required value",
                "spec.capacity: Required value",
                "spec.capacity: Unsupported value: null: supported values: \"storage\"",
                "spec: Required value: must specify a volume type",
            ]
        );
        let two = with(volume(), "/spec/nfs", json!({ "server": "s", "path": "/" }));
        assert_eq!(
            refusals(&PERSISTENT_VOLUME, &two),
            ["spec.csi: Forbidden: may not specify more than 1 volume type"]
        );
    }

    #[test]
    fn values_are_checked() {
        for (pointer, value, refusal) in [
            (
                "/spec/capacity/storage",
                json!("0"),
                "spec.capacity[storage]: Invalid value: \"0\": must be greater than zero",
            ),
            (
                "/spec/accessModes",
                json!(["ReadWriteOnce", "ReadWriteOncePod"]),
                "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
            ),
            (
                "/spec/accessModes",
                json!(["Sometimes"]),
                "spec.accessModes: Unsupported value: \"Sometimes\": supported values: \"ReadOnlyMany\", \
                 \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
            ),
            (
                "/spec/persistentVolumeReclaimPolicy",
                json!("Burn"),
                "spec.persistentVolumeReclaimPolicy: Unsupported value: \"Burn\": supported values: \"Delete\", \
                 \"Recycle\", \"Retain\"",
            ),
            (
                "/spec/volumeMode",
                json!("Tape"),
                "spec.volumeMode: Unsupported value: \"Tape\": supported values: \"Block\", \"Filesystem\"",
            ),
            ("/spec/csi/volumeHandle", json!(""), "spec.csi.volumeHandle: Required value"),
            (
                "/spec/csi/nodePublishSecretRef",
                json!({ "name": "s" }),
                "spec.csi.nodePublishSecretRef.namespace: Required value",
            ),
            (
                "/spec/nodeAffinity",
                json!({}),
                "spec.nodeAffinity.required: Required value: must specify required node constraints",
            ),
            (
                "/spec/nodeAffinity",
                json!({ "required": { "nodeSelectorTerms": [] } }),
                "spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node \
                 selector term",
            ),
            (
                "/metadata/annotations",
                json!({ "volume.beta.kubernetes.io/mount-options": "ro" }),
                "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount \
                 options for this volume type",
            ),
        ] {
            assert_eq!(refusals(&PERSISTENT_VOLUME, &with(volume(), pointer, value)), [refusal]);
        }
    }

    #[test]
    fn a_local_volume_says_on_which_node_it_is() {
        let local = with(volume(), "/spec/csi", Value::Null);
        let local = with(local, "/spec/local", json!({ "path": "/mnt/../x" }));
        assert_eq!(
            refusals(&PERSISTENT_VOLUME, &local),
            [
                "spec.nodeAffinity: Required value: Local volume requires node affinity",
                "spec.local.path: Invalid value: \"/mnt/../x\": must not contain '..'",
            ]
        );
    }

    #[test]
    fn the_whole_host_is_never_recycled() {
        for (path, root) in [("/", true), ("/./", true), ("/data/..", true), ("/data", false), ("", false)] {
            assert_eq!(super::is_root(path), root, "{path}");
        }
    }

    #[test]
    fn where_the_data_is_never_changes() {
        let bound = with(volume(), "/spec/claimRef", json!({ "namespace": "default", "name": "data" }));
        assert_eq!(update_refusals(&PERSISTENT_VOLUME, &volume(), &bound), [""; 0]);
        let moved = with(volume(), "/spec/csi/volumeHandle", json!("vol-2"));
        assert_eq!(
            update_refusals(&PERSISTENT_VOLUME, &volume(), &moved),
            [
                "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n\
                 - csi.volumeHandle: \"vol-1\"\n+ csi.volumeHandle: \"vol-2\""
            ]
        );
        let secret = json!({ "name": "s", "namespace": "default" });
        let expandable = with(volume(), "/spec/csi/controllerExpandSecretRef", secret);
        assert_eq!(update_refusals(&PERSISTENT_VOLUME, &volume(), &expandable), [""; 0]);
        let block = with(volume(), "/spec/volumeMode", json!("Block"));
        assert_eq!(
            update_refusals(&PERSISTENT_VOLUME, &volume(), &block),
            ["volumeMode: Invalid value: \"Block\": field is immutable"]
        );
    }
}
