//! Changing a part of an object: JSON patch, merge patch, strategic merge patch.

use serde_json::Value;

use super::create::Ownership;
use super::{Answer, Api, Call, Sent, shape};
use crate::error::{ApiError, FieldError, Result, Subject};
use crate::http::query::refuse_options;
use crate::meta;
use crate::patch::{self, PatchError};

impl Api {
    pub async fn patch(&self, call: &mut Call, sent: Sent) -> Result<Answer> {
        if call.subresource == "scale" {
            return self.patch_scale(call, &sent).await;
        }
        if let Sent::Apply(config) = sent {
            return self.apply(call, config).await;
        }
        if let Sent::StrategicPatch(_) = &sent
            && call.resource.is_custom()
        {
            return Err(ApiError::unsupported_media_type(&[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ]));
        }
        if call.query.force {
            let odd = FieldError::forbidden("force", "may not be specified for non-apply patch");
            refuse_options("PatchOptions", &[odd])?;
        }
        if let Sent::MergePatch(patch) | Sent::StrategicPatch(patch) = &sent
            && !patch.is_object()
        {
            return Err(ApiError::bad_request("error decoding patch: a merge patch must be an object"));
        }
        let version = version_in(&sent);
        self.change(call, Ownership::Track, &version, |call, live| {
            let mut object = live.clone();
            patched(call, &mut object, &sent)?;
            Ok(object)
        })
        .await
    }
}

/// The version that a patch itself asks for.
pub(super) fn version_in(sent: &Sent) -> String {
    let version = match sent {
        Sent::MergePatch(patch) | Sent::StrategicPatch(patch) => {
            patch.pointer("/metadata/resourceVersion").and_then(Value::as_str)
        }
        Sent::JsonPatch(operations) => operations
            .as_array()
            .into_iter()
            .flatten()
            .find(|o| o["path"] == "/metadata/resourceVersion" && o["op"] != "test")
            .and_then(|o| o["value"].as_str()),
        _ => None,
    };
    version.unwrap_or_default().to_string()
}

/// Applies the patch and checks that an object of the same identity came out.
fn patched(call: &mut Call, object: &mut Value, sent: &Sent) -> Result<()> {
    let resource = call.resource.clone();
    let uid = meta::uid(object).to_string();
    let result = match sent {
        Sent::JsonPatch(operations) => patch::json(object, operations),
        Sent::MergePatch(changes) => {
            patch::merge(object, changes);
            Ok(())
        }
        Sent::StrategicPatch(changes) => patch::strategic(&resource.schema, object, changes),
        Sent::Object(_) | Sent::Apply(_) => return Err(ApiError::internal("not a patch")),
    };
    result.map_err(|error| patch_error(&error))?;
    let text = patch_text(sent);
    if !object.is_object() || !object["metadata"].is_object() {
        return Err(unfit(&text, "it leaves no object with metadata"));
    }
    shape::place(call, object)?;
    if !meta::uid(object).is_empty() && meta::uid(object) != uid {
        let fixed = FieldError::invalid("metadata.uid", meta::uid(object), "field is immutable");
        return Err(ApiError::invalid(resource.kind_subject(&call.name), &[fixed]));
    }
    let duplicates = call.duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    let fits = shape::check_kind(call, object).and_then(|()| shape::tidy(call, object, duplicates));
    fits.map_err(|error| unfit(&text, why(&error.message)))
}

/// The last part of "X in version Y cannot be handled as a X: why".
fn why(message: &str) -> &str {
    let rest = message.split_once(" cannot be handled as a ").map_or(message, |(_, rest)| rest);
    if rest.len() == message.len() { message } else { rest.split_once(": ").map_or(rest, |(_, why)| why) }
}

fn patch_text(sent: &Sent) -> String {
    match sent {
        Sent::JsonPatch(patch)
        | Sent::MergePatch(patch)
        | Sent::StrategicPatch(patch)
        | Sent::Apply(patch) => patch.to_string(),
        Sent::Object(decoded) => decoded.value.to_string(),
    }
}

/// The object that a patch made is not one of its kind: the patch is to blame, not the request.
fn unfit(patch: &str, why: &str) -> ApiError {
    ApiError::invalid(Subject::default(), &[FieldError::invalid("patch", patch, why)])
}

pub(super) fn patch_error(error: &PatchError) -> ApiError {
    match error {
        PatchError::Unprocessable(_) => {
            let mut refused = ApiError::new(
                http::StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid",
                format!("the server rejected our request due to an error in our request: {error}"),
            );
            refused.subject = Some(Subject::default());
            refused
        }
        PatchError::Malformed(_) => ApiError::bad_request(error.to_string()),
        PatchError::TooLarge(_) => {
            ApiError::new(http::StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", error.to_string())
        }
    }
}
