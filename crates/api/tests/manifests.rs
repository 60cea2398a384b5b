//! Manifests as users and other software write them pass through the types unchanged,
//! whatever further members somebody has put into them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use granary_api::k8s::CustomResourceDefinition;
use granary_api::{cdi, cni, crds, harvester, longhorn, snapshot};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Parts that are Kubernetes' own types: they hold exactly the fields of its version, so no unknown member is
/// put into them. Paths with list indices and map keys left out.
const KUBERNETES_OWN: [&str; 15] = [
    "/metadata",
    "/spec/pvc",
    "/spec/storage/selector",
    "/spec/storage/resources",
    "/spec/volumeSnapshotRef",
    "/spec/podResourceRequirements",
    "/spec/imagePullSecrets",
    "/status/defaultPodResourceRequirements",
    "/spec/target",
    "/spec/vm/metadata",
    "/status/source/metadata",
    "/status/volumeBackups/persistentVolumeClaim/metadata",
    "/status/volumeBackups/persistentVolumeClaim/spec",
    "/status/restores/persistentVolumeClaimSpec/metadata",
    "/status/restores/persistentVolumeClaimSpec/spec",
];

fn manifests() -> Vec<(PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests");
    let mut found = Vec::new();
    for group in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(group.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let value = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            found.push((path, value));
        }
    }
    found
}

fn through<K: DeserializeOwned + Serialize>(manifest: &Value) -> Value {
    let typed: K = serde_json::from_value(manifest.clone()).unwrap_or_else(|e| panic!("{manifest}: {e}"));
    serde_json::to_value(typed).unwrap()
}

/// The manifest after it was read into the Rust type of its kind and written again.
fn through_type(manifest: &Value) -> Value {
    let group = manifest["apiVersion"].as_str().unwrap().split('/').next().unwrap();
    let kind = manifest["kind"].as_str().unwrap();
    let pass = match (group, kind) {
        ("snapshot.storage.k8s.io", "VolumeSnapshot") => through::<snapshot::VolumeSnapshot>,
        ("snapshot.storage.k8s.io", "VolumeSnapshotContent") => through::<snapshot::VolumeSnapshotContent>,
        ("snapshot.storage.k8s.io", "VolumeSnapshotClass") => through::<snapshot::VolumeSnapshotClass>,
        ("k8s.cni.cncf.io", "NetworkAttachmentDefinition") => through::<cni::NetworkAttachmentDefinition>,
        ("cdi.kubevirt.io", "DataVolume") => through::<cdi::DataVolume>,
        ("cdi.kubevirt.io", "StorageProfile") => through::<cdi::StorageProfile>,
        ("cdi.kubevirt.io", "DataSource") => through::<cdi::DataSource>,
        ("cdi.kubevirt.io", "CDIConfig") => through::<cdi::CDIConfig>,
        ("cdi.kubevirt.io", "VolumeImportSource") => through::<cdi::VolumeImportSource>,
        ("cdi.kubevirt.io", "VolumeUploadSource") => through::<cdi::VolumeUploadSource>,
        ("cdi.kubevirt.io", "VolumeCloneSource") => through::<cdi::VolumeCloneSource>,
        ("upload.cdi.kubevirt.io", "UploadTokenRequest") => through::<cdi::UploadTokenRequest>,
        ("harvesterhci.io", "VirtualMachineImage") => through::<harvester::VirtualMachineImage>,
        ("harvesterhci.io", "VirtualMachineImageDownloader") => {
            through::<harvester::VirtualMachineImageDownloader>
        }
        ("harvesterhci.io", "Setting") => through::<harvester::Setting>,
        ("harvesterhci.io", "NetworkFilesystem") => through::<harvester::NetworkFilesystem>,
        ("harvesterhci.io", "VirtualMachineTemplate") => through::<harvester::VirtualMachineTemplate>,
        ("harvesterhci.io", "VirtualMachineTemplateVersion") => {
            through::<harvester::VirtualMachineTemplateVersion>
        }
        ("harvesterhci.io", "VirtualMachineBackup") => through::<harvester::VirtualMachineBackup>,
        ("harvesterhci.io", "VirtualMachineRestore") => through::<harvester::VirtualMachineRestore>,
        ("longhorn.io", "Volume") => through::<longhorn::Volume>,
        ("longhorn.io", "Engine") => through::<longhorn::Engine>,
        ("longhorn.io", "Replica") => through::<longhorn::Replica>,
        ("longhorn.io", "InstanceManager") => through::<longhorn::InstanceManager>,
        ("longhorn.io", "EngineImage") => through::<longhorn::EngineImage>,
        ("longhorn.io", "BackingImage") => through::<longhorn::BackingImage>,
        ("longhorn.io", "BackingImageManager") => through::<longhorn::BackingImageManager>,
        ("longhorn.io", "BackingImageDataSource") => through::<longhorn::BackingImageDataSource>,
        ("longhorn.io", "ShareManager") => through::<longhorn::ShareManager>,
        ("longhorn.io", "Snapshot") => through::<longhorn::Snapshot>,
        ("longhorn.io", "Backup") => through::<longhorn::Backup>,
        ("longhorn.io", "BackupTarget") => through::<longhorn::BackupTarget>,
        ("longhorn.io", "BackupVolume") => through::<longhorn::BackupVolume>,
        ("longhorn.io", "Setting") => through::<longhorn::Setting>,
        ("longhorn.io", "Node") => through::<longhorn::Node>,
        ("longhorn.io", "VolumeAttachment") => through::<longhorn::VolumeAttachment>,
        other => panic!("no type for {other:?}"),
    };
    pass(manifest)
}

/// The schema of the manifest's kind, or `None` for a kind that is not a custom resource.
fn schema_of(manifest: &Value, definitions: &[CustomResourceDefinition]) -> Option<Value> {
    let group = manifest["apiVersion"].as_str()?.split('/').next()?;
    let definition = definitions
        .iter()
        .find(|crd| crd.spec.group == group && manifest["kind"] == crd.spec.names.kind.as_str())?;
    let schema = definition.spec.versions[0].schema.as_ref()?.open_api_v3_schema.as_ref()?;
    serde_json::to_value(schema).ok()
}

/// Puts a member nobody knows into every object that promises to keep it; returns how many there were.
fn strew_unknown_members(value: &mut Value, schema: &Value, path: &str) -> usize {
    if KUBERNETES_OWN.contains(&path) {
        return 0;
    }
    let mut count = 0;
    match value {
        Value::Array(items) => {
            for item in items {
                count += strew_unknown_members(item, &schema["items"], path);
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let (below, path) = match &schema["additionalProperties"] {
                    Value::Null => (&schema["properties"][name.as_str()], format!("{path}/{name}")),
                    each => (each, path.to_owned()),
                };
                count += strew_unknown_members(member, below, &path);
            }
            if schema["x-kubernetes-preserve-unknown-fields"] == true {
                members.insert("fromTheFuture".to_owned(), json!({"list": [1, "two", null], "on": true}));
                count += 1;
            }
        }
        _ => {}
    }
    count
}

#[test]
fn every_manifest_passes_through_its_type_unchanged() {
    for (path, manifest) in manifests() {
        similar(&manifest, &through_type(&manifest), &path);
    }
}

#[test]
fn members_of_a_later_version_survive_being_read_and_written() {
    let definitions = crds::all();
    let mut strewn = 0;
    for (path, mut manifest) in manifests() {
        let Some(schema) = schema_of(&manifest, &definitions) else { continue };
        // References in specs of these kinds are Kubernetes' own, under a name that others use for theirs.
        let reference =
            ["VolumeCloneSource", "VirtualMachineBackup"].iter().any(|kind| manifest["kind"] == *kind);
        let kept = reference.then(|| manifest["spec"]["source"].clone());
        strewn += strew_unknown_members(&mut manifest, &schema, "");
        if let Some(source) = kept {
            manifest["spec"]["source"] = source;
        }
        similar(&manifest, &through_type(&manifest), &path);
    }
    assert!(strewn > 150, "the walk found only {strewn} objects");
}

#[test]
fn every_kind_has_a_manifest() {
    let shown: BTreeSet<(String, String)> = manifests()
        .iter()
        .map(|(_, m)| (m["apiVersion"].as_str().unwrap().to_owned(), m["kind"].as_str().unwrap().to_owned()))
        .collect();
    for crd in crds::all() {
        let api_version = format!("{}/{}", crd.spec.group, crd.spec.versions[0].name);
        let kind = (api_version, crd.spec.names.kind);
        assert!(shown.contains(&kind), "no manifest shows a {kind:?}");
    }
}

#[test]
fn null_is_read_as_absent() {
    let volume = json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "metadata": {"name": "v"},
        "spec": {"diskSelector": null, "size": "4096"}, "status": {"conditions": null}
    });
    let expected = json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "metadata": {"name": "v"},
        "spec": {"size": "4096"}, "status": {}
    });
    assert_eq!(through_type(&volume), expected);
}

#[test]
fn the_oddities_of_the_wire_have_sane_names_in_rust() {
    let read = |kind: &str, name: &str| {
        manifests()
            .into_iter()
            .map(|(_, m)| m)
            .find(|m| m["kind"] == kind && m["metadata"]["name"] == name)
            .unwrap()
    };
    let share: harvester::NetworkFilesystem =
        serde_json::from_value(read("NetworkFilesystem", "pvc-3f0c7d5a")).unwrap();
    assert_eq!(share.spec.preferred_nodes.as_deref(), Some("node-2"));
    let volume: longhorn::Volume = serde_json::from_value(read("Volume", "pvc-1")).unwrap();
    assert_eq!(volume.spec.standby, Some(false));
    assert_eq!(volume.spec.size.unwrap().bytes(), 10 << 30);
    let setting: longhorn::Setting = serde_json::from_value(read("Setting", "storage-network")).unwrap();
    assert_eq!(setting.spec.value, "harvester-system/storage");
    let setting: harvester::Setting = serde_json::from_value(read("Setting", "csi-driver-config")).unwrap();
    assert_eq!(setting.effective(), r#"{"nfs.csi.k8s.io":{"volumeSnapshotClassName":"nfs"}}"#);
    let replica: longhorn::Replica = serde_json::from_value(read("Replica", "pvc-1-r-1")).unwrap();
    assert_eq!(replica.spec.instance.volume_name.as_deref(), Some("pvc-1"));
    let state = replica.status.unwrap().instance.current_state.unwrap();
    assert_eq!(state, longhorn::InstanceState::Other("hibernating".to_owned()));
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    for kind in ["UploadTokenRequest", "VirtualMachineBackup"] {
        let manifest = manifests().into_iter().map(|(_, m)| m).find(|m| m["kind"] == kind).unwrap();
        let shown = match kind {
            "UploadTokenRequest" => {
                format!("{:?}", serde_json::from_value::<cdi::UploadTokenRequest>(manifest).unwrap())
            }
            _ => {
                format!("{:?}", serde_json::from_value::<harvester::VirtualMachineBackup>(manifest).unwrap())
            }
        };
        assert!(
            !shown.contains("eyJ") && !shown.contains("35, 99, 108") && !shown.contains("I2Nsb3V"),
            "{shown}"
        );
    }
}

#[track_caller]
fn similar(before: &Value, after: &Value, path: &Path) {
    if before != after {
        let before = serde_json::to_string_pretty(before).unwrap();
        let after = serde_json::to_string_pretty(after).unwrap();
        panic!("{} changed:\n{before}\nbecame\n{after}", path.display());
    }
}
