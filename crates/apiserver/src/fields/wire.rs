//! FieldsV1: the JSON form of a set in `managedFields`.
//!
//! Owns the four element prefixes and the `"."` that marks a parent as a member. Must never be lenient about
//! elements it knows: a wrong ownership record is worse than none.

use serde_json::{Map, Value};

use super::path::PathElement;
use super::set::{Node, Set};
use super::{FieldsError, Problem};

impl Set {
    /// The FieldsV1 form.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(below(self, false))
    }

    /// Reads the FieldsV1 form. Elements of a kind that is not known are skipped with all that is below them.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsError> {
        let Value::Object(map) = fields else {
            return Err(undecodable(format!("expected an object, got {fields}")));
        };
        let mut nodes = Vec::with_capacity(map.len());
        for (key, below) in map.iter().filter(|(key, _)| *key != ".") {
            let Some(element) = element_from_text(key)? else { continue };
            let children = Self::from_fields_v1(below)?;
            // Without children the element itself must be meant.
            let member = children.is_empty() || below.get(".").is_some();
            nodes.push(Node { element, member, children });
        }
        // Keys come in the order of their text, which is not that of numbers.
        Ok(Set::from_nodes(nodes))
    }
}

/// The members below an element; `own` says that it is a member itself.
fn below(set: &Set, own: bool) -> Map<String, Value> {
    let mut map = Map::new();
    if own && !set.is_empty() {
        map.insert(".".into(), Value::Object(Map::new()));
    }
    for node in set.nodes() {
        map.insert(element_to_text(&node.element), Value::Object(below(&node.children, node.member)));
    }
    map
}

fn element_to_text(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => ["f:", name].concat(),
        PathElement::Key(fields) => {
            let mut text = String::from("k:{");
            for (i, (name, value)) in fields.iter().enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                push_string(&mut text, name);
                text.push(':');
                push_value(&mut text, value);
            }
            text.push('}');
            text
        }
        PathElement::Value(value) => {
            let mut text = String::from("v:");
            push_value(&mut text, value);
            text
        }
        PathElement::Index(index) => format!("i:{index}"),
    }
}

fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_string(out, text),
        other => out.push_str(&other.to_string()),
    }
}

/// Keys are nearly always plain words, which need no serializer.
fn push_string(out: &mut String, text: &str) {
    if text.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

fn element_from_text(text: &str) -> Result<Option<PathElement>, FieldsError> {
    let bad = || undecodable(format!("{text:?} is not a path element"));
    let (kind, rest) = text.split_once(':').filter(|(kind, _)| kind.len() == 1).ok_or_else(bad)?;
    Ok(Some(match kind {
        "f" => PathElement::Field(rest.into()),
        "k" => {
            let fields: Map<String, Value> = serde_json::from_str(rest).map_err(|_| bad())?;
            PathElement::key(fields)
        }
        "v" => PathElement::value(serde_json::from_str(rest).map_err(|_| bad())?),
        "i" => PathElement::Index(rest.parse().map_err(|_| bad())?),
        _ => return Ok(None),
    }))
}

fn undecodable(why: String) -> FieldsError {
    Problem::Undecodable(why).here()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::fields::Path;

    #[test]
    fn a_parent_that_is_a_member_carries_a_dot() {
        let set = Set::of_fields(&[&["metadata", "labels"], &["metadata", "labels", "app"], &["data"]]);
        let json = json!({"f:data": {}, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}});
        assert_eq!(set.to_fields_v1(), json);
        assert_eq!(Set::from_fields_v1(&json).unwrap(), set);
    }

    #[test]
    fn list_items_are_named_by_key_value_or_position() {
        let json = json!({
            "f:ports": {r#"k:{"containerPort":80,"protocol":"TCP"}"#: {".": {}, "f:name": {}}},
            "f:finalizers": {r#"v:"keep""#: {}},
            "f:matrix": {"i:0": {}},
        });
        let set = Set::from_fields_v1(&json).unwrap();
        assert_eq!(set.to_fields_v1(), json);
        let port = PathElement::key([("protocol", json!("TCP")), ("containerPort", json!(80))]);
        assert!(set.contains(&Path(vec![PathElement::field("ports"), port])));
    }

    #[test]
    fn unknown_kinds_of_elements_are_skipped_and_broken_ones_refused() {
        let set = Set::from_fields_v1(&json!({"x:future": {"f:a": {}}, "f:b": {}})).unwrap();
        assert_eq!(set, Set::of_fields(&[&["b"]]));
        for broken in [
            json!([]),
            json!("f:a"),
            json!({"f": {}}),
            json!({"spec": {}}),
            json!({"k:{": {}}),
            json!({"k:3": {}}),
            json!({"v:": {}}),
            json!({"i:one": {}}),
            json!({"f:a": 1}),
        ] {
            assert!(Set::from_fields_v1(&broken).is_err(), "{broken}");
        }
    }

    fn element() -> impl Strategy<Value = PathElement> {
        let scalar = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            "\\PC*".prop_map(Value::from)
        ];
        prop_oneof![
            "\\PC*".prop_map(|name| PathElement::field(&name)),
            prop::collection::btree_map("\\PC*", scalar.clone(), 1..3).prop_map(PathElement::key),
            scalar.prop_map(PathElement::value),
            any::<i64>().prop_map(PathElement::Index),
        ]
    }

    proptest! {
        #[test]
        fn fields_v1_round_trips(paths in prop::collection::vec(prop::collection::vec(element(), 1..5), 0..12)) {
            let set: Set = paths.into_iter().map(Path).collect();
            let text = serde_json::to_string(&set.to_fields_v1()).unwrap();
            let back = Set::from_fields_v1(&serde_json::from_str(&text).unwrap()).unwrap();
            prop_assert_eq!(back, set);
        }
    }
}
