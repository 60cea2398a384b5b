//! NetworkAttachmentDefinition: a CNI configuration under a name, so that pods can ask for it.
//! The configuration is JSON inside a string; this file does not look into it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "k8s.cni.cncf.io",
    version = "v1",
    kind = "NetworkAttachmentDefinition",
    plural = "network-attachment-definitions",
    singular = "network-attachment-definition",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    doc = "A network that pods may join as a further interface.",
    shortname = "net-attach-def"
)]
pub struct NetworkAttachmentDefinitionSpec {
    /// CNI configuration as JSON text.
    pub config: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
