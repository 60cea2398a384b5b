//! Event, as the `events.k8s.io` group shows it: the same stored object under other field names.
//!
//! Owns the translation to and from the core form. Must never be stored in this form.

use k8s_openapi::api::events::v1::Event;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{is_zero, str_at};
use super::{Builtin, PLAIN, event};

pub static EVENTS_EVENT: Builtin = Builtin {
    group: "events.k8s.io",
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    namespaced: true,
    create_on_update: true,
    schema: Event::json_schema,
    columns: event::COLUMNS,
    row: |object, now| event::row(&events_to_core(object.clone()), now),
    fields,
    ..PLAIN
};

/// Core name first, then the name in `events.k8s.io`. All other fields are called the same.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Translates a stored event for a client of `events.k8s.io/v1`.
pub fn core_to_events(mut event: Value) -> Value {
    if let Some(fields) = event.as_object_mut() {
        for (core, events) in RENAMED {
            if let Some(value) = fields.remove(core).filter(|v| !is_zero(v)) {
                fields.insert(events.into(), value);
            }
        }
        fields.insert("apiVersion".into(), "events.k8s.io/v1".into());
    }
    event
}

/// Translates what a client of `events.k8s.io/v1` sent to the form that is stored.
pub fn events_to_core(mut event: Value) -> Value {
    if let Some(fields) = event.as_object_mut() {
        for (core, events) in RENAMED {
            if let Some(value) = fields.remove(events) {
                fields.insert(core.into(), value);
            }
        }
        fields.insert("apiVersion".into(), "v1".into());
    }
    event
}

fn fields(event: &Value) -> Vec<(&'static str, String)> {
    [
        ("regarding.kind", str_at(event, "/regarding/kind")),
        ("regarding.namespace", str_at(event, "/regarding/namespace")),
        ("regarding.name", str_at(event, "/regarding/name")),
        ("regarding.uid", str_at(event, "/regarding/uid")),
        ("regarding.apiVersion", str_at(event, "/regarding/apiVersion")),
        ("regarding.resourceVersion", str_at(event, "/regarding/resourceVersion")),
        ("regarding.fieldPath", str_at(event, "/regarding/fieldPath")),
        ("reason", str_at(event, "/reason")),
        ("reportingController", str_at(event, "/reportingController")),
        ("type", str_at(event, "/type")),
    ]
    .map(|(field, value)| (field, value.to_string()))
    .to_vec()
}
