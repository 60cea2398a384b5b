//! Event: something that happened to an object, as the core group shows it.
//!
//! Owns defaults, selectable fields and printed cells of events. Must never merge or expire them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{at, fill, int_at, is_set, name, str_at};
use super::human::since;
use super::{Builtin, Column, NameRule, PLAIN, column};

pub static EVENT: Builtin = Builtin {
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    namespaced: true,
    name_rule: NameRule::PathSegment,
    create_on_update: true,
    schema: Event::json_schema,
    default,
    columns: COLUMNS,
    row,
    fields,
    ..PLAIN
};

pub const COLUMNS: &[Column] = &[
    Column::text("Last Seen", "When it happened last."),
    Column::text("Type", "Normal or Warning."),
    Column::text("Reason", "What happened, in one word."),
    Column::text("Object", "The object that it happened to."),
    Column::text("Subobject", "The part of the object, if only a part is meant.").wide(),
    Column::text("Source", "Who reported it.").wide(),
    Column::text("Message", "What happened, for people."),
    Column::text("First Seen", "When it happened first.").wide(),
    Column::text("Count", "How often it happened.").wide(),
    Column { priority: 1, ..column::NAME },
];

fn default(event: &mut Value) {
    fill(event, "/reportingComponent", "");
    fill(event, "/reportingInstance", "");
}

pub fn row(event: &Value, now: Timestamp) -> Vec<Value> {
    let mut first = at(event, "/firstTimestamp");
    if first.is_null() {
        first = at(event, "/eventTime");
    }
    let mut last = at(event, "/lastTimestamp");
    if last.is_null() {
        last = first;
    }
    let mut count = int_at(event, "/count").filter(|n| *n != 0).unwrap_or(1);
    if is_set(event, "/series") {
        last = at(event, "/series/lastObservedTime");
        count = int_at(event, "/series/count").unwrap_or_default();
    }
    vec![
        since(last, now).into(),
        str_at(event, "/type").into(),
        str_at(event, "/reason").into(),
        target(event).into(),
        str_at(event, "/involvedObject/fieldPath").into(),
        source(event).into(),
        str_at(event, "/message").trim().into(),
        since(first, now).into(),
        count.into(),
        name(event).into(),
    ]
}

fn target(event: &Value) -> String {
    let kind = str_at(event, "/involvedObject/kind").to_lowercase();
    match str_at(event, "/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let component = first_of(event, "/source/component", "/reportingComponent");
    match first_of(event, "/source/host", "/reportingInstance") {
        "" => component.into(),
        instance => format!("{component}, {instance}"),
    }
}

fn first_of<'a>(event: &'a Value, preferred: &str, otherwise: &str) -> &'a str {
    match str_at(event, preferred) {
        "" => str_at(event, otherwise),
        text => text,
    }
}

fn fields(event: &Value) -> Vec<(&'static str, String)> {
    [
        ("involvedObject.kind", str_at(event, "/involvedObject/kind")),
        ("involvedObject.namespace", str_at(event, "/involvedObject/namespace")),
        ("involvedObject.name", str_at(event, "/involvedObject/name")),
        ("involvedObject.uid", str_at(event, "/involvedObject/uid")),
        ("involvedObject.apiVersion", str_at(event, "/involvedObject/apiVersion")),
        ("involvedObject.resourceVersion", str_at(event, "/involvedObject/resourceVersion")),
        ("involvedObject.fieldPath", str_at(event, "/involvedObject/fieldPath")),
        ("reason", str_at(event, "/reason")),
        ("reportingComponent", str_at(event, "/reportingComponent")),
        ("source", first_of(event, "/source/component", "/reportingComponent")),
        ("type", str_at(event, "/type")),
    ]
    .map(|(field, value)| (field, value.to_string()))
    .to_vec()
}
