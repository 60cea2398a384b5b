//! Setting: one named value of the installation. The kind has no `spec`: its fields sit at the top level.
//! What a value may be is decided by whoever owns the setting, not here. Upstream writes its status plainly.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Condition;
use crate::wire::{Extra, extra_of_root};

/// The top-level fields of a Setting.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "harvesterhci.io",
    version = "v1beta1",
    kind = "Setting",
    plural = "settings",
    no_spec,
    status = "SettingStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A named value of the installation.",
    printcolumn(name = "VALUE", type_ = "string", json_path = ".value")
)]
pub struct SettingSpec {
    /// What the administrator chose; empty for the default.
    pub value: Option<String>,
    /// In force while value is empty.
    pub default: Option<String>,
    pub customized: Option<bool>,
    /// Where the value came from.
    pub source: Option<String>,
    #[serde(flatten, deserialize_with = "extra_of_root")]
    #[schemars(skip)]
    pub extra: Extra,
}

impl Setting {
    /// The value in force: the chosen one or, while that is empty, the default.
    pub fn effective(&self) -> &str {
        let chosen = self.spec.value.as_deref().filter(|value| !value.is_empty());
        chosen.or(self.spec.default.as_deref()).unwrap_or_default()
    }
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SettingStatus {
    /// configured.
    pub conditions: Option<Vec<Condition>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
