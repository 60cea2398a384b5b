//! Every definition is one that a Kubernetes API server accepts: a structural schema, defaults that fit it,
//! names that are free and valid. Each rule below is one of the server's, or one of ours from `lib.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use granary_api::{crds, names};
use serde_json::{Map, Value, json};

/// Keywords the server refuses anywhere, or that a structural schema would have to repeat outside.
const FORBIDDEN: [&str; 16] = [
    "$ref",
    "$schema",
    "$defs",
    "definitions",
    "id",
    "patternProperties",
    "additionalItems",
    "dependencies",
    "uniqueItems",
    "discriminator",
    "const",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "deprecated",
];

/// Columns whose field is in no schema, neither upstream's nor ours: they stay empty.
const EMPTY_COLUMNS: [&str; 1] = [".status.error.message of VirtualMachineRestore"];

fn definitions() -> &'static [Value] {
    static DEFINITIONS: LazyLock<Vec<Value>> =
        LazyLock::new(|| crds::all().into_iter().map(|crd| serde_json::to_value(crd).unwrap()).collect());
    &DEFINITIONS
}

fn schema_of(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Calls `visit` for the schema and every schema in it, with the path that leads there.
fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Map<String, Value>)) {
    let node = schema.as_object().unwrap_or_else(|| panic!("{path} is not a schema: {schema}"));
    visit(path, node);
    for (name, child) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(child, &format!("{path}.{name}"), visit);
    }
    for (keyword, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(child) = node.get(keyword) {
            walk(child, &format!("{path}{mark}"), visit);
        }
    }
}

fn walk_all(mut visit: impl FnMut(&str, &Map<String, Value>)) {
    for definition in definitions() {
        let root = format!("{}:", definition["metadata"]["name"].as_str().unwrap());
        walk(schema_of(definition), &root, &mut visit);
    }
}

fn text<'a>(node: &'a Map<String, Value>, keyword: &str) -> Option<&'a str> {
    node.get(keyword).and_then(Value::as_str)
}

#[test]
fn every_node_has_one_type_and_only_keywords_a_server_takes() {
    walk_all(|path, node| {
        for keyword in FORBIDDEN {
            assert!(!node.contains_key(keyword), "{path} has {keyword}");
        }
        let int_or_string = node.get("x-kubernetes-int-or-string") == Some(&json!(true));
        match node.get("type") {
            None => assert!(int_or_string, "{path} has no type"),
            Some(Value::String(kind)) => {
                assert!(!int_or_string, "{path} has a type and is int-or-string");
                let known = ["object", "array", "string", "integer", "number", "boolean"];
                assert!(known.contains(&kind.as_str()), "{path} has type {kind}");
            }
            Some(other) => panic!("{path} has type {other}"),
        }
    });
}

#[test]
fn objects_have_members_or_a_map_and_lists_have_items() {
    walk_all(|path, node| {
        let (properties, map) = (node.contains_key("properties"), node.get("additionalProperties"));
        assert!(!(properties && map.is_some()), "{path} has properties and additionalProperties");
        assert!(map.is_none_or(Value::is_object), "{path} has {map:?} for additionalProperties");
        assert_eq!(
            text(node, "type") == Some("array"),
            node.contains_key("items"),
            "{path}: items and array"
        );
        if properties || map.is_some() {
            assert_eq!(text(node, "type"), Some("object"), "{path} has members");
        }
        for required in node.get("required").and_then(Value::as_array).into_iter().flatten() {
            assert!(!node["properties"][required.as_str().unwrap()].is_null(), "{path} requires {required}");
        }
    });
}

#[test]
fn formats_are_ones_the_server_knows_for_the_type() {
    walk_all(|path, node| {
        let allowed: &[&str] = match text(node, "type") {
            Some("integer") => &["int32", "int64"],
            Some("string") => &["date-time", "byte"],
            _ => &[],
        };
        let format = text(node, "format");
        assert!(format.is_none_or(|format| allowed.contains(&format)), "{path} has format {format:?}");
    });
}

#[test]
fn nothing_below_the_root_is_pruned() {
    walk_all(|path, node| {
        let root = path.ends_with(':');
        if !root && text(node, "type") == Some("object") && !node.contains_key("additionalProperties") {
            let keeps = node.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
            assert!(keeps, "{path} drops what it does not know");
        }
    });
}

#[test]
fn defaults_fit_their_schema_and_are_not_kept_out_by_null() {
    walk_all(|path, node| {
        let Some(default) = node.get("default") else { return };
        assert!(!node.contains_key("nullable"), "{path} may be null instead of its default");
        let fits = match text(node, "type").unwrap() {
            "string" => default.is_string(),
            "integer" => default.is_i64(),
            "array" => default == &json!([]),
            "object" => default == &json!({}) && !node.contains_key("required"),
            "boolean" => default.is_boolean(),
            other => panic!("{path}: default of {other}"),
        };
        assert!(fits, "{path} has default {default}");
        let allowed = node.get("enum").and_then(Value::as_array);
        assert!(allowed.is_none_or(|values| values.contains(default)), "{path}: {default} is not allowed");
    });
}

#[test]
fn enums_are_distinct_strings() {
    let mut enums = 0;
    walk_all(|path, node| {
        let Some(values) = node.get("enum").and_then(Value::as_array) else { return };
        enums += 1;
        assert_eq!(text(node, "type"), Some("string"), "{path}");
        let distinct: BTreeSet<&str> = values
            .iter()
            .map(|value| value.as_str().unwrap_or_else(|| panic!("{path} allows {value}")))
            .collect();
        assert_eq!(distinct.len(), values.len(), "{path} repeats a value");
    });
    assert!(enums > 40, "found only {enums} enums");
}

#[test]
fn null_is_for_what_go_writes_as_null() {
    walk_all(|path, node| {
        if node.get("nullable") == Some(&json!(true)) {
            let list = text(node, "type") == Some("array");
            let map = node.contains_key("additionalProperties");
            let time = text(node, "format") == Some("date-time");
            assert!(list || map || time, "{path} may be null");
        }
    });
}

#[test]
fn rules_have_a_text_and_a_message() {
    let mut rules = 0;
    walk_all(|path, node| {
        for rule in node.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten() {
            rules += 1;
            for part in ["rule", "message"] {
                assert!(rule[part].as_str().is_some_and(|text| !text.is_empty()), "{path}: {rule}");
            }
        }
    });
    assert!(rules > 15, "found only {rules} rules");
}

#[test]
fn lists_that_are_merged_have_their_key_in_every_item() {
    let mut merged = 0;
    walk_all(|path, node| {
        if text(node, "x-kubernetes-list-type") == Some("map") {
            merged += 1;
            for key in node["x-kubernetes-list-map-keys"].as_array().unwrap() {
                let required = node["items"]["required"].as_array().is_some_and(|names| names.contains(key));
                assert!(required, "{path}: an item may lack {key}");
            }
        }
    });
    assert_eq!(merged, 2);
}

#[test]
fn descriptions_are_short() {
    walk_all(|path, node| {
        let description = text(node, "description").unwrap_or_default();
        assert!(description.len() <= 120 && !description.contains('\n'), "{path}: {description}");
    });
    let size = serde_json::to_vec(definitions()).unwrap().len();
    assert!(size < 160 * 1024, "the definitions have grown to {size} bytes");
}

#[test]
fn columns_show_fields_that_exist() {
    for definition in definitions() {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array();
        for column in columns.into_iter().flatten() {
            let path = column["jsonPath"].as_str().unwrap();
            if path.starts_with(".metadata.") || EMPTY_COLUMNS.contains(&format!("{path} of {kind}").as_str())
            {
                continue;
            }
            let mut node = schema_of(definition);
            for step in
                path.trim_start_matches('.').split("].").flat_map(|part| match part.split_once("[?(") {
                    Some((list, _)) => list.split('.').chain(Some("[]")).collect::<Vec<_>>(),
                    None => part.split('.').collect(),
                })
            {
                node = if step == "[]" { &node["items"] } else { &node["properties"][step] };
                assert!(node.is_object(), "{kind}: column {path} leads nowhere at {step}");
            }
        }
    }
}

#[test]
fn names_are_valid_and_taken_once() {
    let mut taken = BTreeSet::new();
    for definition in definitions() {
        let spec = &definition["spec"];
        let (group, plural) = (spec["group"].as_str().unwrap(), spec["names"]["plural"].as_str().unwrap());
        assert_eq!(definition["metadata"]["name"], format!("{plural}.{group}"));
        assert!(names::dns1123_subdomain(group).is_empty() && names::dns1035_label(plural).is_empty());
        let short = spec["names"]["shortNames"].as_array().into_iter().flatten();
        for name in short.chain([&spec["names"]["plural"], &spec["names"]["singular"]]) {
            assert!(
                taken.insert((group.to_owned(), name.as_str().unwrap().to_owned())),
                "{group} has {name} twice"
            );
        }
        if group.ends_with(".k8s.io") {
            assert!(
                definition["metadata"]["annotations"]["api-approved.kubernetes.io"].is_string(),
                "{plural}"
            );
        }
    }
}

#[test]
fn the_yaml_stream_says_the_same() {
    let stream = crds::yaml().unwrap();
    let documents: Vec<Value> =
        stream.split("---\n").skip(1).map(|d| serde_saphyr::from_str(d).unwrap()).collect();
    assert_eq!(documents, definitions());
}
