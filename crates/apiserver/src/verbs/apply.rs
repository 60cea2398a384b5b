//! Server-side apply: the client says what it wants to own, the server merges.

use http::StatusCode;
use jiff::Timestamp;
use serde_json::Value;

use super::create::{Ownership, unwritten, write_context};
use super::{Answer, Api, Call, shape};
use crate::error::{ApiError, FieldError, Result};
use crate::fields::{self, ApplyError};
use crate::http::media::Decoded;
use crate::http::query::{FieldValidation, refuse_options};
use crate::meta;

impl Api {
    pub(super) async fn apply(&self, call: &mut Call, config: Value) -> Result<Answer> {
        if call.query.field_manager.is_empty() {
            let missing = FieldError::required("fieldManager", "is required for apply patch");
            refuse_options("PatchOptions", &[missing])?;
        }
        check_identity(&config)?;
        let named = !meta::name(&config).is_empty();
        // Who applies a field means to own it: one that does not exist is always a mistake.
        call.query.field_validation = FieldValidation::Strict;
        let duplicates = std::mem::take(&mut call.duplicates);
        let config = shape::admit(call, Decoded { value: config, duplicates })?;
        if !self.exists(call)? {
            if !call.subresource.is_empty() {
                return Err(call.not_found());
            }
            // What is there has a name; only what is made needs to be told its own.
            if !named {
                return Err(shape::nameless(call));
            }
            let uid = meta::uid(&config);
            if !uid.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(ApiError::conflict(call.resource.subject(&call.name), why));
            }
            let object = applied(call, None, &config)?;
            match self.store_new(call, object, Ownership::Done).await {
                Err(error) if error.reason == "AlreadyExists" => {}
                created => return created,
            }
        }
        let version = config["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_string();
        self.change(call, Ownership::Done, &version, |call, live| applied(call, Some(live), &config)).await
    }
}

/// An applied configuration says what it is about.
fn check_identity(config: &Value) -> Result<()> {
    let text = |field: &str| config[field].as_str().unwrap_or_default();
    if text("apiVersion").is_empty() || text("kind").is_empty() {
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        return Err(ApiError::bad_request(format!(
            "invalid object type: {group}/{version}, Kind={}",
            text("kind")
        )));
    }
    Ok(())
}

fn applied(call: &Call, live: Option<&Value>, config: &Value) -> Result<Value> {
    let api_version = call.resource.api_version();
    let context = write_context(call, &api_version, Timestamp::now());
    fields::apply(&call.resource.schema, live, config, unwritten(call), call.query.force, &context).map_err(
        |error| match error {
            ApplyError::Conflicts(conflicts) => {
                let mut refused =
                    ApiError::new(StatusCode::CONFLICT, "Conflict", fields::conflict_message(&conflicts));
                refused.causes = fields::conflict_causes(&conflicts);
                refused
            }
            other => ApiError::bad_request(other.to_string()),
        },
    )
}
