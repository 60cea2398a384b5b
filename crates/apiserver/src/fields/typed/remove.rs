//! Taking the members of a set out of an object, or keeping nothing else.
//!
//! Owns removal and extraction by path. Must never remove what is not in the set.

use serde_json::{Map, Value};

use super::{Shape, field_schema, item_element, item_schema};
use crate::fields::set::{Node, Set};
use crate::schema::Schema;

/// Removes every member of `paths` from `value`, with all that is below it.
pub fn remove_items(schema: &Schema, value: &mut Value, paths: &Set) {
    if paths.is_empty() || matches!(Shape::of(schema, value), Shape::Leaf) {
        return;
    }
    match value {
        Value::Object(map) => {
            map.retain(|name, value| retain(paths.field(name), field_schema(schema, name), value));
        }
        Value::Array(items) => {
            items.retain_mut(|item| {
                let node = item_element(schema, item).ok().and_then(|element| paths.get(&element));
                retain(node, item_schema(schema), item)
            });
        }
        _ => {}
    }
}

/// Whether `value` stays; what `node` says is gone from it then. A container that is emptied stays, for it may
/// be somebody's.
fn retain(node: Option<&Node>, schema: &Schema, value: &mut Value) -> bool {
    let Some(node) = node else { return true };
    if node.member {
        return false;
    }
    remove_items(schema, value, &node.children);
    true
}

/// Only what is in `paths`; list items keep their key fields, without which they would be nobody.
pub fn extract_items(schema: &Schema, value: &Value, paths: &Set) -> Value {
    match Shape::of(schema, value) {
        Shape::Leaf => value.clone(),
        Shape::Map(map) => {
            let fields = map.iter().filter_map(|(name, value)| {
                let node = paths.field(name)?;
                Some((name.clone(), extract_items(field_schema(schema, name), value, &node.children)))
            });
            Value::Object(fields.collect())
        }
        Shape::List(items) => {
            let kept = items.iter().filter_map(|item| {
                let element = item_element(schema, item).ok()?;
                let node = paths.get(&element)?;
                let mut kept = extract_items(item_schema(schema), item, &node.children);
                if let Value::Object(fields) = &mut kept {
                    keep_keys(schema, item, fields);
                }
                Some(kept)
            });
            Value::Array(kept.collect())
        }
    }
}

fn keep_keys(schema: &Schema, item: &Value, kept: &mut Map<String, Value>) {
    let crate::schema::ListKind::Map(keys) = &schema.list else { return };
    for key in keys {
        if let Some(value) = item.get(&**key) {
            kept.insert(key.to_string(), value.clone());
        }
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "the stories pass literals")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::typed::testing::schema;

    fn set(fields: Value) -> Set {
        Set::from_fields_v1(&fields).unwrap()
    }

    #[test]
    fn members_go_with_all_they_hold_and_emptied_containers_stay() {
        let mut object = json!({
            "metadata": {"labels": {"a": "1"}, "finalizers": ["x", "y"], "name": "n"},
            "spec": {"replicas": 1, "containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
        });
        let gone = set(json!({
            "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {r#"v:"x""#: {}}},
            "f:spec": {"f:containers": {r#"k:{"name":"a"}"#: {"f:image": {}}, r#"k:{"name":"b"}"#: {}}},
        }));
        remove_items(&schema(), &mut object, &gone);
        let want = json!({
            "metadata": {"labels": {}, "finalizers": ["y"], "name": "n"},
            "spec": {"replicas": 1, "containers": [{"name": "a"}]},
        });
        assert_eq!(object, want);
    }

    #[test]
    fn what_is_inside_an_atomic_container_cannot_be_removed() {
        let mut object = json!({"spec": {"selector": {"a": "1"}}});
        let before = object.clone();
        remove_items(&schema(), &mut object, &set(json!({"f:spec": {"f:selector": {"f:a": {}}}})));
        assert_eq!(object, before);
    }

    #[test]
    fn extraction_keeps_the_set_and_the_keys() {
        let object = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}, "name": "n"},
            "spec": {"selector": {"x": "y"}, "containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
        });
        let kept = set(json!({
            "f:metadata": {"f:labels": {"f:a": {}}},
            "f:spec": {"f:selector": {}, "f:containers": {r#"k:{"name":"a"}"#: {"f:image": {}}}},
        }));
        let want = json!({
            "metadata": {"labels": {"a": "1"}},
            "spec": {"selector": {"x": "y"}, "containers": [{"name": "a", "image": "1"}]},
        });
        assert_eq!(extract_items(&schema(), &object, &kept), want);
    }
}
