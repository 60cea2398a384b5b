//! Deleting one object or many: preconditions, grace, finalizers, and what becomes of dependents.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Answer, Api, Call, Live, custom_definitions, shape};
use crate::auth::SYSTEM_NAMESPACE;
use crate::error::{ApiError, FieldError, Result};
use crate::http::query::{Propagation, refuse_options};
use crate::meta;
use crate::registry::Resource;
use crate::store::{Action, Expect, StoreError, Write};

pub const ORPHAN: &str = "orphan";
pub const FOREGROUND: &str = "foregroundDeletion";

/// Namespaces that the server itself relies on.
const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public", SYSTEM_NAMESPACE];
/// Objects that a collection delete reads at once.
const PAGE: usize = 500;

/// What a DELETE asks for, in its query or its body.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    pub propagation: Option<Propagation>,
    pub grace_seconds: Option<i64>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub dry_run: bool,
}

impl DeleteOptions {
    /// Reads a `DeleteOptions` object.
    pub fn parse(body: &Value) -> Result<Self> {
        let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
        if !body.is_object() || kind != "DeleteOptions" {
            return Err(ApiError::bad_request("the body of a deletion must be of kind DeleteOptions"));
        }
        let grace = &body["gracePeriodSeconds"];
        if !grace.is_null() && !grace.is_i64() {
            return Err(ApiError::bad_request("DeleteOptions.gracePeriodSeconds must be a whole number"));
        }
        let mut problems = Vec::new();
        let policy = body["propagationPolicy"].as_str();
        let propagation = match (body["orphanDependents"].as_bool(), policy.map(Propagation::parse)) {
            (Some(_), Some(_)) => {
                let both = "orphanDependents and deletionPropagation cannot be both set";
                problems.push(FieldError::invalid("propagationPolicy", policy, both));
                None
            }
            (Some(true), None) => Some(Propagation::Orphan),
            (Some(false), None) => Some(Propagation::Background),
            (None, Some(None)) => {
                problems.push(Propagation::unsupported(policy.unwrap_or_default()));
                None
            }
            (None, wanted) => wanted.flatten(),
        };
        let dry_run = body["dryRun"].as_array().map(Vec::as_slice).unwrap_or_default();
        if dry_run.iter().any(|d| d != "All") {
            problems.push(FieldError::not_supported("dryRun", dry_run.to_vec(), &["All"]));
        }
        refuse_options("DeleteOptions", &problems)?;
        Ok(Self {
            propagation,
            grace_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: body["preconditions"]["uid"].as_str().map(str::to_string),
            resource_version: body["preconditions"]["resourceVersion"].as_str().map(str::to_string),
            dry_run: !dry_run.is_empty(),
        })
    }

    pub fn with_query(mut self, call: &Call) -> Self {
        self.propagation = self.propagation.or(call.query.propagation);
        self.grace_seconds = self.grace_seconds.or(call.query.grace_seconds);
        self
    }
}

/// What a deletion does to the object as it is now.
enum Step {
    /// Marks it; finalizers or grace keep it for a while.
    Mark(Value),
    Remove(Value),
    /// It is marked already and nothing about that changes.
    Wait,
}

impl Api {
    pub async fn delete(&self, call: &mut Call, options: &DeleteOptions) -> Result<Answer> {
        if call.resource.is_core("namespaces") && IMMORTAL.contains(&call.name.as_str()) {
            let subject = call.resource.subject(&call.name);
            return Err(ApiError::forbidden(subject, "this namespace may not be deleted"));
        }
        loop {
            let live = self.live(call)?.ok_or_else(|| call.not_found())?;
            preconditions(call, options, &live)?;
            let warned = call.warnings.len();
            self.review_deletion(call, &live.object).await?;
            let step = plan(&call.resource, &live.object, options);
            match self.take(call, live, step).await {
                // Somebody's change came in between; one of them got on, so this ends.
                Err(StoreError::Moved { .. }) => call.warnings.truncate(warned),
                other => return other.map_err(|e| call.store_error(e)),
            }
        }
    }

    async fn take(&self, call: &Call, live: Live, step: Step) -> Result<Answer, StoreError> {
        let resource = &call.resource;
        let (mut object, removes) = match step {
            Step::Wait => return Ok(Answer::Object(StatusCode::OK, live.object)),
            Step::Mark(object) => (object, false),
            Step::Remove(object) => (object, true),
        };
        if !call.query.dry_run {
            let stored = shape::stored(resource, object.clone());
            let write = Write {
                key: call.key(),
                expect: Expect::Revision(live.revision),
                action: if removes { Action::Delete(stored) } else { Action::Put(stored) },
                previous: Some(live.json),
            };
            let done = self.store.commit(write).await?;
            object["metadata"]["resourceVersion"] = done.revision.to_string().into();
            if removes {
                self.after_delete(resource, &object);
            } else {
                self.after_write(resource, &object);
            }
        }
        let answer = if removes { deleted_status(resource, &object) } else { object };
        Ok(Answer::Object(StatusCode::OK, answer))
    }

    /// Deletes everything a list would show.
    pub async fn delete_collection(&self, call: &mut Call, options: &DeleteOptions) -> Result<Answer> {
        let snapshot = self.store.snapshot(None).map_err(|e| call.store_error(e))?;
        let filter = self.filter(call)?;
        let mut start: Option<String> = None;
        let mut deleted = Vec::new();
        loop {
            let page = snapshot
                .page(&call.prefix(), start.as_deref(), PAGE, |key, json| filter.keeps(key, json))
                .map_err(|e| call.store_error(e))?;
            for stored in page.items {
                let mut one = call.for_object(stored.key.namespace(), stored.key.name());
                match self.delete(&mut one, options).await {
                    Ok(Answer::Object(_, _)) => {
                        deleted.push(shape::parse_stored(&call.resource, &stored.json)?);
                    }
                    Ok(_) => {}
                    // Somebody else deleted it first.
                    Err(error) if error.code == StatusCode::NOT_FOUND => {}
                    Err(error) => return Err(error),
                }
                call.warnings.append(&mut one.warnings);
            }
            match page.next {
                Some(next) => start = Some(next),
                None => break,
            }
        }
        let list = json!({
            "kind": call.resource.list_kind,
            "apiVersion": call.resource.api_version(),
            "metadata": { "resourceVersion": self.store.revision().to_string() },
            "items": deleted,
        });
        Ok(Answer::Object(StatusCode::OK, list))
    }

    pub(super) fn after_delete(&self, resource: &Resource, object: &Value) {
        if resource.is_crd() {
            custom_definitions::unserve(self, object);
        }
    }
}

impl Call {
    /// The same request about one object of the collection.
    pub(crate) fn for_object(&self, namespace: &str, name: &str) -> Self {
        Self {
            resource: self.resource.clone(),
            namespace: namespace.into(),
            name: name.into(),
            subresource: String::new(),
            query: self.query.clone(),
            accept: self.accept,
            user: self.user.clone(),
            agent: self.agent.clone(),
            duplicates: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

fn preconditions(call: &Call, options: &DeleteOptions, live: &Live) -> Result<()> {
    let conflict = |what: &str, wanted: &str, found: &str, maybe: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
             The object might have been {maybe}"
        );
        Err(ApiError::conflict(call.resource.kind_subject(&call.name), why))
    };
    if let Some(uid) = &options.uid
        && uid != meta::uid(&live.object)
    {
        return conflict("UID", uid, meta::uid(&live.object), "deleted and then recreated");
    }
    if let Some(version) = &options.resource_version
        && *version != live.revision.to_string()
    {
        return conflict("ResourceVersion", version, &live.revision.to_string(), "modified");
    }
    Ok(())
}

fn plan(resource: &Resource, live: &Value, options: &DeleteOptions) -> Step {
    let mut object = live.clone();
    let mut finalizers: Vec<&str> = meta::finalizers(live);
    // Only an explicit wish changes how dependents are treated.
    if let Some(policy) = options.propagation {
        finalizers.retain(|f| *f != ORPHAN && *f != FOREGROUND);
        match policy {
            Propagation::Orphan => finalizers.push(ORPHAN),
            Propagation::Foreground => finalizers.push(FOREGROUND),
            Propagation::Background => {}
        }
    }
    if resource.is_crd() && !meta::is_deleting(live) && !finalizers.contains(&custom_definitions::CLEANUP) {
        finalizers.push(custom_definitions::CLEANUP);
    }
    meta::set_finalizers(&mut object, &finalizers);
    let grace = grace_seconds(resource, live, options);
    if finalizers.is_empty() && grace == 0 && !keeps_itself(resource, live) {
        return Step::Remove(object);
    }
    let earlier = live["metadata"]["deletionGracePeriodSeconds"].as_i64();
    if meta::is_deleting(live) && earlier.is_some_and(|e| e <= grace) && object == *live {
        return Step::Wait;
    }
    mark(resource, &mut object, grace);
    Step::Mark(object)
}

/// A pod on a node gets time to end; everything else goes at once.
fn grace_seconds(resource: &Resource, live: &Value, options: &DeleteOptions) -> i64 {
    let scheduled = live["spec"]["nodeName"].as_str().is_some_and(|n| !n.is_empty());
    let ended = matches!(live["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !resource.is_core("pods") || !scheduled || ended {
        return 0;
    }
    let wanted = options.grace_seconds.or(live["spec"]["terminationGracePeriodSeconds"].as_i64());
    let wanted = wanted.unwrap_or(30).max(0);
    live["metadata"]["deletionGracePeriodSeconds"].as_i64().map_or(wanted, |earlier| earlier.min(wanted))
}

/// A namespace stays until its content is gone.
fn keeps_itself(resource: &Resource, object: &Value) -> bool {
    resource.is_core("namespaces") && object["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty())
}

fn mark(resource: &Resource, object: &mut Value, grace: i64) {
    let now = Timestamp::now();
    let until = now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(now);
    let deleting = meta::is_deleting(object);
    if let Some(members) = meta::members(object) {
        let shorter =
            members.get("deletionGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|e| e > grace);
        if !deleting || shorter {
            members.insert("deletionTimestamp".into(), meta::time_text(until).into());
            members.insert("deletionGracePeriodSeconds".into(), grace.into());
        }
        if !deleting && let Some(generation) = members.get("generation").and_then(Value::as_i64) {
            members.insert("generation".into(), (generation + 1).into());
        }
    }
    if resource.is_core("namespaces") {
        object["status"]["phase"] = "Terminating".into();
    }
    if resource.is_crd() {
        custom_definitions::mark_terminating(object, now);
    }
}

/// Whether an updated object has nothing left that keeps it.
pub(super) fn may_vanish(resource: &Resource, object: &Value) -> bool {
    meta::is_deleting(object)
        && meta::finalizers(object).is_empty()
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !keeps_itself(resource, object)
}

fn deleted_status(resource: &Resource, object: &Value) -> Value {
    let mut details =
        json!({ "name": meta::name(object), "kind": resource.plural, "uid": meta::uid(object) });
    if !resource.group.is_empty() {
        details["group"] = resource.group.as_str().into();
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}
