//! VolumeCloneSource: content for a claim that names it in `dataSourceRef`, taken from a claim or a snapshot.
//! `spec` does not change after creation; there is no status.

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "cdi.kubevirt.io",
    version = "v1beta1",
    kind = "VolumeCloneSource",
    plural = "volumeclonesources",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    doc = "Content of a claim that is a copy of another volume."
)]
#[serde(rename_all = "camelCase")]
pub struct VolumeCloneSourceSpec {
    /// A PersistentVolumeClaim or a VolumeSnapshot.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub source: TypedLocalObjectReference,
    /// Whether space is allocated in advance.
    pub preallocation: Option<bool>,
    /// Priority class of worker pods.
    pub priority_class_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
