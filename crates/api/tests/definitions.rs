//! What a client sees of each kind, as a text that can be reviewed: names, columns, fields, enums, rules.
//! A change of any of these changes the API and shows up as a changed snapshot.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use granary_api::crds;
use granary_api::k8s::CustomResourceDefinition;
use serde_json::Value;

#[test]
fn the_api_of_every_kind_is_as_it_was() {
    for definition in crds::all() {
        let name = definition.metadata.name.clone().unwrap();
        insta::assert_snapshot!(name, summary(&definition));
    }
}

#[test]
fn the_kinds_come_in_the_same_order() {
    let names: Vec<String> = crds::all().into_iter().map(|crd| crd.metadata.name.unwrap()).collect();
    insta::assert_snapshot!("order", names.join("\n"));
}

fn summary(definition: &CustomResourceDefinition) -> String {
    let (spec, version) = (&definition.spec, &definition.spec.versions[0]);
    let list = |names: &Option<Vec<String>>| names.as_deref().unwrap_or_default().join(", ");
    let status = version.subresources.as_ref().is_some_and(|end_points| end_points.status.is_some());
    let mut text = format!(
        "{} {} ({})\nnames: {}, {}; short: {}; categories: {}\nstatus end point: {status}\n",
        spec.names.kind,
        version.name,
        spec.scope,
        spec.names.plural,
        spec.names.singular.as_deref().unwrap_or_default(),
        list(&spec.names.short_names),
        list(&spec.names.categories),
    );
    for column in version.additional_printer_columns.iter().flatten() {
        let priority = column.priority.map(|p| format!(" (priority {p})")).unwrap_or_default();
        writeln!(text, "column: {} {} {}{priority}", column.name, column.type_, column.json_path).unwrap();
    }
    let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    describe(&mut text, &serde_json::to_value(schema).unwrap(), 0);
    text
}

/// One line for each member; `!` marks the required ones.
fn describe(text: &mut String, schema: &Value, depth: usize) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let mark = if required.contains(&Value::from(name.as_str())) { "!" } else { "" };
        let indent = "  ".repeat(depth);
        writeln!(text, "{indent}{name}{mark}: {}{}", type_of(member), constraints(member)).unwrap();
        describe(text, innermost(member), depth + 1);
    }
}

/// The schema of what is finally in a list or map.
fn innermost(schema: &Value) -> &Value {
    match (&schema["items"], &schema["additionalProperties"]) {
        (Value::Null, Value::Null) => schema,
        (Value::Null, each) | (each, _) => innermost(each),
    }
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "quantity".to_owned();
    }
    let plain = schema["type"].as_str().unwrap();
    match (plain, &schema["additionalProperties"], schema["format"].as_str()) {
        ("array", _, _) => format!("[{}]", type_of(&schema["items"])),
        ("object", Value::Null, _) => "object".to_owned(),
        ("object", each, _) => format!("{{{}}}", type_of(each)),
        (_, _, Some(format)) => format!("{plain}/{format}"),
        _ => plain.to_owned(),
    }
}

fn constraints(schema: &Value) -> String {
    let mut text = String::new();
    let values = schema["enum"].as_array().or(innermost(schema)["enum"].as_array());
    if let Some(values) = values {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        write!(text, " one of {values:?}").unwrap();
    }
    for keyword in ["default", "minimum", "maximum", "minLength", "maxItems"] {
        if !schema[keyword].is_null() {
            write!(text, " {keyword} {}", schema[keyword]).unwrap();
        }
    }
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        write!(text, " rule ({})", rule["rule"].as_str().unwrap()).unwrap();
    }
    text
}
