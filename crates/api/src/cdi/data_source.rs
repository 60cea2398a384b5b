//! DataSource: a name for a source that may move on while its users keep the name.
//! Points to a claim, a snapshot, or another DataSource (one hop). Upstream writes its status plainly.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Condition, NamespacedName};
use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "cdi.kubevirt.io",
    version = "v1beta1",
    kind = "DataSource",
    plural = "datasources",
    namespaced,
    status = "DataSourceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A name for the current version of an image.",
    shortname = "das",
    category = "all"
)]
pub struct DataSourceSpec {
    /// Exactly one member.
    pub source: DataSourceSource,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataSourceSource {
    pub pvc: Option<NamespacedName>,
    pub snapshot: Option<NamespacedName>,
    pub data_source: Option<NamespacedName>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct DataSourceStatus {
    pub source: Option<DataSourceSource>,
    /// Ready.
    pub conditions: Option<Vec<Condition>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
