//! Event: something that happened to an object, as the core group shows it.
//!
//! Owns defaults, selectable fields and printed cells of events. Must never merge or expire them.

use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{at, fill, int_at, is_set, name, str_at};
use super::field::Field;
use super::human::since;
use super::{Builtin, Column, NameRule, PLAIN, column};
use crate::error::FieldError;

const MAX_WORD: usize = 128;
const MAX_MESSAGE: usize = 1024;

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
    validate: |event, _, errors| check(event, "reportingComponent", errors),
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

/// The rules that both groups have. They differ in what they call the reporting controller.
pub fn check(event: &Value, controller_name: &str, errors: &mut Vec<FieldError>) {
    let root = Field::root(event);
    let namespace = root.at("metadata.namespace");
    let involved = root.at("involvedObject.namespace");
    let agrees = match (root.at("eventTime").is_set(), involved.text()) {
        (false, "") => matches!(namespace.text(), "" | "default"),
        (false, other) => other == namespace.text(),
        (true, "") => matches!(namespace.text(), "default" | "kube-system"),
        (true, _) => true,
    };
    if !agrees {
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid(involved.path.as_str(), involved.text(), detail));
    }
    if root.at("eventTime").is_set() {
        check_new_form(&root, controller_name, errors);
    }
    namespace.known_as("namespace").follow(names::dns1123_subdomain, errors);
}

/// An event with `eventTime` says who reports what.
fn check_new_form(root: &Field, controller_name: &str, errors: &mut Vec<FieldError>) {
    let controller = root.at("reportingComponent").known_as(controller_name);
    controller.need(errors);
    controller.follow(names::label_key, errors);
    for field in ["reportingInstance", "action", "reason"] {
        let word = root.at(field);
        word.need(errors);
        check_length(&word, MAX_WORD, errors);
    }
    check_length(&root.at("message"), MAX_MESSAGE, errors);
}

fn check_length(text: &Field, most: usize, errors: &mut Vec<FieldError>) {
    if text.text().len() > most {
        let detail = format!("can have at most {most} characters");
        errors.push(FieldError::invalid(text.path.as_str(), "", detail));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{CREATED, cells, refusals, stored, with};
    use serde_json::json;

    fn event() -> Value {
        json!({
            "metadata": stored("data.17"), "type": "Warning", "reason": "Failed", "message": " no space \n",
            "involvedObject": { "kind": "Volume", "namespace": "default", "name": "data", "fieldPath": "spec.x" },
            "source": { "component": "provisioner", "host": "node-1" },
            "firstTimestamp": "2024-05-01T11:00:00Z", "lastTimestamp": CREATED, "count": 3,
        })
    }

    #[test]
    fn an_event_lives_with_its_object() {
        assert_eq!(refusals(&EVENT, &event()), [""; 0]);
        let strayed = with(event(), "/involvedObject/namespace", json!("other"));
        assert_eq!(
            refusals(&EVENT, &strayed),
            ["involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"]
        );
    }

    #[test]
    fn an_event_of_the_new_form_says_who_and_what() {
        let mut modern = with(event(), "/eventTime", json!("2024-05-01T12:00:00.000000Z"));
        modern["message"] = json!("x".repeat(1025));
        let texts = refusals(&EVENT, &modern);
        assert_eq!(texts[0], "reportingComponent: Required value");
        let rest = [
            "reportingInstance: Required value",
            "action: Required value",
            "message: Invalid value: \"\": can have at most 1024 characters",
        ];
        assert_eq!(texts[texts.len() - 3..], rest);
    }

    #[test]
    fn the_row_reads_like_a_log_line() {
        assert_eq!(
            cells(&EVENT, &event()),
            [
                "5m12s",
                "Warning",
                "Failed",
                "volume/data",
                "spec.x",
                "provisioner, node-1",
                "no space",
                "60m",
                "3",
                "data.17"
            ]
        );
        let single = json!({
            "involvedObject": { "kind": "Node" }, "eventTime": CREATED, "reportingComponent": "kubelet",
            "series": { "count": 5, "lastObservedTime": "2024-05-01T11:59:30Z" },
        });
        assert_eq!(cells(&EVENT, &single), ["30s", "", "", "node", "", "kubelet", "", "5m12s", "5", ""]);
    }

    #[test]
    fn selectors_see_the_object_and_the_source() {
        let fields = (EVENT.fields)(&event());
        assert!(fields.contains(&("involvedObject.name", "data".into())));
        assert!(fields.contains(&("source", "provisioner".into())));
    }
}
