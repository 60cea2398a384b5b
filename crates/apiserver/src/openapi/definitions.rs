//! The schemas of a document: kinds, their lists, and the types they are made of.
//!
//! Owns naming and the translation into one dialect. Must never lose a description.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ListMeta, ObjectMeta, Status};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::{Described, Dialect, Source, v2_crd};
use crate::schema::{OBJECT_META_NAME, definition_name, table};

pub const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const GVK: &str = "x-kubernetes-group-version-kind";

const METADATA: &str = "Standard object's metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const API_VERSION: &str = "The version of the schema that this object follows. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "The kind of resource that this object is, in CamelCase; it cannot be changed. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// All definitions that these kinds need, by name.
pub fn definitions(kinds: &[Described<'_>], dialect: Dialect) -> Map<String, Value> {
    let mut collector = Collector { dialect, generator: SchemaGenerator::default(), done: BTreeMap::new() };
    collector.common();
    for kind in kinds {
        collector.kind(kind);
    }
    collector.done.into_iter().collect()
}

struct Collector {
    dialect: Dialect,
    generator: SchemaGenerator,
    done: BTreeMap<String, Value>,
}

impl Collector {
    /// Types that operations speak of, whatever the kinds.
    fn common(&mut self) {
        let core = |kind: &str| json!([{"group": "", "version": "v1", "kind": kind}]);
        for (reference, gvk) in [
            (self.generator.subschema_for::<ObjectMeta>(), None),
            (self.generator.subschema_for::<ListMeta>(), None),
            (self.generator.subschema_for::<Status>(), Some(core("Status"))),
            (self.generator.subschema_for::<DeleteOptions>(), Some(core("DeleteOptions"))),
        ] {
            let Some(name) = referenced(reference.as_value()) else { continue };
            self.close_over(&name);
            if let (Some(gvk), Some(definition)) = (gvk, self.done.get_mut(&name)) {
                definition[GVK] = gvk;
            }
        }
        let patch = json!({
            "description": "A change to an object, in the form that the content type of the request says.",
            "type": "object",
        });
        self.done.insert(PATCH.into(), patch);
    }

    fn kind(&mut self, kind: &Described<'_>) {
        let name = kind.definition(&kind.kind);
        match kind.source {
            Source::Builtin(schema) => {
                let json = schema(&mut self.generator).to_value();
                match referenced(&json) {
                    Some(referenced) => self.close_over(&referenced),
                    None => self.define(&name, &json),
                }
            }
            Source::Crd(schema) => {
                let definition = self.custom(schema);
                self.done.insert(name.clone(), definition);
            }
        }
        if let Some(definition) = self.done.get_mut(&name) {
            definition[GVK] = json!([kind.gvk(&kind.kind)]);
        }
        if !kind.create_only {
            let list = self.list(kind, &name);
            self.done.insert(kind.definition(&kind.list_kind), list);
        }
    }

    fn list(&self, kind: &Described<'_>, item: &str) -> Value {
        json!({
            "description": format!("{} is a list of {}.", kind.list_kind, kind.kind),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"description": API_VERSION, "type": "string"},
                "kind": {"description": KIND, "type": "string"},
                "metadata": self.dialect.described_reference(LIST_META, Some("Standard list metadata.")),
                "items": {
                    "description": format!("List of {}.", kind.plural),
                    "type": "array",
                    "items": self.dialect.reference(item),
                },
            },
            GVK: [kind.gvk(&kind.list_kind)],
        })
    }

    /// A definition and all it refers to.
    fn close_over(&mut self, name: &str) {
        let mut waiting = BTreeSet::from([name.to_string()]);
        while let Some(name) = waiting.pop_first() {
            if self.done.contains_key(&name) {
                continue;
            }
            let Some(json) = self.generator.definitions().get(&name).cloned() else { continue };
            references(&json, &mut waiting);
            let definition = builtin(&json, &name, self.dialect);
            self.done.insert(name, definition);
        }
    }

    /// A kind that came inline.
    fn define(&mut self, name: &str, json: &Value) {
        let mut waiting = BTreeSet::new();
        references(json, &mut waiting);
        self.done.insert(name.into(), builtin(json, name, self.dialect));
        waiting.iter().for_each(|name| self.close_over(name));
    }

    /// A custom kind, with the fields that every kind has.
    fn custom(&self, schema: Option<&Value>) -> Value {
        let mut schema = match (schema, self.dialect) {
            // With properties, clients would take all other fields for mistakes.
            (None, _) => return json!({"type": "object"}),
            (Some(schema), Dialect::V2) if preserves(schema) => {
                let mut open = json!({"type": "object"});
                open["description"] = schema.get("description").cloned().unwrap_or_default();
                return open;
            }
            (Some(schema), Dialect::V2) => v2_crd::weaken(schema),
            (Some(schema), Dialect::V3) => schema.clone(),
        };
        self.embedded(&mut schema);
        self.resource_fields(&mut schema);
        schema
    }

    fn resource_fields(&self, schema: &mut Value) {
        let Some(schema) = schema.as_object_mut() else { return };
        if let Some(properties) = schema.entry("properties").or_insert_with(|| json!({})).as_object_mut() {
            properties.insert("apiVersion".into(), json!({"description": API_VERSION, "type": "string"}));
            properties.insert("kind".into(), json!({"description": KIND, "type": "string"}));
            let metadata = self.dialect.described_reference(OBJECT_META_NAME, Some(METADATA));
            properties.insert("metadata".into(), metadata);
        }
    }

    /// Embedded objects say what they are. In version 2 such fields would close objects that are open.
    fn embedded(&self, schema: &mut Value) {
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.values_mut().for_each(|field| self.embedded(field));
        }
        for below in ["items", "additionalProperties"] {
            if let Some(below) = schema.get_mut(below) {
                self.embedded(below);
            }
        }
        let is_embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        if !is_embedded || (self.dialect == Dialect::V2 && preserves(schema)) {
            return;
        }
        self.resource_fields(schema);
        let mut required: Vec<Value> =
            schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
        schema["required"] = required.into();
    }
}

fn preserves(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
}

fn referenced(json: &Value) -> Option<String> {
    json.get("$ref")?.as_str().and_then(definition_name).map(String::from)
}

/// The names of all definitions that a schema refers to.
fn references(json: &Value, found: &mut BTreeSet<String>) {
    match json {
        Value::Object(object) => {
            found.extend(referenced(json));
            object.values().for_each(|child| references(child, found));
        }
        Value::Array(list) => list.iter().for_each(|child| references(child, found)),
        _ => {}
    }
}

/// The definition of a built-in type in one dialect.
fn builtin(json: &Value, name: &str, dialect: Dialect) -> Value {
    let description = json.get("description").cloned().unwrap_or_default();
    let mut definition = match (name.rsplit('.').next().unwrap_or(name), dialect) {
        ("Quantity", Dialect::V2) => json!({"type": "string"}),
        ("Quantity", Dialect::V3) => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        ("IntOrString", Dialect::V2) => json!({"type": "string", "format": "int-or-string"}),
        ("IntOrString", Dialect::V3) => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        ("JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray", _) => {
            json!({})
        }
        _ => node(json, Some(name), dialect),
    };
    if !description.is_null() {
        definition["description"] = description;
    }
    if table::is_atomic(name) {
        definition["x-kubernetes-map-type"] = "atomic".into();
    }
    definition
}

fn node(json: &Value, definition: Option<&str>, dialect: Dialect) -> Value {
    if let Some(name) = referenced(json) {
        return dialect.described_reference(&name, json.get("description").and_then(Value::as_str));
    }
    let Some(object) = json.as_object() else { return json.clone() };
    let mut out = Map::new();
    for (keyword, value) in object {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => Value::Object(
                fields
                    .iter()
                    .map(|(name, json)| (name.clone(), field(json, definition, name, dialect)))
                    .collect(),
            ),
            ("items" | "additionalProperties", schema) => node(schema, None, dialect),
            ("required", Value::Array(names)) => {
                let listed = names.iter().filter_map(Value::as_str);
                let required = table::required(definition.unwrap_or_default(), listed);
                if required.is_empty() {
                    continue;
                }
                required.into()
            }
            (_, other) => other.clone(),
        };
        out.insert(keyword.clone(), value);
    }
    Value::Object(out)
}

/// A field with how its lists and maps are owned and merged.
fn field(json: &Value, definition: Option<&str>, name: &str, dialect: Dialect) -> Value {
    let mut out = node(json, None, dialect);
    let Some(definition) = definition else { return out };
    if let (Some(default), Dialect::V3) = (table::default(definition, name), dialect) {
        out["default"] = default.into();
    }
    let fact = table::fact(definition, name);
    if json.get("type").and_then(Value::as_str) == Some("array") {
        let list = fact.map_or(table::List::Atomic, |fact| fact.list);
        out["x-kubernetes-list-type"] = match list {
            table::List::Atomic => "atomic".into(),
            table::List::Set => "set".into(),
            table::List::Map(keys) => {
                out["x-kubernetes-list-map-keys"] = keys.into();
                "map".into()
            }
        };
    }
    let Some(fact) = fact else { return out };
    if let Some(key) = fact.merge_key() {
        out["x-kubernetes-patch-merge-key"] = key.into();
    }
    match fact.merge {
        table::Merge::Replace => {}
        table::Merge::Values | table::Merge::By(_) => out["x-kubernetes-patch-strategy"] = "merge".into(),
        table::Merge::ByRetaining(_) => out["x-kubernetes-patch-strategy"] = "merge,retainKeys".into(),
    }
    if let Some(atomic) = fact.atomic {
        out["x-kubernetes-map-type"] = if atomic { "atomic" } else { "granular" }.into();
    }
    out
}
