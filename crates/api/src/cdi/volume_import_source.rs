//! VolumeImportSource: content for a claim that names it in `dataSourceRef`, fetched from outside.
//! `spec` does not change after creation. Upstream writes its (empty) status plainly.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{
    ContentType, DataVolumeCheckpoint, EmptySource, GcsSource, HttpSource, ImageioSource, RegistrySource,
    S3Source, VddkSource,
};
use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "cdi.kubevirt.io",
    version = "v1beta1",
    kind = "VolumeImportSource",
    plural = "volumeimportsources",
    namespaced,
    status = "VolumeImportSourceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Content of a claim that is fetched from outside."
)]
#[serde(rename_all = "camelCase")]
pub struct VolumeImportSourceSpec {
    /// Exactly one member.
    pub source: Option<ImportSource>,
    /// Whether space is allocated in advance.
    pub preallocation: Option<bool>,
    /// Disk image (default) or tar archive.
    pub content_type: Option<ContentType>,
    /// The claim to fill in a warm import.
    pub target_claim: Option<String>,
    /// Steps of a warm import.
    pub checkpoints: Option<Vec<DataVolumeCheckpoint>>,
    pub final_checkpoint: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Exactly one member is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ImportSource {
    pub http: Option<HttpSource>,
    pub s3: Option<S3Source>,
    pub registry: Option<RegistrySource>,
    pub gcs: Option<GcsSource>,
    pub blank: Option<EmptySource>,
    pub imageio: Option<ImageioSource>,
    pub vddk: Option<VddkSource>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct VolumeImportSourceStatus {
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
