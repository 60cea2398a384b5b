//! JSON as rules see it: typed by the schema, with field names a rule can write.
//!
//! Owns the conversion. Must never show a rule what its schema does not specify.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Value as Cel, functions};
use serde_json::Value;

use super::super::{Format, Kind, Schema};

/// The value of `self` or `oldSelf`. At the root of a resource its name is always visible.
pub fn to_cel(schema: &Schema, value: &Value, root: bool) -> Cel {
    match (schema.kind, value) {
        (_, Value::Null) => Cel::Null,
        (_, Value::Bool(flag)) => Cel::Bool(*flag),
        (Kind::Number, Value::Number(number)) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        (_, Value::Number(number)) => match number.as_i64() {
            Some(integer) => Cel::Int(integer),
            None => float(number.as_f64().unwrap_or(f64::NAN), schema.kind),
        },
        (_, Value::String(text)) => string(schema, text),
        (_, Value::Array(list)) => {
            let any = Schema::default();
            let items = schema.items.as_deref().unwrap_or(&any);
            Cel::List(Arc::new(list.iter().map(|v| to_cel(items, v, items.embedded_resource)).collect()))
        }
        (_, Value::Object(object)) => {
            let mut map = HashMap::with_capacity(object.len());
            for (name, child) in object {
                let (key, field) = match (schema.properties.get(&**name), &schema.additional) {
                    // To a rule, a field that is null is not there.
                    (Some(_), _) if child.is_null() => continue,
                    (Some(field), _) => (escape(name), field),
                    (None, Some(values)) => (Some(name.clone()), values),
                    (None, None) => continue,
                };
                let Some(key) = key else { continue };
                let is_metadata = (root || schema.embedded_resource) && name == "metadata";
                let child = if is_metadata {
                    names_only(child)
                } else {
                    to_cel(field, child, field.embedded_resource)
                };
                map.insert(Key::String(Arc::new(key)), child);
            }
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

fn float(value: f64, kind: Kind) -> Cel {
    let integral = kind == Kind::Integer && value.fract() == 0.0 && value.abs() < i64::MAX as f64;
    if integral { Cel::Int(value as i64) } else { Cel::Float(value) }
}

/// Of an object's metadata rules see the name only: the rest is not theirs to judge.
fn names_only(metadata: &Value) -> Cel {
    let names = ["name", "generateName"].into_iter().filter_map(|field| {
        let text = metadata.get(field)?.as_str()?;
        Some((Key::String(Arc::new(field.into())), Cel::from(text)))
    });
    Cel::Map(Map { map: Arc::new(names.collect()) })
}

fn string(schema: &Schema, text: &str) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_string()));
    let format = schema.rules.as_ref().and_then(|rules| rules.format);
    match format {
        Some(Format::DateTime) => {
            functions::timestamp(Arc::new(text.to_uppercase())).unwrap_or_else(|_| plain())
        }
        Some(Format::Date) => {
            functions::timestamp(Arc::new(format!("{text}T00:00:00Z"))).unwrap_or_else(|_| plain())
        }
        Some(Format::Duration) => functions::duration(Arc::new(text.to_string())).unwrap_or_else(|_| plain()),
        Some(Format::Byte) => {
            use base64::Engine as _;
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            bytes.map_or_else(|_| plain(), |bytes| Cel::Bytes(Arc::new(bytes)))
        }
        _ => plain(),
    }
}

const RESERVED: &str = "true false null in as break const continue else for function if import let loop \
    package namespace return var void while";

/// How a rule writes a field's name; `None` for names that no rule can reach.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.split_ascii_whitespace().any(|word| word == name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let (replacement, width) = match first {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c.is_ascii_alphanumeric() || c == '_' => (&rest[..1], 1),
            _ => return None,
        };
        escaped.push_str(replacement);
        rest = &rest[width..];
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_are_written_as_kubernetes_writes_them() {
        for (name, escaped) in [
            ("namespace", Some("__namespace__")),
            ("my_field", Some("my_field")),
            ("a__b", Some("a__underscores__b")),
            ("x-y.z/w", Some("x__dash__y__dot__z__slash__w")),
            ("1st", None),
            ("ä", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }
}
