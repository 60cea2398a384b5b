//! What is particular to writing CustomResourceDefinitions: their reported state, and serving what they define.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Api, shape};
use crate::error::{FieldError, Result};
use crate::meta;
use crate::registry::{self, CrdNames, Resource};
use crate::schema;

/// Keeps a definition until its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills the status that the server keeps: names, versions that were ever stored, conditions.
pub(super) fn prepare(api: &Api, crd: &mut Value, now: Timestamp) {
    if meta::is_deleting(crd) {
        return;
    }
    let names = CrdNames::of(crd);
    let conflict = registry::name_conflicts(&api.registry.table(), crd);
    let conditions = registry::accepted_conditions(crd, conflict.as_ref(), now);
    let accepted =
        if conflict.is_none() { crd["spec"]["names"].clone() } else { json!({ "kind": "", "plural": "" }) };
    let mut stored: Vec<Value> =
        crd.pointer("/status/storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
    let versions = crd["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(version) = versions.iter().find(|v| v["storage"] == true).map(|v| v["name"].clone())
        && !stored.contains(&version)
    {
        stored.push(version);
    }
    crd["status"] = json!({ "conditions": conditions, "acceptedNames": accepted, "storedVersions": stored });
    if crd["status"]["acceptedNames"]["listKind"].is_null() && conflict.is_none() {
        crd["status"]["acceptedNames"]["listKind"] = names.list_kind.into();
        crd["status"]["acceptedNames"]["singular"] = names.singular.into();
    }
}

/// Checks the schemas beyond what the kind's own validation sees.
pub(super) fn validate(resource: &Resource, crd: &Value, old: Option<&Value>) -> Result<()> {
    let mut errors: Vec<FieldError> = Vec::new();
    let versions = crd["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
        let unchanged = old.is_some_and(|old| old["spec"]["versions"][at] == *version);
        if unchanged {
            continue;
        }
        match version.pointer("/schema/openAPIV3Schema") {
            Some(open_api) => {
                let has_status = version.pointer("/subresources/status").is_some();
                errors.extend(schema::check_crd_schema(open_api, &path, has_status));
            }
            None => errors.push(FieldError::required(path, "schemas are required")),
        }
    }
    shape::refuse(resource, meta::name(crd), &errors)
}

/// Serves the definition's resources, when its names are accepted.
pub(super) fn serve(api: &Api, crd: &Value) {
    if !is_established(crd) {
        api.registry.remove_crd(crd);
        return;
    }
    if let Err(errors) = api.registry.put_crd(crd) {
        tracing::error!(crd = meta::name(crd), ?errors, "an accepted definition cannot be served");
    }
}

pub(super) fn unserve(api: &Api, crd: &Value) {
    api.registry.remove_crd(crd);
}

pub fn is_established(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|list| list.iter().any(|c| c["type"] == "Established" && c["status"] == "True"))
}

pub(super) fn mark_terminating(crd: &mut Value, now: Timestamp) {
    let condition = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        "lastTransitionTime": meta::time_text(now),
    });
    match crd.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        Some(list) if list.iter().any(|c| c["type"] == "Terminating") => {}
        Some(list) => list.push(condition),
        None => crd["status"]["conditions"] = json!([condition]),
    }
}
