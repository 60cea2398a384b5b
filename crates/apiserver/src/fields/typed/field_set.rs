//! The set of fields that a configuration mentions, and the repairs a stored set needs when schemas change.
//!
//! Owns the rule which containers are members of such a set. Must never change a value.

use serde_json::Value;

use super::{Shape, distinct, field_schema, is_atomic, is_named, item_schema, schema_below};
use crate::fields::path::PathElement;
use crate::fields::set::Set;
use crate::fields::{FieldsError, Problem};
use crate::schema::{Kind, Schema};

/// Every leaf and every list item that `value` mentions. Lists in which two items have the same key are
/// refused: nobody could say which of them is owned.
pub fn field_set(schema: &Schema, value: &Value) -> Result<Set, FieldsError> {
    collect(schema, value, Duplicates::Refused)
}

/// As [`field_set`], for objects that may have been stored with duplicate items.
pub(in crate::fields) fn stored_field_set(schema: &Schema, value: &Value) -> Result<Set, FieldsError> {
    collect(schema, value, Duplicates::OwnedTogether)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Duplicates {
    Refused,
    OwnedTogether,
}

fn collect(schema: &Schema, value: &Value, duplicates: Duplicates) -> Result<Set, FieldsError> {
    let mut set = Set::new();
    match Shape::of(schema, value) {
        Shape::Leaf => {}
        Shape::Map(map) => {
            for (name, value) in map {
                let element = PathElement::field(name);
                let below = field_schema(schema, name);
                let children = collect(below, value, duplicates).map_err(|e| e.within(&element))?;
                let member = is_leaf(below, value) || !is_named(schema, name);
                set.push(element, member, children);
            }
        }
        Shape::List(items) => {
            for (element, item) in distinct(schema, items)? {
                let children = match item {
                    Some(item) => {
                        collect(item_schema(schema), item, duplicates).map_err(|e| e.within(&element))?
                    }
                    None if duplicates == Duplicates::OwnedTogether => Set::new(),
                    None => return Err(Problem::Duplicate(element.to_string()).here()),
                };
                set.push(element, true, children);
            }
        }
    }
    Ok(set)
}

/// An empty list that could be merged is no leaf: to mention it claims nothing.
fn is_leaf(schema: &Schema, value: &Value) -> bool {
    match Shape::of(schema, value) {
        Shape::Leaf => true,
        Shape::Map(map) => map.is_empty(),
        Shape::List(_) => false,
    }
}

/// The set with every named field that has members below it as a member too. Such fields are normally left
/// out because owning `spec.replicas` does not mean owning `spec`; removal must see them nevertheless.
pub(in crate::fields) fn with_named_fields(schema: &Schema, mut set: Set) -> Set {
    add_named_fields(schema, &mut set);
    set
}

fn add_named_fields(schema: &Schema, set: &mut Set) {
    for node in set.nodes_mut() {
        if let PathElement::Field(name) = &node.element {
            node.member |= is_named(schema, name);
        }
        add_named_fields(schema_below(schema, &node.element), &mut node.children);
    }
}

/// Brings a stored set in line with a schema in which a container has become atomic since: whoever owned
/// something inside it now owns the whole. Says whether anything changed.
pub(in crate::fields) fn collapse_atomic(schema: &Schema, set: &mut Set) -> bool {
    if schema.kind == Kind::Any && schema.properties.is_empty() {
        return false;
    }
    let mut changed = false;
    for node in set.nodes_mut().filter(|node| !node.children.is_empty()) {
        let below = schema_below(schema, &node.element);
        if is_atomic(below) {
            node.member = true;
            node.children = Set::new();
            changed = true;
        } else {
            changed |= collapse_atomic(below, &mut node.children);
        }
    }
    changed
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "the stories pass literals")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::typed::testing::schema;

    fn fields(value: Value) -> Value {
        field_set(&schema(), &value).unwrap().to_fields_v1()
    }

    #[test]
    fn leaves_and_items_are_members_and_named_containers_are_not() {
        let set = fields(json!({
            "metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["keep"]},
            "spec": {
                "replicas": 2,
                "containers": [{"name": "web", "image": "nginx", "args": ["-v"]}],
                "free": {"a": {"b": 1}, "list": [1, 2]},
            },
        }));
        assert_eq!(
            set,
            json!({
                "f:metadata": {
                    "f:name": {},
                    "f:labels": {"f:app": {}},
                    "f:finalizers": {r#"v:"keep""#: {}},
                },
                "f:spec": {
                    "f:replicas": {},
                    "f:containers": {
                        r#"k:{"name":"web"}"#: {".": {}, "f:name": {}, "f:image": {}, "f:args": {}},
                    },
                    // Nothing says what is in `free`: its fields are members whatever they hold.
                    "f:free": {"f:a": {".": {}, "f:b": {}}, "f:list": {}},
                },
            })
        );
    }

    #[test]
    fn atomic_containers_and_empty_objects_are_leaves_and_empty_lists_are_nothing() {
        let set = fields(json!({"spec": {"selector": {"app": "web"}, "containers": [], "free": {}}}));
        assert_eq!(set, json!({"f:spec": {"f:selector": {}, "f:free": {}}}));
    }

    #[test]
    fn null_is_a_leaf() {
        assert_eq!(fields(json!({"spec": {"containers": null}})), json!({"f:spec": {"f:containers": {}}}));
    }

    #[test]
    fn a_key_that_is_missing_takes_its_default() {
        let with = json!({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}});
        let port = r#"k:{"containerPort":80,"protocol":"TCP"}"#;
        assert!(fields(with)["f:spec"]["f:containers"][r#"k:{"name":"a"}"#]["f:ports"].get(port).is_some());
    }

    #[test]
    fn items_that_cannot_be_told_apart_are_refused() {
        let error = |value| field_set(&schema(), &value).unwrap_err().to_string();
        assert_eq!(
            error(json!({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}})),
            r#".spec.containers: duplicate entries for key [name="a"]"#
        );
        assert_eq!(
            error(json!({"metadata": {"finalizers": ["x", "x"]}})),
            r#".metadata.finalizers: duplicate entries for key [="x"]"#
        );
        assert_eq!(
            error(json!({"spec": {"containers": [{"image": "a"}]}})),
            ".spec.containers[0]: an item of a list with keys has none of its key fields: name"
        );
        assert!(field_set(&schema(), &json!({"spec": {"containers": ["a"]}})).is_err());
        assert!(field_set(&schema(), &json!({"metadata": {"finalizers": [{}]}})).is_err());
    }

    #[test]
    fn duplicates_that_are_stored_are_owned_together() {
        let stored = json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "a"}]}});
        let set = stored_field_set(&schema(), &stored).unwrap();
        assert_eq!(set.to_fields_v1(), json!({"f:spec": {"f:containers": {r#"k:{"name":"a"}"#: {}}}}));
    }

    #[test]
    fn a_set_from_before_a_container_became_atomic_collapses() {
        let old = json!({"f:spec": {"f:selector": {"f:app": {}}, "f:replicas": {}, "f:free": {"f:a": {"f:b": {}}}}});
        let mut set = Set::from_fields_v1(&old).unwrap();
        assert!(collapse_atomic(&schema(), &mut set));
        let new = json!({"f:spec": {"f:selector": {}, "f:replicas": {}, "f:free": {"f:a": {"f:b": {}}}}});
        assert_eq!(set.to_fields_v1(), new);
        assert!(!collapse_atomic(&schema(), &mut set));
    }
}
