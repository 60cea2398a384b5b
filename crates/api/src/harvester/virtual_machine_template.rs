//! VirtualMachineTemplate: a name under which versions of a template are collected.
//! The content is in VirtualMachineTemplateVersion.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "harvesterhci.io",
    version = "v1beta1",
    kind = "VirtualMachineTemplate",
    plural = "virtualmachinetemplates",
    namespaced,
    status = "VirtualMachineTemplateStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A template for virtual machines.",
    shortname = "vmtemplate",
    shortname = "vmtemplates",
    printcolumn(name = "VERSION_ID", type_ = "string", json_path = ".spec.defaultVersionId"),
    printcolumn(name = "DESCRIPTION", type_ = "string", json_path = ".spec.description", priority = 10),
    printcolumn(
        name = "VERSION_DEFAULT",
        type_ = "integer",
        json_path = ".status.defaultVersion",
        priority = 8
    ),
    printcolumn(
        name = "VERSION_LATEST",
        type_ = "integer",
        json_path = ".status.latestVersion",
        priority = 8
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineTemplateSpec {
    /// `namespace/name` of the version to use.
    pub default_version_id: Option<String>,
    pub description: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineTemplateStatus {
    pub default_version: Option<i64>,
    pub latest_version: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
