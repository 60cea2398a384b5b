//! Groups `cdi.kubevirt.io/v1beta1` and `upload.cdi.kubevirt.io/v1beta1`: volumes that are filled from a source.
//! On a cluster with CDI installed its controllers own these objects, otherwise Granary's. Types only.

mod cdi_config;
mod data_source;
mod data_volume;
mod sources;
mod storage_profile;
mod upload_token_request;
mod volume_clone_source;
mod volume_import_source;
mod volume_upload_source;

pub use cdi_config::{
    CDIConfig, CDIConfigSpec, CDIConfigStatus, CustomTlsProfile, FilesystemOverhead, ImportProxy,
    TlsProfileType, TlsProtocolVersion, TlsSecurityProfile, WebhookPvcRendering,
};
pub use data_source::{DataSource, DataSourceSource, DataSourceSpec, DataSourceStatus};
pub use data_volume::{
    ContentType, DataVolume, DataVolumeCheckpoint, DataVolumePhase, DataVolumeSource, DataVolumeSourceRef,
    DataVolumeSpec, DataVolumeStatus, StorageSpec,
};
pub use sources::{
    EmptySource, GcsSource, HttpSource, ImageioSource, NamespacedName, PlatformOptions, RegistryPullMethod,
    RegistrySource, S3Source, VddkSource,
};
pub use storage_profile::{
    ClaimPropertySet, CloneStrategy, ImportCronSourceFormat, StorageProfile, StorageProfileSpec,
    StorageProfileStatus, VolumeMode,
};
pub use upload_token_request::{UploadTokenRequest, UploadTokenRequestSpec, UploadTokenRequestStatus};
pub use volume_clone_source::{VolumeCloneSource, VolumeCloneSourceSpec};
pub use volume_import_source::{
    ImportSource, VolumeImportSource, VolumeImportSourceSpec, VolumeImportSourceStatus,
};
pub use volume_upload_source::{VolumeUploadSource, VolumeUploadSourceSpec, VolumeUploadSourceStatus};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::{ConditionStatus, Extra};

pub const GROUP: &str = "cdi.kubevirt.io";
pub const UPLOAD_GROUP: &str = "upload.cdi.kubevirt.io";
pub const VERSION: &str = "v1beta1";

/// One aspect of a CDI object: DataVolumes have Ready, Bound and Running, DataSources Ready,
/// StorageProfiles Recognized.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: ConditionStatus,
    pub last_transition_time: Option<Time>,
    pub last_heartbeat_time: Option<Time>,
    pub reason: Option<String>,
    pub message: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
