//! StorageProfile: what a storage class can do, one per class and of the same name.
//! `spec` is the administrator's word and wins; `status` is what was found out.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Condition;
use crate::wire::{Extra, closed_enum, open_enum};

open_enum! {
    /// How volumes of a class are cloned.
    pub enum CloneStrategy {
        Copy = "copy",
        Snapshot = "snapshot",
        CsiClone = "csi-clone",
    }
}

open_enum! {
    /// In which form recurring imports are kept.
    pub enum ImportCronSourceFormat {
        Snapshot = "snapshot",
        Pvc = "pvc",
    }
}

closed_enum! {
    /// How a volume is presented to its consumer.
    #[derive(Default)]
    pub enum VolumeMode {
        Block = "Block",
        #[default]
        Filesystem = "Filesystem",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "cdi.kubevirt.io",
    version = "v1beta1",
    kind = "StorageProfile",
    plural = "storageprofiles",
    status = "StorageProfileStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What a storage class can do."
)]
#[serde(rename_all = "camelCase")]
pub struct StorageProfileSpec {
    #[schemars(extend("enum" = ["copy", "snapshot", "csi-clone"]))]
    pub clone_strategy: Option<CloneStrategy>,
    /// Modes to use, best first.
    #[schemars(extend("maxItems" = 8))]
    pub claim_property_sets: Option<Vec<ClaimPropertySet>>,
    #[schemars(extend("enum" = ["snapshot", "pvc"]))]
    pub data_import_cron_source_format: Option<ImportCronSourceFormat>,
    /// VolumeSnapshotClass for snapshot clones.
    pub snapshot_class: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimPropertySet {
    #[schemars(extend("maxItems" = 4, "x-kubernetes-validations" = [
        {
            "rule": "self.all(am, am in ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'])",
            "message": "Illegal AccessMode"
        }
    ]))]
    pub access_modes: Vec<String>,
    pub volume_mode: VolumeMode,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageProfileStatus {
    pub storage_class: Option<String>,
    pub provisioner: Option<String>,
    pub clone_strategy: Option<CloneStrategy>,
    #[schemars(extend("maxItems" = 8))]
    pub claim_property_sets: Option<Vec<ClaimPropertySet>>,
    pub data_import_cron_source_format: Option<ImportCronSourceFormat>,
    pub snapshot_class: Option<String>,
    /// Recognized.
    pub conditions: Option<Vec<Condition>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
