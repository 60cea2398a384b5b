//! Structural schemas of custom kinds, from the `openAPIV3Schema` of a CustomResourceDefinition.
//!
//! Owns the reading of keywords. Must never judge whether a schema is a good one; `structural` does that
//! when a definition is admitted, and this reads whatever was admitted then.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::cel::CelRule;
use super::{Bound, Format, Kind, ListKind, Pattern, Rules, Schema, object_meta};
use crate::error::FieldError;

/// No schema that a person writes is deeper, and every walk over it recurses.
const MAX_DEPTH: usize = 64;

/// The schema of a custom kind. Every kind has `apiVersion`, `kind` and `metadata`, whether it says so or not.
///
/// # Errors
/// Keywords whose values are of the wrong type; paths start below `openAPIV3Schema`.
pub fn from_crd(json: &Value) -> Result<Schema, Vec<FieldError>> {
    let mut schema = part(json)?;
    schema.embedded_resource = false;
    add_resource_fields(&mut schema);
    Ok(schema)
}

/// The schema of a part of a custom kind.
///
/// # Errors
/// As [`from_crd`].
pub(super) fn part(json: &Value) -> Result<Schema, Vec<FieldError>> {
    let mut reader = Reader { errors: Vec::new() };
    let schema = reader.node(json, "", 0);
    if reader.errors.is_empty() { Ok(schema) } else { Err(reader.errors) }
}

/// `apiVersion`, `kind` and the shared `metadata`, with what the schema itself demands of the name.
fn add_resource_fields(schema: &mut Schema) {
    for name in ["apiVersion", "kind"] {
        schema.properties.entry(name.into()).or_insert_with(|| Arc::new(Schema::of(Kind::String)));
    }
    let mut metadata = object_meta();
    let own = schema.properties.get("metadata").cloned();
    for name in ["name", "generateName"] {
        let rules = own.as_ref().and_then(|m| m.properties.get(name)?.rules.clone());
        if rules.is_some() {
            let metadata = Arc::make_mut(&mut metadata);
            let field = Schema { rules, ..Schema::of(Kind::String) };
            metadata.properties.insert(name.into(), Arc::new(field));
        }
    }
    schema.properties.insert("metadata".into(), metadata);
}

struct Reader {
    errors: Vec<FieldError>,
}

impl Reader {
    fn node(&mut self, json: &Value, path: &str, depth: usize) -> Schema {
        let Some(object) = json.as_object() else {
            self.errors.push(FieldError::invalid(path, json.clone(), "must be an object"));
            return Schema::default();
        };
        if depth > MAX_DEPTH {
            let why = format!("must not be nested deeper than {MAX_DEPTH} levels");
            self.errors.push(FieldError::forbidden(path, why));
            return Schema::default();
        }
        let keywords = Keywords { object, path };
        let mut schema = Schema {
            kind: self.kind(&keywords),
            nullable: self.flag(&keywords, "nullable"),
            preserve_unknown: self.flag(&keywords, "x-kubernetes-preserve-unknown-fields"),
            embedded_resource: self.flag(&keywords, "x-kubernetes-embedded-resource"),
            atomic: self.text(&keywords, "x-kubernetes-map-type") == Some("atomic"),
            list: self.list(&keywords),
            required: self.names(&keywords, "required"),
            default: object.get("default").filter(|v| !v.is_null()).cloned(),
            ..Schema::default()
        };
        self.children(&mut schema, &keywords, depth);
        let rules = self.rules(&keywords, schema.kind, depth);
        schema.rules = rules.map(Box::new);
        if schema.embedded_resource {
            add_resource_fields(&mut schema);
        }
        if let Some(rules) = self.array(&keywords, "x-kubernetes-validations").filter(|list| !list.is_empty())
        {
            let compiled = CelRule::compile_all(rules, &schema);
            schema.rules_mut().cel = compiled.into();
        }
        schema.has_cel = has_cel(&schema);
        schema
    }

    fn children(&mut self, schema: &mut Schema, keywords: &Keywords<'_>, depth: usize) {
        if let Some(properties) = self.object(keywords, "properties") {
            for (name, json) in properties {
                let path = format!("{}[{name}]", keywords.at("properties"));
                schema.properties.insert(name.as_str().into(), Arc::new(self.node(json, &path, depth + 1)));
            }
        }
        schema.additional = match keywords.object.get("additionalProperties") {
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(Arc::new(Schema::default())),
            Some(json) => Some(Arc::new(self.node(json, &keywords.at("additionalProperties"), depth + 1))),
        };
        if let Some(json) = keywords.object.get("items").filter(|v| !v.is_null()) {
            schema.items = Some(Arc::new(self.node(json, &keywords.at("items"), depth + 1)));
        }
    }

    fn kind(&mut self, keywords: &Keywords<'_>) -> Kind {
        if self.flag(keywords, "x-kubernetes-int-or-string") {
            return Kind::IntOrString;
        }
        match self.text(keywords, "type") {
            Some("object") => Kind::Object,
            Some("array") => Kind::Array,
            Some("string") => Kind::String,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            _ => Kind::Any,
        }
    }

    fn list(&mut self, keywords: &Keywords<'_>) -> ListKind {
        let keys = self.names(keywords, "x-kubernetes-list-map-keys");
        match self.text(keywords, "x-kubernetes-list-type") {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map(keys),
            _ => ListKind::Atomic,
        }
    }

    fn rules(&mut self, keywords: &Keywords<'_>, kind: Kind, depth: usize) -> Option<Rules> {
        let mut rules = Rules {
            enumeration: self.array(keywords, "enum").cloned().unwrap_or_default(),
            format: self.text(keywords, "format").and_then(|name| Format::named(name, kind)),
            pattern: self.text(keywords, "pattern").filter(|p| !p.is_empty()).map(Pattern::new),
            minimum: self.bound(keywords, "minimum", "exclusiveMinimum"),
            maximum: self.bound(keywords, "maximum", "exclusiveMaximum"),
            multiple_of: self.number(keywords, "multipleOf"),
            min_length: self.count(keywords, "minLength"),
            max_length: self.count(keywords, "maxLength"),
            min_items: self.count(keywords, "minItems"),
            max_items: self.count(keywords, "maxItems"),
            min_properties: self.count(keywords, "minProperties"),
            max_properties: self.count(keywords, "maxProperties"),
            ..Rules::default()
        };
        rules.all_of = self.branches(keywords, "allOf", depth);
        rules.any_of = self.branches(keywords, "anyOf", depth);
        rules.one_of = self.branches(keywords, "oneOf", depth);
        if let Some(json) = keywords.object.get("not").filter(|v| !v.is_null()) {
            rules.not = Some(Box::new(self.node(json, &keywords.at("not"), depth + 1)));
        }
        (!rules.is_empty()).then_some(rules)
    }

    fn branches(&mut self, keywords: &Keywords<'_>, name: &str, depth: usize) -> Vec<Schema> {
        let Some(branches) = self.array(keywords, name) else { return Vec::new() };
        let path = keywords.at(name);
        branches
            .iter()
            .enumerate()
            .map(|(i, json)| self.node(json, &format!("{path}[{i}]"), depth + 1))
            .collect()
    }

    fn bound(&mut self, keywords: &Keywords<'_>, name: &str, exclusive: &str) -> Option<Bound> {
        let exclusive = self.flag(keywords, exclusive);
        self.number(keywords, name).map(|value| Bound { value, exclusive })
    }

    /// The value of a keyword, or a complaint that it is not what it must be. `null` counts as absent.
    fn read<'a, T>(
        &mut self,
        keywords: &Keywords<'a>,
        name: &str,
        wanted: &str,
        get: impl Fn(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let json = keywords.object.get(name).filter(|v| !v.is_null())?;
        let value = get(json);
        if value.is_none() {
            let why = format!("must be {wanted}");
            self.errors.push(FieldError::invalid(keywords.at(name), json.clone(), why));
        }
        value
    }

    fn text<'a>(&mut self, keywords: &Keywords<'a>, name: &str) -> Option<&'a str> {
        self.read(keywords, name, "a string", Value::as_str)
    }

    fn flag(&mut self, keywords: &Keywords<'_>, name: &str) -> bool {
        self.read(keywords, name, "true or false", Value::as_bool).unwrap_or_default()
    }

    fn number(&mut self, keywords: &Keywords<'_>, name: &str) -> Option<f64> {
        self.read(keywords, name, "a number", Value::as_f64)
    }

    fn count(&mut self, keywords: &Keywords<'_>, name: &str) -> Option<i64> {
        self.read(keywords, name, "an integer", Value::as_i64)
    }

    fn array<'a>(&mut self, keywords: &Keywords<'a>, name: &str) -> Option<&'a Vec<Value>> {
        self.read(keywords, name, "a list", Value::as_array)
    }

    fn object<'a>(&mut self, keywords: &Keywords<'a>, name: &str) -> Option<&'a Map<String, Value>> {
        self.read(keywords, name, "an object", Value::as_object)
    }

    fn names(&mut self, keywords: &Keywords<'_>, name: &str) -> Vec<Box<str>> {
        let all_text = |json: &Value| {
            json.as_array()?
                .iter()
                .map(|name| name.as_str().map(Into::into))
                .collect::<Option<Vec<Box<str>>>>()
        };
        self.read(keywords, name, "a list of strings", all_text).unwrap_or_default()
    }
}

/// Branches have no rules of their own; admission refuses them.
fn has_cel(schema: &Schema) -> bool {
    let own = schema.rules.as_ref().is_some_and(|rules| !rules.cel.is_empty());
    let below = schema.properties.values().chain(&schema.additional).chain(&schema.items);
    own || below.into_iter().any(|child| child.has_cel)
}

/// One schema object and where it stands.
struct Keywords<'a> {
    object: &'a Map<String, Value>,
    path: &'a str,
}

impl Keywords<'_> {
    fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::any_json;
    use super::*;

    #[test]
    fn a_crd_schema_becomes_a_tree_with_the_common_metadata() {
        let schema = from_crd(&json!({
            "type": "object",
            "properties": {
                "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}}},
                "spec": {
                    "type": "object",
                    "required": ["size"],
                    "properties": {
                        "size": {"x-kubernetes-int-or-string": true},
                        "replicas": {"type": "integer", "minimum": 1, "default": 3, "format": "int32"},
                        "disks": {
                            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                        },
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                },
            },
        }))
        .expect("a good schema");
        let spec = &schema.properties["spec"];
        assert_eq!(spec.required, ["size".into()]);
        assert_eq!(spec.properties["size"].kind, Kind::IntOrString);
        assert_eq!(spec.properties["replicas"].default, Some(json!(3)));
        assert_eq!(spec.properties["disks"].list, ListKind::Map(vec!["name".into()]));
        assert!(spec.properties["raw"].preserve_unknown);
        assert!(spec.properties["labels"].rules.is_none());
        let metadata = &schema.properties["metadata"];
        assert_eq!(metadata.properties["finalizers"].list, ListKind::Set);
        assert_eq!(metadata.properties["name"].rules.as_ref().and_then(|r| r.max_length), Some(10));
    }

    #[test]
    fn keywords_of_the_wrong_type_are_named() {
        let errors = from_crd(&json!({
            "type": "object",
            "properties": {"spec": {"type": 5, "required": "size", "anyOf": [{"minLength": "x"}]}},
        }))
        .expect_err("three mistakes");
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "properties[spec].type: Invalid value: 5: must be a string",
                "properties[spec].required: Invalid value: \"size\": must be a list of strings",
                "properties[spec].anyOf[0].minLength: Invalid value: \"x\": must be an integer",
            ]
        );
    }

    #[test]
    fn a_schema_without_end_is_refused() {
        let mut schema = json!({"type": "string"});
        for _ in 0..100 {
            schema = json!({"type": "array", "items": schema});
        }
        assert!(from_crd(&schema).is_err());
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(json in any_json()) {
            let _outcome = from_crd(&json);
        }
    }
}
