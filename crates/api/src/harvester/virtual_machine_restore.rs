//! VirtualMachineRestore: a machine made again from a VirtualMachineBackup, under a new name or in place.
//! `spec` does not change after creation. Upstream writes its status plainly.

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{ClaimSource, Condition};
use crate::wire::{Extra, closed_enum};

closed_enum! {
    /// What becomes of the volumes that a restore in place replaces.
    pub enum RestoreDeletionPolicy {
        Delete = "delete",
        Retain = "retain",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "harvesterhci.io",
    version = "v1beta1",
    kind = "VirtualMachineRestore",
    plural = "virtualmachinerestores",
    namespaced,
    status = "VirtualMachineRestoreStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A virtual machine made again from a backup.",
    shortname = "vmrestore",
    shortname = "vmrestores",
    printcolumn(name = "TARGET_KIND", type_ = "string", json_path = ".spec.target.kind"),
    printcolumn(name = "TARGET_NAME", type_ = "string", json_path = ".spec.target.name"),
    printcolumn(name = "COMPLETE", type_ = "boolean", json_path = ".status.complete"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ERROR", type_ = "string", json_path = ".status.error.message")
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineRestoreSpec {
    /// The machine to make or to replace.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub target: TypedLocalObjectReference,
    pub virtual_machine_backup_name: String,
    pub virtual_machine_backup_namespace: String,
    /// Whether the target is to be made, rather than replaced.
    #[serde(rename = "newVM")]
    pub new_vm: Option<bool>,
    /// For volumes that are replaced.
    pub deletion_policy: Option<RestoreDeletionPolicy>,
    pub keep_mac_address: Option<bool>,
    /// Leave the machine stopped.
    pub halt_after_restore: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineRestoreStatus {
    pub restores: Option<Vec<VolumeRestore>>,
    pub restore_time: Option<Time>,
    pub deleted_volumes: Option<Vec<String>>,
    pub complete: Option<bool>,
    /// Ready, InProgress.
    pub conditions: Option<Vec<Condition>>,
    #[serde(rename = "targetUID")]
    pub target_uid: Option<String>,
    /// Percent.
    pub progress: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRestore {
    pub volume_name: Option<String>,
    pub persistent_volume_claim_spec: Option<ClaimSource>,
    pub volume_backup_name: Option<String>,
    pub longhorn_engine_name: Option<String>,
    pub progress: Option<i64>,
    pub volume_size: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
