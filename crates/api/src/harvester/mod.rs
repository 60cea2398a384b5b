//! Group `harvesterhci.io/v1beta1`: images, settings, network file systems, and templates and backups of
//! virtual machines, as Harvester defines them. Types only.

mod network_filesystem;
mod setting;
mod virtual_machine_backup;
mod virtual_machine_image;
mod virtual_machine_image_downloader;
mod virtual_machine_restore;
mod virtual_machine_template;
mod virtual_machine_template_version;

pub use network_filesystem::{
    EndpointStatus, NetworkFilesystem, NetworkFilesystemSpec, NetworkFilesystemState,
    NetworkFilesystemStatus, NetworkFilesystemType,
};
pub use setting::{Setting, SettingSpec, SettingStatus};
pub use virtual_machine_backup::{
    BackupError, BackupType, ClaimSource, SecretBackup, VirtualMachineBackup, VirtualMachineBackupSpec,
    VirtualMachineBackupStatus, VolumeBackup,
};
pub use virtual_machine_image::{
    CryptoOperation, ImageBackend, ImageSourceType, SecurityParameters, VirtualMachineImage,
    VirtualMachineImageSpec, VirtualMachineImageStatus,
};
pub use virtual_machine_image_downloader::{
    CompressType, DownloaderStatus, VirtualMachineImageDownloader, VirtualMachineImageDownloaderSpec,
    VirtualMachineImageDownloaderStatus,
};
pub use virtual_machine_restore::{
    RestoreDeletionPolicy, VirtualMachineRestore, VirtualMachineRestoreSpec, VirtualMachineRestoreStatus,
    VolumeRestore,
};
pub use virtual_machine_template::{
    VirtualMachineTemplate, VirtualMachineTemplateSpec, VirtualMachineTemplateStatus,
};
pub use virtual_machine_template_version::{
    VirtualMachineSource, VirtualMachineTemplateVersion, VirtualMachineTemplateVersionSpec,
    VirtualMachineTemplateVersionStatus,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::{ConditionStatus, Extra};

pub const GROUP: &str = "harvesterhci.io";
pub const VERSION: &str = "v1beta1";

/// One aspect of an object; times are RFC 3339 texts.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: ConditionStatus,
    pub last_update_time: Option<String>,
    pub last_transition_time: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// The condition of the kinds that came later, with a real time.
#[skip_serializing_none]
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimedCondition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: ConditionStatus,
    pub last_transition_time: Time,
    pub reason: Option<String>,
    pub message: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Where something has been backed up to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupTargetRef {
    pub endpoint: Option<String>,
    pub bucket_name: Option<String>,
    pub bucket_region: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
