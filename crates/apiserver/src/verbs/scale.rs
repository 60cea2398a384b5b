//! The `scale` subresource: one number of an object, in a shape that scalers know.

use http::StatusCode;
use serde_json::{Value, json};

use super::create::Ownership;
use super::patch::{patch_error, version_in};
use super::{Answer, Api, Call, Sent, shape};
use crate::error::{ApiError, FieldError, Result, Subject};
use crate::meta;
use crate::registry::Scale;

const API_VERSION: &str = "autoscaling/v1";

impl Api {
    pub(super) fn get_scale(&self, call: &Call, json: &[u8]) -> Result<Answer> {
        let object = shape::parse_stored(&call.resource, json)?;
        Ok(Answer::Object(StatusCode::OK, scale_of(paths(call)?, &object)))
    }

    pub(super) async fn update_scale(&self, call: &mut Call, scale: &Value) -> Result<Answer> {
        let version = meta::text(scale, "resourceVersion").to_string();
        let replicas = wanted_replicas(call, scale)?;
        self.rescale(call, &version, move |_| Ok(replicas)).await
    }

    pub(super) async fn patch_scale(&self, call: &mut Call, sent: &Sent) -> Result<Answer> {
        let scale_paths = paths(call)?.clone();
        let (target, version) = (call.for_object(&call.namespace, &call.name), version_in(sent));
        self.rescale(call, &version, move |live| {
            let mut scale = scale_of(&scale_paths, live);
            match sent {
                Sent::JsonPatch(operations) => {
                    crate::patch::json(&mut scale, operations).map_err(|e| patch_error(&e))?;
                }
                // A scale has no lists: all of these merge alike.
                Sent::MergePatch(changes) | Sent::StrategicPatch(changes) | Sent::Apply(changes) => {
                    crate::patch::merge(&mut scale, changes);
                }
                Sent::Object(_) => return Err(ApiError::internal("not a patch")),
            }
            wanted_replicas(&target, &scale)
        })
        .await
    }

    async fn rescale<F>(&self, call: &mut Call, version: &str, mut replicas: F) -> Result<Answer>
    where
        F: FnMut(&Value) -> Result<i64>,
    {
        let scale_paths = paths(call)?.clone();
        let mut inner = call.for_object(&call.namespace, &call.name);
        let target = scale_paths.spec_replicas.clone();
        let answer = self
            .change(&mut inner, Ownership::TrackAs("scale"), version, |_, live| {
                let count = replicas(live)?;
                let mut object = live.clone();
                set_pointer(&mut object, &target, count.into());
                Ok(object)
            })
            .await?;
        call.warnings.append(&mut inner.warnings);
        let changed = answer.into_object()?;
        let (code, object) =
            changed.ok_or_else(|| ApiError::internal("a change was answered without an object"))?;
        Ok(Answer::Object(code, scale_of(&scale_paths, &object)))
    }
}

fn paths(call: &Call) -> Result<&Scale> {
    call.resource.scale.as_ref().ok_or_else(ApiError::no_such_path)
}

fn wanted_replicas(call: &Call, scale: &Value) -> Result<i64> {
    if scale["kind"].as_str() != Some("Scale") || scale["apiVersion"].as_str() != Some(API_VERSION) {
        return Err(ApiError::bad_request(format!("the object provided is not a Scale of {API_VERSION}")));
    }
    let name = meta::name(scale);
    if !name.is_empty() && name != call.name {
        return Err(ApiError::bad_request("the name of the scale does not match the name on the URL"));
    }
    let replicas = &scale["spec"]["replicas"];
    let count = if replicas.is_null() { Some(0) } else { replicas.as_i64() };
    if let Some(count) = count.filter(|n| (0..=i64::from(i32::MAX)).contains(n)) {
        return Ok(count);
    }
    let error = FieldError::invalid("spec.replicas", replicas.clone(), "should be a non-negative integer");
    let subject = Subject { group: "autoscaling".into(), kind: "Scale".into(), name: call.name.clone() };
    Err(ApiError::invalid(subject, &[error]))
}

fn scale_of(paths: &Scale, object: &Value) -> Value {
    let from = &object["metadata"];
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = from.get(field) {
            metadata[field] = value.clone();
        }
    }
    let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "spec": { "replicas": count(&paths.spec_replicas) },
        "status": { "replicas": count(&paths.status_replicas) },
    });
    let selector = paths.label_selector.as_deref().and_then(|p| object.pointer(p)).and_then(Value::as_str);
    if let Some(selector) = selector {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

/// Sets a member, making the objects on the way.
fn set_pointer(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for part in pointer.trim_start_matches('/').split('/') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[part];
    }
    *at = value;
}
