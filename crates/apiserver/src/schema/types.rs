//! Whether an object can be decoded as a built-in kind at all: Kubernetes answers 400 where a custom kind
//! would get a list of field errors.
//!
//! Owns the decoder's wording. Must never check more than a decoder does.

use serde_json::{Number, Value};

use super::{Format, Kind, Schema, scalars};

/// The first thing that has the wrong type, as a decoder would put it.
pub fn type_errors(schema: &Schema, value: &Value) -> Option<String> {
    Decoder { owner: "", path: Vec::new() }.check(schema, value)
}

struct Decoder<'a> {
    /// The Go struct whose field is being decoded.
    owner: &'a str,
    path: Vec<&'a str>,
}

impl<'a> Decoder<'a> {
    fn check(&mut self, schema: &'a Schema, value: &'a Value) -> Option<String> {
        if value.is_null() {
            return None;
        }
        let format = schema.rules.as_ref().and_then(|rules| rules.format);
        match (schema.kind, value) {
            (Kind::Object, Value::Object(object)) => {
                let outer = self.owner;
                self.owner = schema.definition.as_deref().map_or(outer, last);
                let found = object.iter().find_map(|(name, child)| match schema.properties.get(&**name) {
                    Some(field) => {
                        self.path.push(name);
                        let found = self.check(field, child);
                        self.path.pop();
                        found
                    }
                    // Decoders do not name the keys of maps.
                    None => self.check(schema.additional.as_ref()?, child),
                });
                self.owner = outer;
                found
            }
            (Kind::Array, Value::Array(list)) => {
                let items = schema.items.as_ref()?;
                list.iter().find_map(|child| self.check(items, child))
            }
            (Kind::String, Value::String(text)) => bad_text(format, text),
            (Kind::IntOrString, Value::String(text)) => bad_text(format, text),
            (Kind::IntOrString, Value::Number(_)) if format == Some(Format::Quantity) => None,
            (Kind::Integer, Value::Number(number)) => self.bad_integer(schema, format, number),
            (kind, value) if scalars::has_kind(kind, value) => None,
            (_, value) => Some(self.mismatch(schema, shape(value))),
        }
    }

    fn bad_integer(&self, schema: &Schema, format: Option<Format>, number: &Number) -> Option<String> {
        let fits = match number.as_i64() {
            Some(integer) => format != Some(Format::Int32) || i32::try_from(integer).is_ok(),
            None => false,
        };
        (!fits).then(|| self.mismatch(schema, &format!("number {number}")))
    }

    fn mismatch(&self, schema: &Schema, got: &str) -> String {
        let into = if self.path.is_empty() {
            "Go value".to_string()
        } else {
            format!("Go struct field {}.{}", self.owner, self.path.join("."))
        };
        format!("json: cannot unmarshal {got} into {into} of type {}", go_type(schema))
    }
}

fn bad_text(format: Option<Format>, text: &str) -> Option<String> {
    match format? {
        Format::Quantity if !Format::Quantity.accepts(text) => Some(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_string(),
        ),
        Format::DateTime if text.parse::<jiff::Timestamp>().is_err() => Some(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
        )),
        Format::Byte => {
            use base64::Engine as _;
            let error = base64::engine::general_purpose::STANDARD.decode(text).err()?;
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                base64::DecodeError::InvalidLength(at) => at / 4 * 4,
                base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
            };
            Some(format!("illegal base64 data at input byte {at}"))
        }
        _ => None,
    }
}

fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn last(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

fn go_type(schema: &Schema) -> String {
    if let Some(definition) = &schema.definition {
        let mut parts = definition.rsplit('.');
        let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return format!("{package}.{name}");
    }
    let format = schema.rules.as_ref().and_then(|rules| rules.format);
    match schema.kind {
        Kind::String if format == Some(Format::Byte) => "[]uint8".into(),
        Kind::String => "string".into(),
        Kind::Boolean => "bool".into(),
        Kind::Integer if format == Some(Format::Int32) => "int32".into(),
        Kind::Integer => "int64".into(),
        Kind::Number => "float64".into(),
        Kind::Array => {
            format!("[]{}", schema.items.as_ref().map_or_else(|| "interface {}".into(), |s| go_type(s)))
        }
        Kind::Object => {
            format!(
                "map[string]{}",
                schema.additional.as_ref().map_or_else(|| "interface {}".into(), |s| go_type(s))
            )
        }
        Kind::IntOrString => "intstr.IntOrString".into(),
        Kind::Any => "interface {}".into(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret};
    use schemars::SchemaGenerator;
    use serde_json::json;

    use super::super::Definitions;
    use super::*;

    fn pod_error(value: &Value) -> Option<String> {
        let pod = Definitions::new().kind("io.k8s.api.core.v1.Pod", SchemaGenerator::subschema_for::<Pod>);
        type_errors(&pod, value)
    }

    #[test]
    fn a_wrong_type_is_named_with_its_struct_and_path() {
        assert_eq!(
            pod_error(&json!({"spec": {"hostNetwork": "yes"}})).as_deref(),
            Some("json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool")
        );
        assert_eq!(
            pod_error(&json!({"spec": {"containers": [{"name": "a", "image": 5}]}})).as_deref(),
            Some(
                "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string"
            )
        );
        assert_eq!(
            pod_error(&json!({"metadata": {"labels": {"a": 1}}})).as_deref(),
            Some(
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
            )
        );
        assert_eq!(
            pod_error(&json!({"spec": []})).as_deref(),
            Some("json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec")
        );
        assert_eq!(
            pod_error(&json!({"spec": {"containers": {}}})).as_deref(),
            Some(
                "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"
            )
        );
        assert_eq!(
            pod_error(&json!({"spec": {"priority": 99_999_999_999_i64}})).as_deref(),
            Some(
                "json: cannot unmarshal number 99999999999 into Go struct field PodSpec.spec.priority of type int32"
            )
        );
    }

    #[test]
    fn quantities_times_and_bytes_are_read_as_the_decoder_reads_them() {
        let with_cpu =
            |cpu: Value| json!({"spec": {"containers": [{"resources": {"limits": {"cpu": cpu}}}]}});
        for good in [json!("500m"), json!(1), json!(0.5), json!(null)] {
            assert_eq!(pod_error(&with_cpu(good)), None);
        }
        assert!(
            pod_error(&with_cpu(json!("1 core"))).is_some_and(|e| e.starts_with("quantities must match"))
        );
        assert!(pod_error(&json!({"metadata": {"creationTimestamp": "yesterday"}})).is_some());
        assert_eq!(pod_error(&json!({"metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"}})), None);
        let probe =
            |port: Value| json!({"spec": {"containers": [{"livenessProbe": {"tcpSocket": {"port": port}}}]}});
        assert_eq!(pod_error(&probe(json!("http"))), None);
        assert_eq!(pod_error(&probe(json!(80))), None);
        assert!(pod_error(&probe(json!(true))).is_some());

        let secret =
            Definitions::new().kind("io.k8s.api.core.v1.Secret", SchemaGenerator::subschema_for::<Secret>);
        assert_eq!(type_errors(&secret, &json!({"data": {"a": "aGk=", "b": ""}})), None);
        assert_eq!(
            type_errors(&secret, &json!({"data": {"a": "a*b"}})).as_deref(),
            Some("illegal base64 data at input byte 1")
        );
    }
}
