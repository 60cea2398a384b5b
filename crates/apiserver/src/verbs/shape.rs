//! Between what clients send and what is stored: identity, unknown fields, defaults, versions.
//!
//! Must never read or write the store.

use serde_json::Value;

use super::Call;
use crate::builtin::{self, NameRule};
use crate::error::{ApiError, FieldError, Result};
use crate::http::media::Decoded;
use crate::http::query::FieldValidation;
use crate::meta;
use crate::registry::{Resource, Source};
use crate::schema;

/// Whether this resource is the other view of core events.
fn is_events_view(resource: &Resource) -> bool {
    resource.group == "events.k8s.io"
}

/// A stored object in the version that the resource serves.
pub fn parse_stored(resource: &Resource, json: &[u8]) -> Result<Value> {
    let object: Value =
        serde_json::from_slice(json).map_err(|e| ApiError::internal(format!("stored object: {e}")))?;
    Ok(served(resource, object))
}

pub fn served(resource: &Resource, mut object: Value) -> Value {
    if is_events_view(resource) {
        object = builtin::core_to_events(object);
    }
    if !resource.served_as_stored() {
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.as_str().into();
        if resource.is_custom() {
            schema::apply_defaults(&resource.schema, &mut object);
        }
    }
    object
}

/// The form in which an object is stored.
pub fn stored(resource: &Resource, mut object: Value) -> Value {
    if is_events_view(resource) {
        object = builtin::events_to_core(object);
    }
    if !resource.served_as_stored() {
        object["apiVersion"] = resource.stored_api_version().into();
        object["kind"] = resource.kind.as_str().into();
    }
    object
}

/// An object out of a body: of the right kind and place, without unknown fields, with types that fit.
pub fn admit(call: &mut Call, sent: Decoded) -> Result<Value> {
    let Decoded { mut value, duplicates } = sent;
    if !value.is_object() {
        return Err(ApiError::bad_request("the object provided is not a JSON object"));
    }
    identify(call, &mut value)?;
    let duplicates = duplicates.into_iter().map(|path| format!("duplicate field {path:?}")).collect();
    tidy(call, &mut value, duplicates)?;
    Ok(value)
}

/// Removes unknown fields as the request asks for, and refuses values of the wrong type in built-in kinds.
pub fn tidy(call: &mut Call, value: &mut Value, duplicates: Vec<String>) -> Result<()> {
    let resource = call.resource.clone();
    if let Some(text) = undecodable(&resource, value) {
        return Err(ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {text}",
            resource.kind, resource.version, resource.kind
        )));
    }
    let unknown = schema::prune(&resource.schema, value);
    let mut problems: Vec<String> =
        unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect();
    problems.extend(duplicates);
    if problems.is_empty() {
        return Ok(());
    }
    match call.query.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(problems),
        FieldValidation::Strict => {
            return Err(ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                resource.kind,
                resource.version,
                resource.kind,
                problems.join(", ")
            )));
        }
    }
    Ok(())
}

/// What a decoder stumbles over: anywhere in a built-in kind, in the metadata of a custom one.
fn undecodable(resource: &Resource, value: &Value) -> Option<String> {
    if !resource.is_custom() {
        return schema::type_errors(&resource.schema, value);
    }
    let metadata = resource.schema.properties.get("metadata")?;
    schema::type_errors(metadata, &value["metadata"])
}

/// Checks that the body is what the URL says, and completes what it leaves out.
fn identify(call: &Call, value: &mut Value) -> Result<()> {
    check_kind(call, value)?;
    place(call, value)
}

/// The object is of the kind and version that the URL names.
pub fn check_kind(call: &Call, value: &mut Value) -> Result<()> {
    let resource = &call.resource;
    let expected = resource.api_version();
    match value["apiVersion"].as_str().unwrap_or_default() {
        "" if resource.is_custom() => return Err(ApiError::bad_request("Object 'apiVersion' is missing")),
        "" => value["apiVersion"] = expected.into(),
        given if given != expected => {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({expected})"
            )));
        }
        _ => {}
    }
    match value["kind"].as_str().unwrap_or_default() {
        "" if resource.is_custom() => return Err(ApiError::bad_request("Object 'Kind' is missing")),
        "" => value["kind"] = resource.kind.as_str().into(),
        given if given != resource.kind => {
            return Err(ApiError::bad_request(format!(
                "{given} in version {:?} cannot be handled as a {}: converting ({given}) to ({}): unknown conversion",
                resource.version, resource.kind, resource.kind
            )));
        }
        _ => {}
    }
    if !value["metadata"].is_null() && !value["metadata"].is_object() {
        return Err(ApiError::bad_request("metadata is not an object"));
    }
    Ok(())
}

/// Checks that the body lies where the URL says.
pub fn place(call: &Call, value: &mut Value) -> Result<()> {
    let resource = &call.resource;
    let namespace = meta::text(value, "namespace").to_string();
    if resource.namespaced {
        if !namespace.is_empty() && namespace != call.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    } else if !namespace.is_empty() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let name = meta::name(value).to_string();
    if !call.name.is_empty() && name != call.name {
        if !name.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                call.name
            )));
        }
        if let Some(members) = meta::members(value) {
            members.insert("name".into(), call.name.as_str().into());
        }
    }
    if resource.namespaced
        && let Some(members) = meta::members(value)
    {
        members.insert("namespace".into(), call.namespace.as_str().into());
    }
    Ok(())
}

pub fn nameless(call: &Call) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        call.name
    ))
}

/// Fills what the client left out.
pub fn default(resource: &Resource, value: &mut Value) {
    schema::apply_defaults(&resource.schema, value);
    if let Source::Builtin(kind) = resource.source {
        (kind.default)(value);
    }
}

/// Everything that is wrong with an object that is about to be stored.
pub fn validate(resource: &Resource, value: &Value, old: Option<&Value>) -> Result<()> {
    let mut errors = meta::validate(value, old, name_rule(resource));
    match resource.source {
        Source::Builtin(kind) => {
            if !resource.is_crd() {
                meta::validate_qualified_finalizers(value, &mut errors);
            }
            (kind.validate)(value, old, &mut errors);
        }
        Source::Custom(_) => {
            errors.extend(negative_replicas(resource, value));
            errors.extend(schema::validate(&resource.schema, value, old));
        }
    }
    refuse(resource, meta::name(value), &errors)
}

/// What the `scale` subresource shows must be a count.
fn negative_replicas(resource: &Resource, value: &Value) -> Option<FieldError> {
    let path = &resource.scale.as_ref()?.spec_replicas;
    let count = value.pointer(path)?.as_i64().filter(|count| *count < 0)?;
    Some(FieldError::invalid(path.replace('/', "."), count, "should be a non-negative integer"))
}

pub fn refuse(resource: &Resource, name: &str, errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(resource.kind_subject(name), errors)) }
}

/// Custom resources are named as most kinds are.
fn name_rule(resource: &Resource) -> NameRule {
    resource.builtin().map_or(NameRule::Subdomain, |kind| kind.name_rule)
}

/// Whether anything that a controller acts on differs: all but metadata and, where it is apart, status.
pub fn spec_changed(resource: &Resource, old: &Value, new: &Value) -> bool {
    let relevant = |key: &str| key != "metadata" && !(key == "status" && resource.has_status);
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old != new };
    old.keys().chain(new.keys()).any(|key| relevant(key) && old.get(key) != new.get(key))
}
