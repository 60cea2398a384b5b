//! What can be done to objects: create, read, watch, update, patch, delete, for every kind alike.
//!
//! Owns the semantics of a request once it is parsed. Must never know HTTP beyond status codes.

mod apply;
mod create;
mod custom_definitions;
mod delete;
mod patch;
mod read;
mod review;
mod scale;
mod shape;
mod update;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

pub use custom_definitions::{CLEANUP, is_established};
pub use delete::{DeleteOptions, FOREGROUND, ORPHAN};
pub use read::{ListBody, served_bytes};
pub use watch::WatchBody;

use crate::admission::Admission;
use crate::auth::Identity;
use crate::error::{ApiError, Result};
use crate::http::media::{Accept, Decoded};
use crate::http::query::Query;
use crate::registry::{Registry, Resource};
use crate::store::{Change, Key, Prefix, Store, StoreError, Stored};

/// The API over one store. Every caller, in this process or behind a socket, goes through it.
pub struct Api {
    pub store: Store,
    pub registry: Registry,
    pub admission: Admission,
    /// Ends watches when the server stops.
    pub stopping: tokio_util::sync::CancellationToken,
}

/// One request about objects of one resource.
pub struct Call {
    pub resource: Arc<Resource>,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
    pub query: Query,
    pub accept: Accept,
    pub user: Identity,
    /// The program that asks; names its field manager when it does not.
    pub agent: String,
    /// Fields that occur twice in a patch.
    pub duplicates: Vec<String>,
    /// What the client should know besides the answer.
    pub warnings: Vec<String>,
}

/// A body as it came.
pub enum Sent {
    Object(Decoded),
    JsonPatch(Value),
    MergePatch(Value),
    StrategicPatch(Value),
    Apply(Value),
}

pub enum Answer {
    Object(StatusCode, Value),
    /// An object exactly as it is stored.
    Raw(StatusCode, Bytes),
    List(Box<ListBody>),
    Watch(Box<WatchBody>),
}

impl Answer {
    /// The object of an answer that is one; parsed if it is as stored.
    fn into_object(self) -> Result<Option<(StatusCode, Value)>> {
        match self {
            Self::Object(code, object) => Ok(Some((code, object))),
            Self::Raw(code, json) => {
                let object = serde_json::from_slice(&json).map_err(|e| ApiError::internal(e.to_string()))?;
                Ok(Some((code, object)))
            }
            Self::List(_) | Self::Watch(_) => Ok(None),
        }
    }
}

impl Call {
    pub fn key(&self) -> Key {
        Key::new(&self.resource.storage, &self.namespace, &self.name)
    }

    pub fn prefix(&self) -> Prefix {
        if self.resource.namespaced && !self.namespace.is_empty() {
            Prefix::namespace(&self.resource.storage, &self.namespace)
        } else {
            Prefix::resource(&self.resource.storage)
        }
    }

    /// The name under which changed fields are owned.
    pub fn manager(&self) -> &str {
        if !self.query.field_manager.is_empty() {
            return &self.query.field_manager;
        }
        let program = self.agent.split('/').next().unwrap_or_default();
        if program.is_empty() { "unknown" } else { program }
    }

    pub fn not_found(&self) -> ApiError {
        ApiError::not_found(self.resource.subject(&self.name))
    }

    /// An error of the store, as this request's client understands it.
    #[expect(clippy::needless_pass_by_value, reason = "what `map_err` hands over")]
    pub fn store_error(&self, error: StoreError) -> ApiError {
        let subject = self.resource.subject(&self.name);
        match error {
            StoreError::Exists => ApiError::already_exists(subject),
            StoreError::Missing => ApiError::not_found(subject),
            StoreError::Moved { .. } => ApiError::stale(subject),
            StoreError::Compacted { requested, oldest } => {
                ApiError::gone(format!("too old resource version: {requested} ({oldest})"))
            }
            StoreError::Ahead { requested, current } => too_large_version(requested, current),
            StoreError::TooLarge { .. } => ApiError::object_too_large(error.to_string()),
            StoreError::Full { .. } => ApiError::out_of_space(error.to_string()),
            StoreError::Broken { .. } | StoreError::InUse { .. } => ApiError::internal(error.to_string()),
            StoreError::Closed => ApiError::unavailable("the server is stopping"),
        }
    }
}

fn too_large_version(requested: u64, current: u64) -> ApiError {
    let mut error = ApiError::new(
        StatusCode::GATEWAY_TIMEOUT,
        "Timeout",
        format!("Timeout: Too large resource version: {requested}, current: {current}"),
    );
    error.causes.push(crate::error::Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    });
    error.retry_after_seconds = Some(1);
    error
}

/// An object as it is in the store now.
pub(crate) struct Live {
    pub revision: u64,
    pub json: Bytes,
    /// Parsed, in the version of the call's resource.
    pub object: Value,
}

impl Api {
    /// The current object, or `None`.
    pub(crate) fn live(&self, call: &Call) -> Result<Option<Live>> {
        let Some(stored) = self.store.get(&call.key()).map_err(|e| call.store_error(e))? else {
            return Ok(None);
        };
        let object = shape::parse_stored(&call.resource, &stored.json)?;
        Ok(Some(Live { revision: stored.revision, json: stored.json, object }))
    }

    pub(crate) fn exists(&self, call: &Call) -> Result<bool> {
        Ok(self.store.get(&call.key()).map_err(|e| call.store_error(e))?.is_some())
    }
}

/// What becomes of an object that is handed to the store.
struct Handover {
    stored: Value,
    /// The object itself, where somebody needs it after the commit: most are answered as they are stored.
    kept: Option<Value>,
}

impl Handover {
    fn of(resource: &Resource, object: Value) -> Self {
        let kept = (resource.is_crd() || !resource.served_as_stored()).then(|| object.clone());
        Self { stored: shape::stored(resource, object), kept }
    }
}

impl Api {
    /// The answer to a write that is on disk, after what has to follow it.
    fn written(
        &self,
        resource: &Resource,
        code: StatusCode,
        change: Change,
        done: Stored,
        kept: Option<Value>,
    ) -> Answer {
        let Some(mut object) = kept else { return Answer::Raw(code, done.json) };
        object["metadata"]["resourceVersion"] = done.revision.to_string().into();
        match change {
            Change::Deleted => self.after_delete(resource, &object),
            Change::Created | Change::Updated => self.after_write(resource, &object),
        }
        Answer::Object(code, object)
    }
}
