//! Any text as query string, selector, path or JSONPath: parsed without a panic, and matched against an object.
#![no_main]

use granary_apiserver::http::path::Place;
use granary_apiserver::http::query::Query;
use granary_apiserver::jsonpath::JsonPath;
use granary_apiserver::selector::{FieldSelector, LabelSelector};
use libfuzzer_sys::fuzz_target;

const OBJECT: &str = r#"{"metadata":{"labels":{"app":"web","n":"7"}},"spec":{"list":[{"a":1},{"a":[2]}]}}"#;

fuzz_target!(|text: &str| {
    drop(Query::parse(text));
    Place::parse(text);
    if let Ok(labels) = LabelSelector::parse(text) {
        labels.matches_json(OBJECT.as_bytes());
    }
    if let Ok(fields) = FieldSelector::parse(text) {
        fields.matches(|field| (field == "metadata.name").then_some("web"));
    }
    if let Some(path) = JsonPath::parse(text) {
        let object: serde_json::Value = serde_json::from_str(OBJECT).expect("the object is JSON");
        path.find(&object);
    }
});
