//! VirtualMachineBackup: a snapshot or backup of a virtual machine with all its volumes.
//! Holds what is needed to make the machine again. Upstream writes its status plainly.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{PersistentVolumeClaimSpec, TypedLocalObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{BackupTargetRef, Condition, VirtualMachineSource};
use crate::wire::{Extra, closed_enum, open_object};

closed_enum! {
    /// Whether the copy leaves the cluster.
    pub enum BackupType {
        Backup = "backup",
        Snapshot = "snapshot",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "harvesterhci.io",
    version = "v1beta1",
    kind = "VirtualMachineBackup",
    plural = "virtualmachinebackups",
    namespaced,
    status = "VirtualMachineBackupStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A snapshot or backup of a virtual machine.",
    shortname = "vmbackup",
    shortname = "vmbackups",
    printcolumn(name = "SOURCE_KIND", type_ = "string", json_path = ".spec.source.kind"),
    printcolumn(name = "SOURCE_NAME", type_ = "string", json_path = ".spec.source.name"),
    printcolumn(name = "TYPE", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "READY_TO_USE", type_ = "boolean", json_path = ".status.readyToUse"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ERROR", type_ = "string", json_path = ".status.error.message")
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineBackupSpec {
    /// The virtual machine.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub source: TypedLocalObjectReference,
    #[serde(rename = "type")]
    #[schemars(extend("default" = "backup", "x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "spec.type is immutable"}
    ]))]
    pub type_: Option<BackupType>,
    /// Longest time the guest's file systems stay frozen, such as `30s`; 0 for no limit.
    pub fs_freeze_deadline: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineBackupStatus {
    #[serde(rename = "sourceUID")]
    pub source_uid: Option<String>,
    pub creation_time: Option<Time>,
    pub backup_target: Option<BackupTargetRef>,
    /// Snapshot class that was used, by CSI driver.
    pub csi_driver_volume_snapshot_class_names: Option<BTreeMap<String, String>>,
    /// The machine as it was.
    pub source: Option<VirtualMachineSource>,
    pub volume_backups: Option<Vec<VolumeBackup>>,
    pub secret_backups: Option<Vec<SecretBackup>>,
    /// Percent, weighted by size.
    pub progress: Option<i64>,
    pub ready_to_use: Option<bool>,
    pub error: Option<BackupError>,
    /// Ready, InProgress, MetadataReady.
    pub conditions: Option<Vec<Condition>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeBackup {
    pub name: Option<String>,
    /// Name of the volume in the machine.
    pub volume_name: String,
    #[schemars(extend("default" = "driver.longhorn.io"))]
    pub csi_driver_name: Option<String>,
    pub creation_time: Option<Time>,
    pub persistent_volume_claim: ClaimSource,
    pub longhorn_backup_name: Option<String>,
    pub volume_size: Option<i64>,
    pub progress: Option<i64>,
    pub ready_to_use: Option<bool>,
    pub error: Option<BackupError>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// A claim as it was: its metadata and specification.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ClaimSource {
    #[serde(default)]
    #[schemars(schema_with = "open_object")]
    pub metadata: Option<ObjectMeta>,
    pub spec: Option<PersistentVolumeClaimSpec>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// A secret the machine refers to.
#[skip_serializing_none]
#[derive(Clone, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SecretBackup {
    pub name: String,
    #[serde(default)]
    #[schemars(schema_with = "bytes_by_key")]
    pub data: Option<BTreeMap<String, ByteString>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

fn bytes_by_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": { "type": "string", "format": "byte" } })
}

impl std::fmt::Debug for SecretBackup {
    /// Logs learn the names of the keys, not their values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<&String> = self.data.iter().flat_map(BTreeMap::keys).collect();
        f.debug_struct("SecretBackup").field("name", &self.name).field("keys", &keys).finish_non_exhaustive()
    }
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct BackupError {
    pub time: Option<Time>,
    pub message: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
