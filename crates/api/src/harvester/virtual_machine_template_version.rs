//! VirtualMachineTemplateVersion: one version of a template, with the machine it describes.
//! The machine's own specification is KubeVirt's and is carried unread. Upstream writes its status plainly.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Condition;
use crate::wire::{Extra, open_object};

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "harvesterhci.io",
    version = "v1beta1",
    kind = "VirtualMachineTemplateVersion",
    plural = "virtualmachinetemplateversions",
    namespaced,
    status = "VirtualMachineTemplateVersionStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "One version of a template for virtual machines.",
    shortname = "vmtemplateversion",
    shortname = "vmtemplateversions",
    printcolumn(name = "TEMPLATE_ID", type_ = "string", json_path = ".spec.templateId"),
    printcolumn(name = "DESCRIPTION", type_ = "string", json_path = ".spec.description", priority = 10),
    printcolumn(name = "VERSION", type_ = "integer", json_path = ".status.version"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineTemplateVersionSpec {
    /// `namespace/name` of the template.
    pub template_id: String,
    pub description: Option<String>,
    /// `namespace/name` of the image of the root disk.
    pub image_id: Option<String>,
    pub key_pair_ids: Option<Vec<String>>,
    /// The machine to make.
    pub vm: Option<VirtualMachineSource>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// A virtual machine as it was or shall be: its metadata and KubeVirt's specification.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct VirtualMachineSource {
    #[serde(default)]
    #[schemars(schema_with = "open_object")]
    pub metadata: Option<ObjectMeta>,
    #[serde(default)]
    #[schemars(schema_with = "open_object")]
    pub spec: Option<Extra>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct VirtualMachineTemplateVersionStatus {
    pub version: Option<i64>,
    /// assigned, ready.
    pub conditions: Option<Vec<Condition>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
