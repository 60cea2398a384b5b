//! The annotation in which client-side `kubectl apply` keeps its last configuration.
//!
//! Owns the two courtesies the server pays to people who move from client-side to server-side apply. Must
//! never act for any other manager than `kubectl`.

use serde_json::{Map, Value};

use super::FieldsError;
use super::set::Set;
use super::typed::{compare, field_set};
use crate::schema::Schema;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All annotations of an object together may not be larger.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// The manager whose server-side applies follow client-side ones.
pub(super) const MANAGER: &str = "kubectl";

fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The fields whose last client-side configuration is what the object has: to take them over is no conflict.
/// Nothing when there is no such configuration, or it is of another version.
pub(super) fn taken_over(schema: &Schema, live: &Value, api_version: &str) -> Option<Set> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion")?.as_str()? != api_version {
        return None;
    }
    unchanged(schema, &last, live).ok()
}

fn unchanged(schema: &Schema, last: &Value, live: &Value) -> Result<Set, FieldsError> {
    let mut set = field_set(schema, last)?;
    let comparison = compare(schema, last, live)?;
    for changed in [comparison.added, comparison.modified, comparison.removed] {
        set.subtract(&changed);
    }
    Ok(set)
}

/// Keeps the annotation in step with what was applied, where there is one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = annotations_of(&mut config) {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{config}\n");
    let Some(annotations) = annotations_of(object) else { return };
    annotations.insert(ANNOTATION.into(), text.into());
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

fn annotations_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}
