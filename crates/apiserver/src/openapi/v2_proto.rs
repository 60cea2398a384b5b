//! The OpenAPI 2.0 document as the protocol buffer message `openapi.v2.Document`, which clients up to 1.26
//! read instead of JSON.
//!
//! Owns the translation from JSON. What has no field of its own travels as an extension with YAML inside; JSON
//! is YAML.

use prost::Message as _;
use serde_json::{Map, Value};

use super::v2_messages::{
    AdditionalKind, AdditionalProperties, Any, BodyParameter, Document, Info, ItemsItem, NamedAny,
    NamedPathItem, NamedResponseValue, NamedSchema, NonBodyKind, NonBodyParameter, Operation, Parameter,
    ParameterKind, ParametersItem, PathItem, PathParameter, Paths, QueryParameter, Response, ResponseValue,
    Responses, Schema, SchemaItem, Schemas, TypeItem,
};

/// The document's bytes. What the message cannot hold is left out.
pub fn encode(document: &Value) -> Vec<u8> {
    Document::of(document).encode_to_vec()
}

fn text(json: &Value, name: &str) -> String {
    json.get(name).and_then(Value::as_str).unwrap_or_default().to_string()
}

fn flag(json: &Value, name: &str) -> bool {
    json.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn number(json: &Value, name: &str) -> f64 {
    json.get(name).and_then(Value::as_f64).unwrap_or_default()
}

fn count(json: &Value, name: &str) -> i64 {
    json.get(name).and_then(Value::as_i64).unwrap_or_default()
}

fn list<'a>(json: &'a Value, name: &str) -> &'a [Value] {
    json.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn texts(json: &Value, name: &str) -> Vec<String> {
    list(json, name).iter().filter_map(|value| value.as_str().map(String::from)).collect()
}

fn entries<'a>(json: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    json.get(name).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn extensions(json: &Value) -> Vec<NamedAny> {
    let all = json.as_object().into_iter().flat_map(Map::iter);
    all.filter(|(name, _)| name.starts_with("x-"))
        .map(|(name, value)| NamedAny { name: name.clone(), value: Some(Any::of(value)) })
        .collect()
}

impl Any {
    fn of(json: &Value) -> Self {
        Self { yaml: format!("{json}\n") }
    }
}

impl Document {
    fn of(json: &Value) -> Self {
        let info =
            json.get("info").map(|info| Info { title: text(info, "title"), version: text(info, "version") });
        let path = |(name, item): (&String, &Value)| NamedPathItem {
            name: name.clone(),
            value: Some(PathItem::of(item)),
        };
        Self {
            swagger: text(json, "swagger"),
            info,
            paths: Some(Paths { path: entries(json, "paths").map(path).collect() }),
            definitions: Some(Schemas::of(entries(json, "definitions"))),
        }
    }
}

impl PathItem {
    fn of(json: &Value) -> Self {
        let operation = |method: &str| json.get(method).map(Operation::of);
        Self {
            get: operation("get"),
            put: operation("put"),
            post: operation("post"),
            delete: operation("delete"),
            patch: operation("patch"),
            parameters: list(json, "parameters").iter().map(ParametersItem::of).collect(),
        }
    }
}

impl Operation {
    fn of(json: &Value) -> Self {
        let response = |(code, json): (&String, &Value)| {
            let schema = json.get("schema").map(|schema| SchemaItem { schema: Some(Schema::of(schema)) });
            let response = Response { description: text(json, "description"), schema };
            NamedResponseValue { name: code.clone(), value: Some(ResponseValue { response: Some(response) }) }
        };
        Self {
            operation_id: text(json, "operationId"),
            produces: texts(json, "produces"),
            consumes: texts(json, "consumes"),
            parameters: list(json, "parameters").iter().map(ParametersItem::of).collect(),
            responses: Some(Responses { response_code: entries(json, "responses").map(response).collect() }),
            schemes: texts(json, "schemes"),
            vendor_extension: extensions(json),
        }
    }
}

impl ParametersItem {
    fn of(json: &Value) -> Self {
        let (name, place, required) = (text(json, "name"), text(json, "in"), flag(json, "required"));
        let (kind, unique_items) = (text(json, "type"), flag(json, "uniqueItems"));
        let kind = match place.as_str() {
            "body" => ParameterKind::Body(Box::new(BodyParameter {
                name,
                place,
                required,
                schema: json.get("schema").map(Schema::of),
            })),
            "path" => ParameterKind::Other(NonBodyParameter {
                kind: Some(NonBodyKind::Path(PathParameter { required, place, name, kind, unique_items })),
            }),
            _ => ParameterKind::Other(NonBodyParameter {
                kind: Some(NonBodyKind::Query(QueryParameter { required, place, name, kind, unique_items })),
            }),
        };
        Self { parameter: Some(Parameter { kind: Some(kind) }) }
    }
}

impl Schemas {
    fn of<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>) -> Self {
        let named = |(name, json): (&String, &Value)| NamedSchema {
            name: name.clone(),
            value: Some(Schema::of(json)),
        };
        Self { additional_properties: entries.map(named).collect() }
    }
}

impl Schema {
    fn of(json: &Value) -> Self {
        let additional = match json.get("additionalProperties") {
            None => None,
            Some(Value::Bool(allowed)) => Some(AdditionalKind::Allowed(*allowed)),
            Some(schema) => Some(AdditionalKind::Schema(Box::new(Self::of(schema)))),
        };
        let kind = text(json, "type");
        Self {
            reference: text(json, "$ref"),
            format: text(json, "format"),
            title: text(json, "title"),
            description: text(json, "description"),
            default: json.get("default").map(Any::of),
            multiple_of: number(json, "multipleOf"),
            maximum: number(json, "maximum"),
            exclusive_maximum: flag(json, "exclusiveMaximum"),
            minimum: number(json, "minimum"),
            exclusive_minimum: flag(json, "exclusiveMinimum"),
            max_length: count(json, "maxLength"),
            min_length: count(json, "minLength"),
            pattern: text(json, "pattern"),
            max_items: count(json, "maxItems"),
            min_items: count(json, "minItems"),
            max_properties: count(json, "maxProperties"),
            min_properties: count(json, "minProperties"),
            required: texts(json, "required"),
            enumeration: list(json, "enum").iter().map(Any::of).collect(),
            additional_properties: additional.map(|kind| Box::new(AdditionalProperties { kind: Some(kind) })),
            kind: (!kind.is_empty()).then(|| TypeItem { value: vec![kind] }),
            items: json.get("items").map(|items| ItemsItem { schema: vec![Self::of(items)] }),
            properties: json.get("properties").map(|_| Schemas::of(entries(json, "properties"))),
            vendor_extension: extensions(json),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{kinds, widget};
    use super::super::v2_document;
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_message() {
        let bytes = encode(&json!({
            "swagger": "2.0",
            "definitions": {"A": {"type": "object", "x-k": true}},
        }));
        let mut expected = b"\x0a\x032.0".to_vec();
        expected.extend(b"\x42\x00");
        let extension = b"\x0a\x03x-k\x12\x07\x12\x05true\n";
        let kind = b"\xb2\x01\x08\x0a\x06object";
        let schema = [kind.as_slice(), b"\xfa\x01", &[extension.len() as u8], extension].concat();
        let named = [b"\x0a\x01A\x12".as_slice(), &[schema.len() as u8], &schema].concat();
        let definitions = [b"\x0a".as_slice(), &[named.len() as u8], &named].concat();
        expected.extend([b"\x4a".as_slice(), &[definitions.len() as u8], &definitions].concat());
        assert_eq!(bytes, expected);
    }

    #[test]
    fn an_old_client_finds_out_that_a_patch_can_be_tried() {
        let widget = widget();
        let bytes = encode(&v2_document(&kinds(&widget)));
        let document = Document::decode(bytes.as_slice()).expect("our own message");
        let paths = document.paths.expect("paths").path;
        let path = paths.into_iter().find(|p| p.name.ends_with("/widgets/{name}")).expect("a path");
        let patch = path.value.and_then(|item| item.patch).expect("an operation");
        let gvk = patch
            .vendor_extension
            .iter()
            .find(|e| e.name == "x-kubernetes-group-version-kind")
            .expect("a kind");
        let yaml = &gvk.value.as_ref().expect("a value").yaml;
        let gvk: Value = serde_saphyr::from_str(yaml).expect("YAML");
        assert_eq!(gvk, json!({"group": "example.com", "version": "v1", "kind": "Widget"}));
        let is_dry_run = |item: &ParametersItem| {
            let kind = item.parameter.as_ref().and_then(|parameter| parameter.kind.as_ref());
            matches!(kind, Some(ParameterKind::Other(NonBodyParameter { kind: Some(NonBodyKind::Query(q)) })) if q.name == "dryRun")
        };
        assert!(patch.parameters.iter().any(is_dry_run));
        let definitions = document.definitions.expect("definitions").additional_properties;
        assert!(definitions.iter().any(|d| d.name == "io.k8s.api.core.v1.Pod"));
    }
}
