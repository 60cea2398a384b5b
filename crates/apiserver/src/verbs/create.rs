//! Making a new object.

use http::StatusCode;
use jiff::Timestamp;
use serde_json::Value;

use super::{Answer, Api, Call, Handover, custom_definitions, shape};
use crate::admission::{Operation, Phase, Reviewed};
use crate::builtin;
use crate::error::{ApiError, Cause, Result};
use crate::fields::{self, WriteContext};
use crate::http::media::Decoded;
use crate::meta;
use crate::registry::Resource;
use crate::store::{Action, Change, Expect, Key, StoreError, Write};

/// How often a generated name is drawn anew when it is taken.
const NAME_ATTEMPTS: usize = 8;

impl Api {
    pub async fn create(&self, call: &mut Call, sent: Decoded) -> Result<Answer> {
        let object = shape::admit(call, sent)?;
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|v| !v.is_empty()) {
            return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        self.store_new(call, object, Ownership::Track).await
    }

    /// Completes, checks and stores a new object; gives it in the call's version.
    pub(super) async fn store_new(
        &self,
        call: &mut Call,
        mut object: Value,
        own: Ownership,
    ) -> Result<Answer> {
        self.require_namespace(call, meta::name(&object))?;
        let resource = call.resource.clone();
        let keeps_status = resource.builtin().is_some_and(|kind| kind.status_on_create);
        if resource.has_status
            && !keeps_status
            && let Some(members) = object.as_object_mut()
        {
            members.remove("status");
        }
        let generated = meta::name(&object).is_empty() && !meta::text(&object, "generateName").is_empty();
        let template = generated.then(|| object.clone());
        for attempt in 1.. {
            match self.try_store_new(call, &resource, object, own).await {
                Err(error) if error.reason == "AlreadyExists" && generated && attempt < NAME_ATTEMPTS => {
                    let Some(again) = &template else { return Err(error) };
                    object = again.clone();
                }
                other => return other,
            }
        }
        Err(self.name_exhausted(call))
    }

    fn name_exhausted(&self, call: &Call) -> ApiError {
        ApiError::already_exists(call.resource.subject(&call.name))
    }

    async fn try_store_new(
        &self,
        call: &mut Call,
        resource: &Resource,
        mut object: Value,
        own: Ownership,
    ) -> Result<Answer> {
        let now = Timestamp::now();
        meta::prepare_create(&mut object, &call.namespace, resource.namespaced, now);
        if resource.has_generation && resource.counts_from_one() {
            object["metadata"]["generation"] = 1.into();
        }
        shape::default(resource, &mut object);
        if resource.is_core("persistentvolumes") {
            object["status"]["lastPhaseTransitionTime"] = meta::time_text(now).into();
        }
        if resource.is_crd() {
            custom_definitions::prepare(self, &mut object, now);
        }
        let mut object = self.mutate(call, Operation::Create, None, object).await?;
        shape::validate(resource, &object, None)?;
        if resource.is_crd() {
            custom_definitions::validate(resource, &object, None)?;
        }
        self.track(call, own, None, &mut object, now)?;
        self.check(call, Operation::Create, None, &object).await?;
        let name = meta::name(&object).to_string();
        let key = Key::new(&resource.storage, &call.namespace, &name);
        if call.query.dry_run {
            return match self.store.get(&key).map_err(|e| call.store_error(e))? {
                Some(_) => Err(self.taken(resource, &key)),
                None => Ok(Answer::Object(StatusCode::CREATED, object)),
            };
        }
        let Handover { stored, kept } = Handover::of(resource, object);
        let write =
            Write { key: key.clone(), expect: Expect::Absent, action: Action::Put(stored), previous: None };
        let done = self.store.commit(write).await.map_err(|e| match e {
            StoreError::Exists => self.taken(resource, &key),
            other => call.store_error(other),
        })?;
        Ok(self.written(resource, StatusCode::CREATED, Change::Created, done, kept))
    }

    /// The name is taken; by an object that is on its way out, if that is so.
    fn taken(&self, resource: &Resource, key: &Key) -> ApiError {
        let mut error = ApiError::already_exists(resource.subject(key.name()));
        if let Ok(Some(stored)) = self.store.get(key)
            && serde_json::from_slice(&stored.json).is_ok_and(|object: Value| meta::is_deleting(&object))
        {
            error.message = format!("object is being deleted: {}", error.message);
        }
        error
    }

    /// A namespaced object needs a namespace that is there to stay.
    fn require_namespace(&self, call: &Call, name: &str) -> Result<()> {
        if !call.resource.namespaced || call.resource.storage.is_empty() {
            return Ok(());
        }
        let key = Key::new("namespaces.", "", &call.namespace);
        let Some(stored) = self.store.get(&key).map_err(|e| call.store_error(e))? else {
            return Err(ApiError::not_found(crate::error::Subject {
                group: String::new(),
                kind: "namespaces".into(),
                name: call.namespace.clone(),
            }));
        };
        if memchr::memmem::find(&stored.json, b"\"deletionTimestamp\"").is_none() {
            return Ok(());
        }
        let namespace: Value = serde_json::from_slice(&stored.json).unwrap_or_default();
        if !meta::is_deleting(&namespace) {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {} because it is being terminated",
            call.namespace
        );
        let mut error = ApiError::forbidden(call.resource.subject(name), why);
        error.causes.push(Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {} is being terminated", call.namespace),
            field: "metadata.namespace".into(),
        });
        Err(error)
    }

    /// Lets mutating hooks have their say.
    pub(super) async fn mutate(
        &self,
        call: &mut Call,
        operation: Operation,
        old: Option<&Value>,
        object: Value,
    ) -> Result<Value> {
        let name = meta::name(&object).to_string();
        let mut object = Some(object);
        let write = reviewed(call, &name, operation, old);
        let warnings = self.admission.review(Phase::Mutate, &write, &mut object).await?;
        call.warnings.extend(warnings);
        let intact = object.filter(|o| o["metadata"].is_object());
        intact.ok_or_else(|| ApiError::internal("a hook took the object away"))
    }

    /// Asks validating hooks.
    pub(super) async fn check(
        &self,
        call: &mut Call,
        operation: Operation,
        old: Option<&Value>,
        object: &Value,
    ) -> Result<()> {
        let write = reviewed(call, meta::name(object), operation, old);
        if self.admission.is_wanted(Phase::Validate, &write) {
            let warnings = self.admission.review(Phase::Validate, &write, &mut Some(object.clone())).await?;
            call.warnings.extend(warnings);
        }
        Ok(())
    }

    /// Asks all hooks about a deletion, which has an old object and no new one.
    pub(super) async fn review_deletion(&self, call: &mut Call, old: &Value) -> Result<()> {
        let mut warnings = Vec::new();
        for phase in [Phase::Mutate, Phase::Validate] {
            let write = reviewed(call, &call.name, Operation::Delete, Some(old));
            warnings.extend(self.admission.review(phase, &write, &mut None).await?);
        }
        call.warnings.extend(warnings);
        Ok(())
    }

    /// Notes in `managedFields` who set what.
    pub(super) fn track(
        &self,
        call: &Call,
        own: Ownership,
        live: Option<&Value>,
        object: &mut Value,
        now: Timestamp,
    ) -> Result<()> {
        let resource = &call.resource;
        let subresource = match own {
            Ownership::Track => call.subresource.as_str(),
            Ownership::TrackAs(subresource) => subresource,
            Ownership::Done => return Ok(()),
        };
        let api_version = resource.api_version();
        let zero = match (live, resource.builtin()) {
            (None, Some(kind)) => Some(builtin::zero::of(kind)),
            _ => None,
        };
        let mut context = write_context(call, &api_version, now);
        context.zero = zero.as_ref();
        context.subresource = subresource;
        fields::track_update(&resource.schema, live, object, unwritten(call), &context)
            .map_err(|e| ApiError::bad_request(format!("cannot track who owns which field: {e}")))
    }

    /// What must follow a write at once, so that the next request of the client finds it done.
    pub(super) fn after_write(&self, resource: &Resource, object: &Value) {
        if resource.is_crd() {
            custom_definitions::serve(self, object);
        }
    }
}

/// Who works out field ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    Track,
    /// The change is made to the object, but came in through this subresource.
    TrackAs(&'static str),
    /// Server-side apply has done it.
    Done,
}

fn reviewed<'a>(call: &'a Call, name: &'a str, operation: Operation, old: Option<&'a Value>) -> Reviewed<'a> {
    Reviewed {
        resource: &call.resource,
        subresource: &call.subresource,
        namespace: &call.namespace,
        name,
        operation,
        old,
        user: &call.user,
        dry_run: call.query.dry_run,
    }
}

pub(super) fn write_context<'a>(call: &'a Call, api_version: &'a str, now: Timestamp) -> WriteContext<'a> {
    WriteContext { manager: call.manager(), api_version, subresource: &call.subresource, now, zero: None }
}

pub(super) fn unwritten(call: &Call) -> &fields::Set {
    match call.subresource.as_str() {
        "status" => &call.resource.unwritten.by_status,
        _ => &call.resource.unwritten.by_main,
    }
}
