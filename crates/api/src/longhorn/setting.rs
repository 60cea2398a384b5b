//! Setting: one named value of the storage system. The kind has no `spec`: `value` sits at the top level.
//! What a value may be is decided by whoever owns the setting, not here.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::{Extra, extra_of_root};

/// The top-level fields of a Setting.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "Setting",
    plural = "settings",
    namespaced,
    no_spec,
    status = "SettingStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A named value of the storage system.",
    shortname = "lhs",
    printcolumn(name = "Value", type_ = "string", json_path = ".value"),
    printcolumn(name = "Applied", type_ = "boolean", json_path = ".status.applied"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct SettingSpec {
    /// Text, whatever the type of the setting; JSON when it differs by data engine.
    pub value: String,
    #[serde(flatten, deserialize_with = "extra_of_root")]
    #[schemars(skip)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SettingStatus {
    /// False while the value waits for volumes to be detached.
    pub applied: bool,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
