//! Generators for property tests: small JSON values, and schemas whose field names they are likely to hit.
//!
//! Owns nothing of the product.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[abc]", Just("spec".to_string()), Just("metadata".to_string()), Just("kind".to_string())]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5i64..5).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c0-9:.-]{0,6}".prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ]
}

/// Any JSON, keywords of schemas included.
pub fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![3 => name(), 1 => keyword()];
    scalar().prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn keyword() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "required",
        "default",
        "enum",
        "pattern",
        "anyOf",
        "not",
        "minimum",
        "additionalProperties",
        "nullable",
        "format",
        "x-kubernetes-list-type",
        "x-kubernetes-validations",
        "rule",
    ])
    .prop_map(String::from)
}

/// Schemas in which every keyword has a value of the right type, sensible or not.
pub fn any_schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let object = (
            prop::collection::btree_map(name(), inner.clone(), 0..4),
            extras(),
            prop::option::of(inner.clone()),
        )
            .prop_map(|(properties, mut node, values)| {
                node.insert("type".into(), "object".into());
                node.insert("properties".into(), Value::Object(properties.into_iter().collect()));
                if let Some(values) = values {
                    node.insert("additionalProperties".into(), values);
                }
                Value::Object(node)
            });
        let list_type = prop::sample::select(vec!["atomic", "set", "map"]);
        let array = (inner.clone(), extras(), list_type).prop_map(|(items, mut node, list)| {
            node.insert("type".into(), "array".into());
            node.insert("items".into(), items);
            node.insert("x-kubernetes-list-type".into(), list.into());
            node.insert("x-kubernetes-list-map-keys".into(), json!(["a"]));
            Value::Object(node)
        });
        let choice = prop::sample::select(vec!["anyOf", "oneOf", "allOf"]);
        let branches = (choice, prop::collection::vec(inner.clone(), 0..3), inner)
            .prop_map(|(word, list, not)| json!({word: list, "not": not}));
        prop_oneof![3 => object, 2 => array, 1 => branches]
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["string", "integer", "number", "boolean", "object", "array"]);
    let format =
        prop::sample::select(vec!["int32", "date-time", "byte", "ipv4", "cidr", "uri", "duration", "email"]);
    (prop::option::of(kind), extras(), prop::option::of(format), -3.0..3.0f64, 0..4i64).prop_map(
        |(kind, mut node, format, bound, size)| {
            if let Some(kind) = kind {
                node.insert("type".into(), kind.into());
            }
            if let Some(format) = format {
                node.insert("format".into(), format.into());
            }
            node.insert("minimum".into(), bound.into());
            node.insert("multipleOf".into(), bound.into());
            node.insert("maxLength".into(), size.into());
            node.insert("minItems".into(), size.into());
            node.insert("maxProperties".into(), size.into());
            node.insert("pattern".into(), "^[a-c]*$".into());
            Value::Object(node)
        },
    )
}

fn extras() -> impl Strategy<Value = Map<String, Value>> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (flags, prop::option::of(scalar()), prop::option::of(prop::collection::vec(scalar(), 1..3))).prop_map(
        |((nullable, preserve, embedded, int_or_string), default, choices)| {
            let mut node = Map::new();
            node.insert("nullable".into(), nullable.into());
            node.insert("x-kubernetes-preserve-unknown-fields".into(), (preserve && nullable).into());
            node.insert("x-kubernetes-embedded-resource".into(), (embedded && preserve).into());
            node.insert("x-kubernetes-int-or-string".into(), (int_or_string && embedded && preserve).into());
            if let Some(default) = default {
                node.insert("default".into(), default);
            }
            if let Some(choices) = choices {
                node.insert("enum".into(), choices.into());
            }
            node
        },
    )
}
