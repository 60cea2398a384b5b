//! Ownership as a whole: stories of updates and of applies, and what holds for all of them.

#![expect(clippy::needless_pass_by_value, reason = "the stories pass literals")]

mod applies;
mod properties;
mod updates;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::WriteContext;

fn at(manager: &str, second: i64) -> WriteContext<'_> {
    WriteContext {
        manager,
        api_version: "v1",
        subresource: "",
        now: Timestamp::from_second(second).unwrap(),
        zero: None,
    }
}

fn web(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Web", "metadata": {"name": "web", "uid": "1"}, "spec": spec})
}

fn spec() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let container = (prop::option::of(0..3i32), prop::option::of(prop::collection::vec(0..3i32, 0..3)));
    let containers = prop::collection::btree_map(name(), container, 0..4).prop_map(|items| {
        let item = |(name, (image, args)): (&str, (Option<i32>, Option<Vec<i32>>))| {
            let mut item = json!({"name": name});
            if let Some(image) = image {
                item["image"] = json!(image.to_string());
            }
            if let Some(args) = args {
                item["args"] = json!(args);
            }
            item
        };
        items.into_iter().map(item).collect::<Value>()
    });
    let text_map = || prop::collection::btree_map(name(), 0..3i32, 0..3).prop_map(|m| json!(m));
    let free = prop_oneof![
        text_map(),
        (name(), text_map()).prop_map(|(k, v)| json!({k: v})),
        Just(json!({"a": [1]}))
    ];
    (
        prop::option::of(0..3i32),
        prop::option::of(containers),
        prop::option::of(text_map()),
        prop::option::of(free),
    )
        .prop_map(|(replicas, containers, selector, free)| {
            let mut spec = json!({});
            let parts = [
                ("replicas", replicas.map(Value::from)),
                ("containers", containers),
                ("selector", selector),
                ("free", free),
            ];
            for (name, part) in parts {
                if let Some(part) = part {
                    spec[name] = part;
                }
            }
            spec
        })
}

/// A web with labels and finalizers, of which any part may be missing.
fn anything() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let labels = prop::option::of(prop::collection::btree_map(name(), name(), 0..3));
    let finalizers = prop::option::of(prop::collection::btree_set(name(), 0..3));
    (spec(), labels, finalizers).prop_map(|(spec, labels, finalizers)| {
        let mut object = web(spec);
        if let Some(labels) = labels {
            object["metadata"]["labels"] = json!(labels);
        }
        if let Some(finalizers) = finalizers {
            object["metadata"]["finalizers"] = json!(finalizers);
        }
        object
    })
}
