//! Server-side tables, the form in which `kubectl get` asks for objects.
//!
//! Must never change an object; a table is a view.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::builtin::human;
use crate::jsonpath::JsonPath;
use crate::meta;
use crate::registry::{Custom, CustomColumn, Resource, Source};

/// A `Table` of these objects. `include` is `None`, `Metadata` (the default) or `Object`.
pub fn table(resource: &Resource, objects: &[Value], include: &str) -> Value {
    let now = Timestamp::now();
    let rows = objects.iter().map(|object| row(object, &cells(resource, object, now), include));
    of_rows(&columns(resource), &rows.collect::<Vec<_>>())
}

fn row(object: &Value, cells: &[Value], include: &str) -> Value {
    let shown = match include {
        "None" => Value::Null,
        "Object" => object.clone(),
        _ => partial(object),
    };
    json!({ "cells": cells, "object": shown })
}

fn of_rows(columns: &[Value], rows: &[Value]) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// A `Table` of one `Scale`, which looks the same for all kinds that have one.
pub fn scale_table(scale: &Value, include: &str) -> Value {
    let columns = vec![
        column("Name", "string", "name", NAME, 0),
        column("Desired", "integer", "", "Number of desired replicas", 0),
        column("Available", "integer", "", "Number of actual replicas", 0),
        column("Age", "date", "", AGE, 0),
    ];
    let age = human::age(scale, Timestamp::now());
    let cells = [
        meta::name(scale).into(),
        scale["spec"]["replicas"].clone(),
        scale["status"]["replicas"].clone(),
        age.into(),
    ];
    of_rows(&columns, &[row(scale, &cells, include)])
}

/// Only the metadata of an object.
pub fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
                    resources may allow a client to request the generation of an appropriate name automatically.";
const AGE: &str = "The time since the object was created.";

fn columns(resource: &Resource) -> Vec<Value> {
    match &resource.source {
        Source::Builtin(kind) => kind
            .columns
            .iter()
            .map(|c| column(c.name, c.kind, c.format, c.description, i64::from(c.priority)))
            .collect(),
        Source::Custom(custom) => {
            let mut columns = vec![column("Name", "string", "name", NAME, 0)];
            columns.extend(
                custom
                    .columns
                    .iter()
                    .map(|c| column(&c.name, &c.kind, &c.format, &c.description, c.priority)),
            );
            if custom.columns.is_empty() {
                columns.push(column("Age", "date", "", AGE, 0));
            }
            columns
        }
    }
}

fn column(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({ "name": name, "type": kind, "format": format, "description": description, "priority": priority })
}

fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    match &resource.source {
        Source::Builtin(kind) => (kind.row)(object, now),
        Source::Custom(custom) => custom_cells(custom, object, now),
    }
}

fn custom_cells(custom: &Custom, object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![Value::from(meta::name(object))];
    cells.extend(custom.columns.iter().map(|column| custom_cell(column, object, now)));
    if custom.columns.is_empty() {
        cells.push(human::age(object, now).into());
    }
    cells
}

fn custom_cell(column: &CustomColumn, object: &Value, now: Timestamp) -> Value {
    let Some(path) = JsonPath::parse(&column.path) else { return Value::Null };
    let found = path.find(object);
    let Some(first) = found.first() else { return Value::Null };
    match (column.kind.as_str(), first) {
        (_, Value::Null) => Value::Null,
        ("date", time) => human::since(time, now).into(),
        ("integer", number) => number.as_i64().map_or(Value::Null, Value::from),
        ("number", number) => number.as_f64().map_or(Value::Null, Value::from),
        ("boolean", flag) => flag.as_bool().map_or(Value::Null, Value::from),
        ("string", Value::String(text)) if found.len() == 1 => text.as_str().into(),
        (_, _) => {
            let texts: Vec<String> = found
                .iter()
                .map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
                .collect();
            texts.join(",").into()
        }
    }
}
