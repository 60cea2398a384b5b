//! CustomResourceDefinition: a kind that a user brings.
//!
//! Owns names, defaults and columns of this kind; its rules are in the files beside it. Must never judge the
//! schema inside; `crate::schema` does that.

mod columns;
mod conversion;
mod rules;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::access::{bool_at, fill, fill_zero, is_set, list_at, name, str_at};
use super::{Builtin, Column, PLAIN, column};

pub static CUSTOM_RESOURCE_DEFINITION: Builtin = Builtin {
    group: "apiextensions.k8s.io",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    singular: "customresourcedefinition",
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    has_status: true,
    has_generation: true,
    needs_version: true,
    schema: CustomResourceDefinition::json_schema,
    default,
    carry,
    validate: rules::validate,
    columns: &[
        column::NAME,
        Column { kind: "date", ..Column::text("Created At", "When the definition was created.") },
    ],
    row,
    ..PLAIN
};

fn default(crd: &mut Value) {
    let kind = str_at(crd, "/spec/names/kind").to_string();
    if !kind.is_empty() {
        fill_zero(crd, "/spec/names/singular", kind.to_lowercase());
        fill_zero(crd, "/spec/names/listKind", format!("{kind}List"));
    }
    fill(crd, "/spec/conversion", json!({ "strategy": "None" }));
    if is_set(crd, "/spec/conversion/webhook/clientConfig/service") {
        fill(crd, "/spec/conversion/webhook/clientConfig/service/port", 443);
    }
    if let Some(version) = storage_version(crd).map(str::to_string) {
        fill_zero(crd, "/status/storedVersions", json!([version]));
    }
}

/// From now on objects are stored in this version too.
fn carry(new: &mut Value, _old: &Value, _now: Timestamp) {
    let Some(version) = storage_version(new).map(Value::from) else { return };
    if let Some(Value::Array(stored)) = new.pointer_mut("/status/storedVersions")
        && !stored.contains(&version)
    {
        stored.push(version);
    }
}

fn storage_version(crd: &Value) -> Option<&str> {
    let version = list_at(crd, "/spec/versions").iter().find(|v| bool_at(v, "/storage"))?;
    Some(str_at(version, "/name"))
}

fn row(crd: &Value, _now: Timestamp) -> Vec<Value> {
    vec![name(crd).into(), str_at(crd, "/metadata/creationTimestamp").into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{CREATED, cells, defaulted, now, stored, with};

    pub fn crd() -> Value {
        let schema = json!({ "openAPIV3Schema": { "type": "object" } });
        defaulted(
            &CUSTOM_RESOURCE_DEFINITION,
            json!({ "metadata": stored("volumes.longhorn.io"), "spec": {
                "group": "longhorn.io", "scope": "Namespaced",
                "names": { "plural": "volumes", "kind": "Volume", "shortNames": ["lhv"] },
                "versions": [{ "name": "v1beta2", "served": true, "storage": true, "schema": schema }],
            } }),
        )
    }

    #[test]
    fn names_conversion_and_stored_version_are_filled() {
        let crd = crd();
        assert_eq!(crd["spec"]["names"]["singular"], "volume");
        assert_eq!(crd["spec"]["names"]["listKind"], "VolumeList");
        assert_eq!(crd["spec"]["conversion"], json!({ "strategy": "None" }));
        assert_eq!(crd["status"]["storedVersions"], json!(["v1beta2"]));
    }

    #[test]
    fn a_new_storage_version_is_remembered_beside_the_old_one() {
        let mut new = with(crd(), "/spec/versions/0/name", json!("v1"));
        (CUSTOM_RESOURCE_DEFINITION.carry)(&mut new, &crd(), now());
        assert_eq!(new["status"]["storedVersions"], json!(["v1beta2", "v1"]));
    }

    #[test]
    fn the_row_says_when_it_was_created() {
        assert_eq!(cells(&CUSTOM_RESOURCE_DEFINITION, &crd()), ["volumes.longhorn.io", CREATED]);
    }
}
