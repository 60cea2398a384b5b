//! CDIConfig: settings of all imports, a single object named `config`.
//! `spec` is set by the administrator, `status` is what is in force. Upstream writes its status plainly.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LocalObjectReference, ResourceRequirements};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::sources::EmptySource;
use crate::wire::{Extra, closed_enum};

closed_enum! {
    /// Whether plain claims are completed from the StorageProfile when they carry its label.
    pub enum WebhookPvcRendering {
        Enabled = "Enabled",
        Disabled = "Disabled",
    }
}

closed_enum! {
    /// A named set of TLS versions and ciphers.
    #[derive(Default)]
    pub enum TlsProfileType {
        Old = "Old",
        #[default]
        Intermediate = "Intermediate",
        Modern = "Modern",
        Custom = "Custom",
    }
}

closed_enum! {
    /// The oldest TLS version that is accepted.
    #[derive(Default)]
    pub enum TlsProtocolVersion {
        Tls10 = "VersionTLS10",
        Tls11 = "VersionTLS11",
        #[default]
        Tls12 = "VersionTLS12",
        Tls13 = "VersionTLS13",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "cdi.kubevirt.io",
    version = "v1beta1",
    kind = "CDIConfig",
    plural = "cdiconfigs",
    status = "CDIConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Settings of all imports."
)]
#[serde(rename_all = "camelCase")]
pub struct CDIConfigSpec {
    /// URL of the upload proxy as clients shall see it.
    #[serde(rename = "uploadProxyURLOverride")]
    pub upload_proxy_url_override: Option<String>,
    pub import_proxy: Option<ImportProxy>,
    /// Storage class of scratch space; the target's own when absent.
    pub scratch_space_storage_class: Option<String>,
    /// Resources of worker pods.
    pub pod_resource_requirements: Option<ResourceRequirements>,
    pub feature_gates: Option<Vec<String>>,
    pub webhook_pvc_rendering: Option<WebhookPvcRendering>,
    pub filesystem_overhead: Option<FilesystemOverhead>,
    /// Whether space is allocated in advance.
    pub preallocation: Option<bool>,
    /// Registries that are reached without TLS.
    pub insecure_registries: Option<Vec<String>>,
    /// Has no effect any more.
    #[serde(rename = "dataVolumeTTLSeconds")]
    pub data_volume_ttl_seconds: Option<i32>,
    pub tls_security_profile: Option<TlsSecurityProfile>,
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,
    pub log_verbosity: Option<i32>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CDIConfigStatus {
    #[serde(rename = "uploadProxyURL")]
    pub upload_proxy_url: Option<String>,
    #[serde(rename = "uploadProxyCA")]
    pub upload_proxy_ca: Option<String>,
    pub import_proxy: Option<ImportProxy>,
    pub scratch_space_storage_class: Option<String>,
    pub default_pod_resource_requirements: Option<ResourceRequirements>,
    pub filesystem_overhead: Option<FilesystemOverhead>,
    pub preallocation: Option<bool>,
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Share of a file system that a disk image leaves free, as a text between 0 and 1.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesystemOverhead {
    #[schemars(extend("pattern" = r"^(0(?:\.\d{1,3})?|1)$"))]
    pub global: Option<String>,
    /// By storage class.
    #[schemars(extend("additionalProperties" = {"type": "string", "pattern": r"^(0(?:\.\d{1,3})?|1)$"}))]
    pub storage_class: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ImportProxy {
    #[serde(rename = "HTTPProxy")]
    pub http_proxy: Option<String>,
    #[serde(rename = "HTTPSProxy")]
    pub https_proxy: Option<String>,
    #[serde(rename = "noProxy")]
    pub no_proxy: Option<String>,
    /// ConfigMap with the proxy's CA certificate.
    #[serde(rename = "trustedCAProxy")]
    pub trusted_ca_proxy: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct TlsSecurityProfile {
    #[serde(rename = "type")]
    pub type_: Option<TlsProfileType>,
    pub old: Option<EmptySource>,
    pub intermediate: Option<EmptySource>,
    pub modern: Option<EmptySource>,
    pub custom: Option<CustomTlsProfile>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct CustomTlsProfile {
    pub ciphers: Vec<String>,
    #[serde(rename = "minTLSVersion")]
    pub min_tls_version: TlsProtocolVersion,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
