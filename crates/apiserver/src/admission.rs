//! Hooks that see a write before it happens: some change the object, others refuse it.
//!
//! Hooks get the request that a Kubernetes webhook would get and answer as a webhook would, so the same code
//! serves in this process and behind a webhook on a cluster. Must never store anything.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::StatusCode;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse};
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::auth::Identity;
use crate::error::{ApiError, Result};
use crate::patch;
use crate::registry::Resource;

pub type Request = AdmissionRequest<DynamicObject>;
type Review = Arc<dyn Fn(Request) -> BoxFuture<'static, AdmissionResponse> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// May change the object; runs first.
    Mutate,
    /// Sees the final object.
    Validate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// One hook and the writes it wants to see.
#[derive(Clone)]
pub struct Hook {
    name: String,
    phase: Phase,
    group: String,
    resources: Vec<String>,
    operations: Vec<Operation>,
    review: Review,
}

impl Hook {
    /// `resources` are plural names, with a subresource after a slash, e.g. `volumes` or `volumes/status`.
    pub fn new<F>(
        name: &str,
        phase: Phase,
        group: &str,
        resources: &[&str],
        operations: &[Operation],
        review: F,
    ) -> Self
    where
        F: Fn(Request) -> BoxFuture<'static, AdmissionResponse> + Send + Sync + 'static,
    {
        Self {
            name: name.into(),
            phase,
            group: group.into(),
            resources: resources.iter().map(ToString::to_string).collect(),
            operations: operations.to_vec(),
            review: Arc::new(review),
        }
    }

    fn wants(&self, phase: Phase, write: &Reviewed<'_>) -> bool {
        self.phase == phase
            && self.group == write.resource.group
            && self.operations.contains(&write.operation)
            && self.resources.iter().any(|r| match r.split_once('/') {
                Some((plural, sub)) => plural == write.resource.plural && sub == write.subresource,
                None => *r == write.resource.plural && write.subresource.is_empty(),
            })
    }
}

/// The write under review.
pub struct Reviewed<'a> {
    pub resource: &'a Resource,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub operation: Operation,
    pub old: Option<&'a Value>,
    pub user: &'a Identity,
    pub dry_run: bool,
}

/// All registered hooks.
#[derive(Default)]
pub struct Admission(RwLock<Vec<Hook>>);

impl Admission {
    pub fn register(&self, hook: Hook) {
        self.0.write().push(hook);
    }

    /// Whether any hook wants to see this write.
    pub fn is_wanted(&self, phase: Phase, write: &Reviewed<'_>) -> bool {
        self.0.read().iter().any(|hook| hook.wants(phase, write))
    }

    /// Runs the hooks of one phase over `object`; gives their warnings.
    pub async fn review(
        &self,
        phase: Phase,
        write: &Reviewed<'_>,
        object: &mut Option<Value>,
    ) -> Result<Vec<String>> {
        let hooks: Vec<Hook> = {
            let all = self.0.read();
            all.iter().filter(|hook| hook.wants(phase, write)).cloned().collect()
        };
        let mut warnings = Vec::new();
        for hook in hooks {
            let response = (hook.review)(request(write, object.as_ref())?).await;
            warnings.extend(response.warnings.clone().unwrap_or_default());
            if !response.allowed {
                return Err(denied(&hook.name, &response));
            }
            if let (Phase::Mutate, Some(bytes), Some(object)) = (phase, &response.patch, object.as_mut()) {
                let operations: Value = serde_json::from_slice(bytes).map_err(|e| broken(&hook.name, &e))?;
                patch::json(object, &operations).map_err(|e| broken(&hook.name, &e))?;
            }
        }
        Ok(warnings)
    }
}

fn request(write: &Reviewed<'_>, object: Option<&Value>) -> Result<Request> {
    let resource = write.resource;
    let kind = json!({ "group": resource.group, "version": resource.version, "kind": resource.kind });
    let plural = json!({ "group": resource.group, "version": resource.version, "resource": resource.plural });
    let subresource = (!write.subresource.is_empty()).then_some(write.subresource);
    let review = json!({
        "uid": uuid::Uuid::new_v4().to_string(),
        "kind": kind, "requestKind": kind,
        "resource": plural, "requestResource": plural,
        "subResource": subresource, "requestSubResource": subresource,
        "name": write.name,
        "namespace": (!write.namespace.is_empty()).then_some(write.namespace),
        "operation": write.operation.name(),
        "userInfo": { "username": write.user.user, "groups": write.user.groups() },
        "object": object,
        "oldObject": write.old,
        "dryRun": write.dry_run,
    });
    serde_json::from_value(review).map_err(|e| ApiError::internal(format!("admission request: {e}")))
}

fn denied(hook: &str, response: &AdmissionResponse) -> ApiError {
    let message = &response.result.message;
    let text = if message.is_empty() {
        format!("admission webhook {hook:?} denied the request without explanation")
    } else {
        format!("admission webhook {hook:?} denied the request: {message}")
    };
    let code = StatusCode::from_u16(response.result.code).ok().filter(StatusCode::is_client_error);
    let code = code.unwrap_or(StatusCode::FORBIDDEN);
    let reason = match code {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::UNPROCESSABLE_ENTITY => "Invalid",
        StatusCode::BAD_REQUEST => "BadRequest",
        _ => "Forbidden",
    };
    ApiError::new(code, reason, text)
}

fn broken(hook: &str, error: &dyn std::fmt::Display) -> ApiError {
    ApiError::internal(format!(
        "admission webhook {hook:?} answered with a patch that cannot be used: {error}"
    ))
}
