//! VolumeUploadSource: content for a claim that names it in `dataSourceRef`, sent by a client.
//! `spec` does not change after creation. Upstream writes its (empty) status plainly.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::ContentType;
use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "cdi.kubevirt.io",
    version = "v1beta1",
    kind = "VolumeUploadSource",
    plural = "volumeuploadsources",
    namespaced,
    status = "VolumeUploadSourceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Content of a claim that a client uploads."
)]
#[serde(rename_all = "camelCase")]
pub struct VolumeUploadSourceSpec {
    /// Disk image (default) or tar archive.
    pub content_type: Option<ContentType>,
    /// Whether space is allocated in advance.
    pub preallocation: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct VolumeUploadSourceStatus {
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
