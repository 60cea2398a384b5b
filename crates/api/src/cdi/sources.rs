//! Where the content of a volume comes from, one type for each kind of source.
//! Whether a combination makes sense is decided at admission, not here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::{Extra, closed_enum};

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpSource {
    pub url: String,
    /// Secret with accessKeyId and secretKey.
    pub secret_ref: Option<String>,
    /// ConfigMap with a CA certificate.
    pub cert_config_map: Option<String>,
    pub extra_headers: Option<Vec<String>>,
    /// Secrets whose values are headers.
    pub secret_extra_headers: Option<Vec<String>>,
    /// `algorithm:hex` over the bytes as downloaded.
    pub checksum: Option<String>,
    pub insecure_skip_verify: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct S3Source {
    pub url: String,
    /// Secret with accessKeyId and secretKey.
    pub secret_ref: Option<String>,
    /// ConfigMap with a CA certificate.
    pub cert_config_map: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GcsSource {
    /// `gs://` or `https://`.
    pub url: String,
    pub secret_ref: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

closed_enum! {
    /// Who pulls a container image: the importer pod or the node's container runtime.
    pub enum RegistryPullMethod {
        Pod = "pod",
        Node = "node",
    }
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistrySource {
    /// `docker://` or `oci-archive://`.
    pub url: Option<String>,
    /// Instead of url, with node pull only.
    pub image_stream: Option<String>,
    /// Importer pod (default) or node.
    pub pull_method: Option<RegistryPullMethod>,
    pub secret_ref: Option<String>,
    pub cert_config_map: Option<String>,
    pub platform: Option<PlatformOptions>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct PlatformOptions {
    pub architecture: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageioSource {
    pub url: String,
    pub disk_id: String,
    pub secret_ref: Option<String>,
    pub cert_config_map: Option<String>,
    pub insecure_skip_verify: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VddkSource {
    pub url: Option<String>,
    pub uuid: Option<String>,
    pub backing_file: Option<String>,
    pub thumbprint: Option<String>,
    pub secret_ref: Option<String>,
    pub cert_config_map: Option<String>,
    #[serde(rename = "initImageURL")]
    pub init_image_url: Option<String>,
    pub extra_args: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// An object in a namespace that need not be the reader's own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct NamespacedName {
    pub namespace: String,
    pub name: String,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// A source that has nothing to say but its name: `upload: {}`, `blank: {}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct EmptySource {
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
