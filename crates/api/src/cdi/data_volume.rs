//! DataVolume: a claim together with what shall be in it. The claim has the same name and belongs to it.
//! `spec` does not change after creation, except for the checkpoints of a warm import.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaimSpec, TypedLocalObjectReference, TypedObjectReference, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{
    Condition, EmptySource, GcsSource, HttpSource, ImageioSource, NamespacedName, RegistrySource, S3Source,
    VddkSource,
};
use crate::wire::{Extra, closed_enum, open_enum};

closed_enum! {
    /// What the source holds: one disk image, or a tar archive of files.
    pub enum ContentType {
        Kubevirt = "kubevirt",
        Archive = "archive",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "cdi.kubevirt.io",
    version = "v1beta1",
    kind = "DataVolume",
    plural = "datavolumes",
    namespaced,
    status = "DataVolumeStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A volume and what shall be in it.",
    shortname = "dv",
    shortname = "dvs",
    category = "all",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Progress", type_ = "string", json_path = ".status.progress"),
    printcolumn(name = "Restarts", type_ = "integer", json_path = ".status.restartCount"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSpec {
    /// Where the content comes from; exactly one member.
    pub source: Option<DataVolumeSource>,
    /// A DataSource that names the source, instead of source.
    pub source_ref: Option<DataVolumeSourceRef>,
    /// The claim to make, taken literally.
    pub pvc: Option<PersistentVolumeClaimSpec>,
    /// The claim to make, completed from the StorageProfile; instead of pvc.
    pub storage: Option<StorageSpec>,
    /// Priority class of worker pods.
    pub priority_class_name: Option<String>,
    /// Service account of worker pods.
    pub service_account_name: Option<String>,
    /// Disk image (default) or tar archive.
    pub content_type: Option<ContentType>,
    /// Steps of a warm import.
    pub checkpoints: Option<Vec<DataVolumeCheckpoint>>,
    pub final_checkpoint: Option<bool>,
    /// Whether space is allocated in advance; CDIConfig decides when absent.
    pub preallocation: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Exactly one member is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct DataVolumeSource {
    pub http: Option<HttpSource>,
    pub s3: Option<S3Source>,
    pub gcs: Option<GcsSource>,
    pub registry: Option<RegistrySource>,
    pub pvc: Option<NamespacedName>,
    pub upload: Option<EmptySource>,
    pub blank: Option<EmptySource>,
    pub imageio: Option<ImageioSource>,
    pub vddk: Option<VddkSource>,
    pub snapshot: Option<NamespacedName>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct DataVolumeSourceRef {
    /// Always DataSource.
    pub kind: String,
    /// The DataVolume's own when absent.
    pub namespace: Option<String>,
    pub name: String,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// A claim of which the StorageProfile may fill in what is missing.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageSpec {
    pub access_modes: Option<Vec<String>>,
    pub selector: Option<LabelSelector>,
    /// The size a guest shall see; file system overhead is added.
    pub resources: Option<VolumeResourceRequirements>,
    pub volume_name: Option<String>,
    pub storage_class_name: Option<String>,
    pub volume_mode: Option<String>,
    pub data_source: Option<TypedLocalObjectReference>,
    pub data_source_ref: Option<TypedObjectReference>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct DataVolumeCheckpoint {
    /// Empty for the first step.
    pub previous: String,
    pub current: String,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeStatus {
    pub claim_name: Option<String>,
    pub phase: Option<DataVolumePhase>,
    /// `N/A`, or a percentage with two decimals.
    pub progress: Option<String>,
    pub restart_count: Option<i32>,
    /// Ready, Bound, Running.
    pub conditions: Option<Vec<Condition>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

open_enum! {
    /// How far a DataVolume has come.
    #[derive(Default)]
    pub enum DataVolumePhase {
        /// Nobody has looked at it yet.
        #[default]
        Unset = "",
        Pending = "Pending",
        PvcBound = "PVCBound",
        ImportScheduled = "ImportScheduled",
        ImportInProgress = "ImportInProgress",
        CloneScheduled = "CloneScheduled",
        CloneInProgress = "CloneInProgress",
        SnapshotForSmartCloneInProgress = "SnapshotForSmartCloneInProgress",
        CloneFromSnapshotSourceInProgress = "CloneFromSnapshotSourceInProgress",
        SmartClonePvcInProgress = "SmartClonePVCInProgress",
        CsiCloneInProgress = "CSICloneInProgress",
        PrepClaimInProgress = "PrepClaimInProgress",
        RebindInProgress = "RebindInProgress",
        ExpansionInProgress = "ExpansionInProgress",
        NamespaceTransferInProgress = "NamespaceTransferInProgress",
        UploadScheduled = "UploadScheduled",
        UploadReady = "UploadReady",
        WaitForFirstConsumer = "WaitForFirstConsumer",
        PendingPopulation = "PendingPopulation",
        Paused = "Paused",
        Succeeded = "Succeeded",
        Failed = "Failed",
        Unknown = "Unknown",
    }
}
