//! Whether the schema of a CustomResourceDefinition may be admitted: it must be structural, its defaults must
//! be values of their own schema, and its rules must compile.
//!
//! Owns these checks and their wording, which is Kubernetes'. Must never change a schema.

mod defaults;
mod keywords;
mod shape;

use serde_json::{Map, Value};

use super::from_crd;
use crate::error::FieldError;

/// Everything that is wrong with an `openAPIV3Schema`, which stands at `path`.
pub fn check_crd_schema(schema: &Value, path: &str, has_status: bool) -> Vec<FieldError> {
    let parsed = match from_crd(schema) {
        Ok(parsed) => parsed,
        Err(errors) => {
            let join =
                |below: &str| if below.is_empty() { path.to_string() } else { format!("{path}.{below}") };
            return errors.into_iter().map(|e| FieldError { path: join(&e.path), ..e }).collect();
        }
    };
    let Some(node) = Node::of(schema) else { return Vec::new() };
    let mut errors = root(&node, path, has_status);
    let shape = shape::check(&node, path);
    let mut judge_rules = shape.is_empty();
    errors.extend(shape);
    if judge_rules {
        let defaults = defaults::check(schema, path);
        judge_rules = defaults.is_empty();
        errors.extend(defaults);
    }
    errors.extend(keywords::check(&node, &parsed, path, judge_rules));
    errors
}

/// What the root may not have. With a status subresource it is checked by parts, so whole-object keywords go.
fn root(node: &Node<'_>, path: &str, has_status: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has_status && !matches!(node.text("type"), "" | "object") {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(format!("{path}.type"), node.text("type"), why));
    } else if has_status && let Some(name) = ROOT_FORBIDDEN.iter().find(|name| node.has(name)) {
        let why =
            format!("{name} is not allowed at the root of the schema if the status subresource is enabled");
        errors.push(FieldError::invalid(path, "", why));
    }
    if node.flag("nullable") {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    errors
}

const ROOT_FORBIDDEN: &[&str] = &[
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "enum",
    "maxProperties",
    "minProperties",
    "default",
    "x-kubernetes-map-type",
];

/// One schema as it was written. Keywords are known to be of the right types by now.
struct Node<'a>(&'a Map<String, Value>);

impl<'a> Node<'a> {
    fn of(json: &'a Value) -> Option<Self> {
        json.as_object().map(Self)
    }

    /// Whether a keyword is there with a value that says something.
    fn has(&self, name: &str) -> bool {
        match self.0.get(name) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Object(object)) => !object.is_empty(),
            Some(_) => true,
        }
    }

    fn json(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    fn child(&self, name: &str) -> Option<Node<'a>> {
        Node::of(self.0.get(name)?)
    }

    fn list(&self, name: &str) -> &'a [Value] {
        self.0.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    fn names(&self, name: &str) -> Vec<&'a str> {
        self.list(name).iter().filter_map(Value::as_str).collect()
    }

    fn properties(&self) -> impl Iterator<Item = (&'a str, Node<'a>)> + use<'a> {
        let properties = self.0.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().filter_map(|(name, json)| Some((name.as_str(), Node::of(json)?)))
    }

    fn property(&self, name: &str) -> Option<Node<'a>> {
        Node::of(self.0.get("properties")?.get(name)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{any_json, any_schema};
    use super::*;

    fn texts(schema: &Value) -> Vec<String> {
        check_crd_schema(schema, "schema", true).iter().map(ToString::to_string).collect()
    }

    fn spec(spec: &Value) -> Value {
        json!({"type": "object", "properties": {"spec": spec}})
    }

    #[test]
    fn a_good_schema_passes() {
        let good = json!({
            "type": "object",
            "description": "A disk.",
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                "spec": {
                    "type": "object",
                    "properties": {
                        "size": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true, "pattern": "^[0-9]+$"},
                        "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                        "opts": {"type": "object", "default": {"x": 1}, "properties": {"x": {"type": "integer"}}},
                        "disks": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
                        "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
                    },
                    "oneOf": [{"required": ["mode"]}, {"properties": {"mode": {"maxLength": 3}}, "required": ["raw"]}],
                    "x-kubernetes-validations": [{"rule": "has(self.mode) || self.disks.size() > 0", "message": "say something"}],
                },
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        });
        assert_eq!(texts(&good), [""; 0]);
    }

    #[test]
    fn every_part_has_a_type() {
        assert_eq!(texts(&json!({})), ["schema.type: Required value: must not be empty at the root"]);
        assert_eq!(
            texts(&json!({"type": "string"})),
            [
                "schema.type: Invalid value: \"string\": only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled",
                "schema.type: Invalid value: \"string\": must be object at the root",
            ]
        );
        assert_eq!(
            texts(&spec(
                &json!({"properties": {"a": {"type": "array"}, "b": {"type": "array", "items": {}}}})
            )),
            [
                "schema.properties[spec].properties[a].items: Required value: must be specified",
                "schema.properties[spec].properties[b].items.type: Required value: must not be empty for specified array items",
                "schema.properties[spec].type: Required value: must not be empty for specified object fields",
            ]
        );
        assert_eq!(
            texts(&spec(&json!({"type": "text"}))),
            [
                "schema.properties[spec].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\""
            ]
        );
    }

    #[test]
    fn what_schemas_cannot_have_is_refused() {
        assert_eq!(
            texts(&spec(&json!({
                "type": "object", "$ref": "#/x", "definitions": {"a": {"type": "string"}}, "patternProperties": {"a": {}}, "id": "x",
                "properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}},
                "additionalProperties": {"type": "string"},
            }))),
            [
                "schema.properties[spec].id: Forbidden: id is not supported",
                "schema.properties[spec].patternProperties: Forbidden: patternProperties is not supported",
                "schema.properties[spec].definitions: Forbidden: definitions is not supported",
                "schema.properties[spec].$ref: Forbidden: $ref is not supported",
                "schema.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
                "schema.properties[spec].properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ]
        );
        assert_eq!(
            texts(&json!({"type": "object", "additionalProperties": {"type": "string"}})),
            ["schema.additionalProperties: Forbidden: must not be used at the root"]
        );
        assert_eq!(
            texts(
                &json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}})
            ),
            [
                "schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"
            ]
        );
        assert_eq!(
            texts(&spec(&json!({"type": "string", "pattern": "("})))
                .first()
                .map(|e| e.contains("must be a valid regular expression, but isn't")),
            Some(true)
        );
    }

    #[test]
    fn branches_only_restrict() {
        assert_eq!(
            texts(&spec(&json!({
                "type": "object", "properties": {"a": {"type": "string"}},
                "anyOf": [{"type": "object", "properties": {"b": {"description": "x", "default": 1}}}],
                "allOf": [{"nullable": true, "x-kubernetes-validations": [{"rule": "true"}]}],
            }))),
            [
                "schema.properties[spec].allOf[0].nullable: Forbidden: must be false to be structural",
                "schema.properties[spec].allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural",
                "schema.properties[spec].anyOf[0].properties[b].default: Forbidden: must be undefined to be structural",
                "schema.properties[spec].anyOf[0].properties[b].description: Forbidden: must be empty to be structural",
                "schema.properties[spec].anyOf[0].type: Forbidden: must be empty to be structural",
            ]
        );
        assert_eq!(
            texts(&json!({"type": "object", "allOf": [{"properties": {"spec": {"minProperties": 1}}}]}))
                .last()
                .map(String::as_str),
            Some(
                "schema.properties[spec]: Required value: because it is defined in schema.allOf[0].properties[spec]"
            )
        );
    }

    #[test]
    fn map_lists_have_keys_that_exist() {
        let list = |extra: Value, items: Value| {
            let mut list = json!({"type": "array", "items": items});
            list.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
            spec(&list)
        };
        let named =
            json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}});
        assert_eq!(
            texts(&list(json!({"x-kubernetes-list-map-keys": ["name"]}), named.clone())),
            [
                "schema.properties[spec].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty"
            ]
        );
        assert_eq!(
            texts(&list(json!({"x-kubernetes-list-type": "map"}), named.clone())),
            [
                "schema.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"
            ]
        );
        assert_eq!(
            texts(&list(
                json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]}),
                named
            )),
            [
                "schema.properties[spec].x-kubernetes-list-map-keys: Invalid value: [\"id\"]: entries must all be names of item properties"
            ]
        );
        let loose = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        assert_eq!(
            texts(&list(
                json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
                loose
            )),
            [
                "schema.properties[spec].items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            ]
        );
        assert_eq!(
            texts(&list(json!({"x-kubernetes-list-type": "bag"}), json!({"type": "string"}))),
            [
                "schema.properties[spec].x-kubernetes-list-type: Unsupported value: \"bag\": supported values: \"atomic\", \"set\", \"map\""
            ]
        );
    }

    #[test]
    fn defaults_are_values_of_their_schema() {
        assert_eq!(
            texts(&spec(&json!({"type": "object", "properties": {
                "n": {"type": "integer", "default": "x"},
                "o": {"type": "object", "default": {"a": 1, "b": 2}, "properties": {"a": {"type": "integer"}}},
                "m": {"type": "integer", "maximum": 3, "default": 4},
                "r": {"type": "string", "default": "bad", "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "not bad"}]},
            }}))),
            [
                "schema.properties[spec].properties[m].default: Invalid value: 4:  in body should be less than or equal to 3",
                "schema.properties[spec].properties[n].default: Invalid value: \"string\":  in body must be of type integer: \"string\"",
                "schema.properties[spec].properties[o].default: Invalid value: {\"a\":1,\"b\":2}: must not have unknown fields",
                "schema.properties[spec].properties[r].default: Invalid value: \"bad\": not bad",
            ]
        );
        assert_eq!(
            texts(
                &json!({"type": "object", "properties": {"apiVersion": {"type": "string", "default": "v1"}}})
            ),
            ["schema.properties[apiVersion].default: Forbidden: must not be set in top-level apiVersion"]
        );
    }

    #[test]
    fn rules_compile_and_look_back_only_where_they_can() {
        let rule = json!([{"rule": "self.x > 0"}, {"rule": ""}, {"rule": "true", "message": " "}, {"rule": "true", "reason": "Because"}]);
        assert_eq!(
            texts(&spec(&json!({"type": "object", "x-kubernetes-validations": rule}))),
            [
                "schema.properties[spec].x-kubernetes-validations[1].rule: Required value: rule is not specified",
                "schema.properties[spec].x-kubernetes-validations[2].message: Invalid value: \" \": must be non-empty if specified",
                "schema.properties[spec].x-kubernetes-validations[3].reason: Unsupported value: \"Because\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
            ]
        );
        assert_eq!(
            texts(&spec(
                &json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.x > 0"}, {"rule": "true", "optionalOldSelf": true}]})
            )),
            [
                "schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: \"self.x > 0\": compilation failed: undefined field 'x'",
                "schema.properties[spec].x-kubernetes-validations[1].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
            ]
        );
        assert_eq!(
            texts(&spec(
                &json!({"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}})
            )),
            [
                "schema.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within schema.properties[spec]"
            ]
        );
    }

    #[test]
    fn keywords_of_the_wrong_type_are_placed() {
        assert_eq!(
            texts(&spec(&json!({"type": 5}))),
            ["schema.properties[spec].type: Invalid value: 5: must be a string"]
        );
    }

    proptest! {
        #[test]
        fn any_schema_is_judged_without_panic(schema in any_schema(), json in any_json()) {
            check_crd_schema(&schema, "schema", true);
            check_crd_schema(&json, "schema", false);
        }
    }
}
