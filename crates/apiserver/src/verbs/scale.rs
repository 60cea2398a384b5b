//! The `scale` subresource: one number of an object, in a shape that scalers know.

use http::StatusCode;
use serde_json::{Value, json};

use super::create::Ownership;
use super::patch::patched;
use super::{Answer, Api, Call, Sent, shape};
use crate::error::{ApiError, FieldError, Result};
use crate::meta;
use crate::registry::Scale;

impl Api {
    pub(super) fn get_scale(&self, call: &Call, json: &[u8]) -> Result<Answer> {
        let object = shape::parse_stored(&call.resource, json)?;
        Ok(Answer::Object(StatusCode::OK, scale_of(paths(call)?, &object)))
    }

    pub(super) async fn update_scale(&self, call: &mut Call, scale: &Value) -> Result<Answer> {
        let version = scale["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_string();
        let replicas = wanted_replicas(scale)?;
        self.rescale(call, &version, move |_, _| Ok(replicas)).await
    }

    pub(super) async fn patch_scale(&self, call: &mut Call, sent: &Sent) -> Result<Answer> {
        let scale_paths = paths(call)?.clone();
        self.rescale(call, "", move |call, live| {
            let mut scale = scale_of(&scale_paths, live);
            match sent {
                Sent::JsonPatch(_) | Sent::MergePatch(_) => patched_scale(call, &mut scale, sent)?,
                // A scale has no lists: both merge alike.
                Sent::StrategicPatch(changes) | Sent::Apply(changes) => {
                    crate::patch::merge(&mut scale, changes);
                }
                Sent::Object(_) => return Err(ApiError::internal("not a patch")),
            }
            wanted_replicas(&scale)
        })
        .await
    }

    async fn rescale<F>(&self, call: &mut Call, version: &str, mut replicas: F) -> Result<Answer>
    where
        F: FnMut(&mut Call, &Value) -> Result<i64>,
    {
        let scale_paths = paths(call)?.clone();
        let mut inner = call.for_object(&call.namespace, &call.name);
        let target = scale_paths.spec_replicas.clone();
        let answer = self
            .change(&mut inner, Ownership::Track, version, |call, live| {
                let count = replicas(call, live)?;
                let mut object = live.clone();
                set_pointer(&mut object, &target, count.into());
                Ok(object)
            })
            .await?;
        call.warnings.append(&mut inner.warnings);
        match answer {
            Answer::Object(code, object) => Ok(Answer::Object(code, scale_of(&scale_paths, &object))),
            other => Ok(other),
        }
    }
}

fn patched_scale(call: &mut Call, scale: &mut Value, sent: &Sent) -> Result<()> {
    match sent {
        Sent::MergePatch(changes) => {
            crate::patch::merge(scale, changes);
            Ok(())
        }
        other => patched(call, scale, other),
    }
}

fn paths(call: &Call) -> Result<&Scale> {
    call.resource.scale.as_ref().ok_or_else(ApiError::no_such_path)
}

fn wanted_replicas(scale: &Value) -> Result<i64> {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if (0..=i64::from(i32::MAX)).contains(&replicas) {
        return Ok(replicas);
    }
    let error = FieldError::invalid("spec.replicas", replicas, "should be a non-negative integer");
    let subject = crate::error::Subject {
        group: "autoscaling".into(),
        kind: "Scale".into(),
        name: meta::name(scale).into(),
    };
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
        "apiVersion": "autoscaling/v1",
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
