//! Replacing an object, and the common end of every change to one that exists.

use http::StatusCode;
use jiff::Timestamp;
use serde_json::Value;

use super::create::Ownership;
use super::{Answer, Api, Call, Handover, Live, custom_definitions, shape};
use crate::admission::Operation;
use crate::error::{ApiError, FieldError, Result};
use crate::http::media::Decoded;
use crate::meta;
use crate::store::{Action, Change, Expect, StoreError, Write};

impl Api {
    /// PUT.
    pub async fn update(&self, call: &mut Call, sent: Decoded) -> Result<Answer> {
        if call.subresource == "scale" {
            return self.update_scale(call, &sent.value).await;
        }
        let named = !meta::name(&sent.value).is_empty();
        let object = shape::admit(call, sent)?;
        if !named {
            return Err(shape::nameless(call));
        }
        if !self.exists(call)? {
            let creates = call.resource.builtin().is_some_and(|kind| kind.create_on_update);
            if creates && call.subresource.is_empty() {
                return self.store_new(call, object, Ownership::Track).await;
            }
            return Err(call.not_found());
        }
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let version = if version == "0" { String::new() } else { version.to_string() };
        if version.is_empty() && call.resource.builtin().is_none_or(|kind| kind.needs_version) {
            let missing = FieldError::invalid(
                "metadata.resourceVersion",
                serde_json::Number::from(0),
                "must be specified for an update",
            );
            return Err(ApiError::invalid(call.resource.kind_subject(&call.name), &[missing]));
        }
        self.change(call, Ownership::Track, &version, |call, live| {
            let mut object = object.clone();
            let uid = meta::uid(&object);
            if !uid.is_empty() && uid != meta::uid(live) {
                let why = format!(
                    "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                    meta::uid(live)
                );
                return Err(ApiError::conflict(call.resource.subject(&call.name), why));
            }
            // A replacement that says nothing of ownership keeps what is known.
            if object["metadata"].get("managedFields").is_none()
                && let Some(known) = live["metadata"].get("managedFields")
            {
                object["metadata"]["managedFields"] = known.clone();
            }
            Ok(object)
        })
        .await
    }

    /// Reads the object, lets `make` derive the new one, and stores it; again when somebody was faster, unless
    /// the client insists on a version.
    pub(super) async fn change<F>(
        &self,
        call: &mut Call,
        own: Ownership,
        version: &str,
        mut make: F,
    ) -> Result<Answer>
    where
        F: FnMut(&mut Call, &Value) -> Result<Value>,
    {
        loop {
            let live = self.live(call)?.ok_or_else(|| call.not_found())?;
            if !version.is_empty() && version != live.revision.to_string() {
                return Err(ApiError::stale(call.resource.subject(&call.name)));
            }
            let warned = call.warnings.len();
            let object = make(call, &live.object)?;
            match self.store_change(call, own, live, object).await {
                // Whoever was faster has got on, so a crowd of writers always does, and each gets its turn.
                Err(Refused::Raced(_)) if version.is_empty() => call.warnings.truncate(warned),
                Err(Refused::Raced(error) | Refused::Final(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    /// Completes, checks and stores the successor of `live`.
    async fn store_change(
        &self,
        call: &mut Call,
        own: Ownership,
        live: Live,
        mut object: Value,
    ) -> Result<Answer, Refused> {
        let resource = call.resource.clone();
        let now = Timestamp::now();
        let old = &live.object;
        let sent_uid = meta::uid(&object);
        if !sent_uid.is_empty() && sent_uid != meta::uid(old) {
            let changed = FieldError::invalid("metadata.uid", sent_uid, "field is immutable");
            return Err(ApiError::invalid(resource.kind_subject(&call.name), &[changed]).into());
        }
        isolate(call, old, &mut object);
        meta::prepare_update(&mut object, old);
        shape::default(&resource, &mut object);
        if let Some(kind) = resource.builtin()
            && call.subresource != "finalize"
        {
            (kind.carry)(&mut object, old, now);
        }
        if resource.is_crd() {
            custom_definitions::prepare(self, &mut object, now);
        }
        let mut object = self.mutate(call, Operation::Update, Some(old), object).await?;
        if resource.has_generation
            && call.subresource.is_empty()
            && shape::spec_changed(&resource, old, &object)
        {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = generation.into();
        }
        shape::validate(&resource, &object, Some(old))?;
        if resource.is_crd() {
            custom_definitions::validate(&resource, &object, Some(old))?;
        }
        object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        self.track(call, own, Some(old), &mut object, now)?;
        self.check(call, Operation::Update, Some(old), &object).await?;
        if object == *old || call.query.dry_run {
            return Ok(Answer::Object(StatusCode::OK, object));
        }
        self.commit_change(call, live, object).await
    }

    async fn commit_change(&self, call: &Call, live: Live, object: Value) -> Result<Answer, Refused> {
        let resource = &call.resource;
        let last = super::delete::may_vanish(resource, &object);
        let Handover { stored, kept } = Handover::of(resource, object);
        let write = Write {
            key: call.key(),
            expect: Expect::Revision(live.revision),
            action: if last { Action::Delete(stored) } else { Action::Put(stored) },
            previous: Some(live.json),
        };
        match self.store.commit(write).await {
            Ok(done) => {
                let change = if last { Change::Deleted } else { Change::Updated };
                Ok(self.written(resource, StatusCode::OK, change, done, kept))
            }
            Err(error @ (StoreError::Moved { .. } | StoreError::Missing)) => {
                Err(Refused::Raced(call.store_error(error)))
            }
            Err(error) => Err(Refused::Final(call.store_error(error))),
        }
    }
}

enum Refused {
    /// Somebody else changed the object first.
    Raced(ApiError),
    Final(ApiError),
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Final(error)
    }
}

/// Each end point writes its own part of an object and leaves the rest as it is.
fn isolate(call: &Call, old: &Value, object: &mut Value) {
    let resource = &call.resource;
    match call.subresource.as_str() {
        "" if resource.has_status => copy_member(old, object, "status"),
        "status" => {
            let status = object.get("status").cloned();
            let mut meta = object["metadata"].clone();
            if resource.is_custom() {
                let managed = meta.get("managedFields").cloned();
                let version = meta["resourceVersion"].clone();
                meta = old["metadata"].clone();
                meta["resourceVersion"] = version;
                if let (Some(managed), Some(members)) = (managed, meta.as_object_mut()) {
                    members.insert("managedFields".into(), managed);
                }
            }
            *object = old.clone();
            object["metadata"] = meta;
            if let Some(members) = object.as_object_mut() {
                match status {
                    Some(status) => members.insert("status".into(), status),
                    None => members.remove("status"),
                };
            }
        }
        // A namespace's own finalizers change only here.
        "finalize" => {
            let finalizers = object["spec"]["finalizers"].clone();
            *object = old.clone();
            object["spec"]["finalizers"] = finalizers;
        }
        _ => {}
    }
}

fn copy_member(from: &Value, to: &mut Value, member: &str) {
    let Some(members) = to.as_object_mut() else { return };
    match from.get(member) {
        Some(value) => members.insert(member.into(), value.clone()),
        None => members.remove(member),
    };
}
