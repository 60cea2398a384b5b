//! Event, as the `events.k8s.io` group shows it: the same stored object under other field names.
//!
//! Owns the translation to and from the core form. Must never be stored in this form.

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{is_zero, same_at, str_at};
use super::field::{Field, IMMUTABLE};
use super::human::parse;
use super::{Builtin, PLAIN, event};
use crate::error::FieldError;

pub static EVENTS_EVENT: Builtin = Builtin {
    group: "events.k8s.io",
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    namespaced: true,
    create_on_update: true,
    schema: Event::json_schema,
    validate,
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

/// Refusals name the fields of the core form, as in Kubernetes.
fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let new = events_to_core(new.clone());
    event::check(&new, "reportingController", errors);
    match old {
        None => check_create(&new, errors),
        Some(old) => check_update(&new, &events_to_core(old.clone()), errors),
    }
}

fn check_create(new: &Value, errors: &mut Vec<FieldError>) {
    let root = Field::root(new);
    check_series(&root, errors);
    if !root.at("eventTime").is_set() {
        errors.push(root.at("eventTime").required(""));
    }
    let kind = str_at(new, "/type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if !root.at(field).is_empty() {
            errors.push(FieldError::invalid(field, "", "needs to be unset"));
        }
    }
}

fn check_series(root: &Field, errors: &mut Vec<FieldError>) {
    let series = root.at("series");
    if !series.is_set() {
        return;
    }
    if series.at("count").int().unwrap_or_default() < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if !series.at("lastObservedTime").is_set() {
        errors.push(series.at("lastObservedTime").required(""));
    }
}

/// Only the series of an event goes on.
fn check_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (root, stored) = (Field::root(new), Field::root(old));
    if !same_at(new, old, "/series") {
        check_series(&root, errors);
    }
    for field in
        ["involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"]
    {
        root.at(field).unchanged(&stored.at(field), errors);
    }
    let microseconds = |event: &Field| parse(event.at("eventTime").value).map(Timestamp::as_microsecond);
    if microseconds(&root) != microseconds(&stored) {
        errors.push(FieldError::invalid("eventTime", root.at("eventTime").value.clone(), IMMUTABLE));
    }
    for field in ["action", "related"] {
        root.at(field).unchanged(&stored.at(field), errors);
    }
    let controller = root.at("reportingComponent").known_as("reportingController");
    controller.unchanged(&stored.at("reportingComponent"), errors);
    root.at("reportingInstance").unchanged(&stored.at("reportingInstance"), errors);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{CREATED, cells, refusals, stored, update_refusals, with};
    use serde_json::json;

    fn event() -> Value {
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": stored("data.17"),
            "eventTime": CREATED, "type": "Normal", "reason": "Bound", "action": "Bind", "note": "bound to pv-1",
            "regarding": { "kind": "PersistentVolumeClaim", "namespace": "default", "name": "data" },
            "reportingController": "granary.io/binder", "reportingInstance": "binder-0",
        })
    }

    #[test]
    fn both_forms_are_one_object() {
        let core = events_to_core(event());
        assert_eq!(core["apiVersion"], "v1");
        assert_eq!(core["message"], "bound to pv-1");
        assert_eq!(core["involvedObject"]["name"], "data");
        assert_eq!(core["reportingComponent"], "granary.io/binder");
        assert_eq!(core_to_events(core), event());

        let old_form = json!({
            "source": { "component": "kubelet" }, "firstTimestamp": CREATED, "lastTimestamp": CREATED, "count": 2,
            "reportingComponent": "",
        });
        let translated = json!({
            "apiVersion": "events.k8s.io/v1", "deprecatedSource": { "component": "kubelet" },
            "deprecatedFirstTimestamp": CREATED, "deprecatedLastTimestamp": CREATED, "deprecatedCount": 2,
        });
        assert_eq!(core_to_events(old_form), translated);
    }

    #[test]
    fn new_events_are_of_the_new_form() {
        assert_eq!(refusals(&EVENTS_EVENT, &event()), [""; 0]);
        let mut bad = with(event(), "/type", json!("Bad"));
        bad["deprecatedCount"] = json!(2);
        bad["series"] = json!({ "count": 1 });
        assert_eq!(
            refusals(&EVENTS_EVENT, &bad),
            [
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
                "type: Invalid value: \"\": has invalid value: Bad",
                "count: Invalid value: \"\": needs to be unset",
            ]
        );
    }

    #[test]
    fn only_the_series_goes_on() {
        let again = with(event(), "/series", json!({ "count": 2, "lastObservedTime": CREATED }));
        assert_eq!(update_refusals(&EVENTS_EVENT, &event(), &again), [""; 0]);
        let finer = with(event(), "/eventTime", json!("2024-05-01T11:54:48.0000001Z"));
        assert_eq!(update_refusals(&EVENTS_EVENT, &event(), &finer), [""; 0]);
        let rewritten = with(event(), "/note", json!("never mind"));
        assert_eq!(
            update_refusals(&EVENTS_EVENT, &event(), &rewritten),
            ["message: Invalid value: \"never mind\": field is immutable"]
        );
    }

    #[test]
    fn the_row_is_that_of_a_core_event() {
        let row = cells(&EVENTS_EVENT, &event());
        assert_eq!(row[3], "persistentvolumeclaim/data");
        assert_eq!(row[5], "granary.io/binder, binder-0");
        let fields = (EVENTS_EVENT.fields)(&event());
        assert!(fields.contains(&("regarding.name", "data".into())));
    }
}
