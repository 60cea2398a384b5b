//! Pruning: removes what a schema does not specify, and names it for strict field validation.
//!
//! Owns the meaning of "unknown field". Must never touch what stands below a preserving node, except
//! inside the fields that are specified there.

use std::sync::LazyLock;

use serde_json::Value;

use super::Schema;
use super::path::Path;

/// Removes unknown fields and returns their paths, sorted: `spec.foo`, `spec.disks[0].bar`.
pub fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut walk = Walk::default();
    walk.prune(schema, value, schema.preserve_unknown);
    walk.finish()
}

/// The paths that [`prune`] would remove.
pub fn unknown_fields(schema: &Schema, value: &Value) -> Vec<String> {
    let mut walk = Walk::default();
    walk.report(schema, value, schema.preserve_unknown);
    walk.finish()
}

/// The schema of a list's elements and whether they keep unspecified fields; `None` if nothing can go.
fn elements(schema: &Schema, preserve: bool) -> Option<(&Schema, bool)> {
    static UNSPECIFIED: LazyLock<Schema> = LazyLock::new(Schema::default);
    match &schema.items {
        Some(items) => Some((items, preserve || items.preserve_unknown)),
        None if preserve => None,
        None => Some((&UNSPECIFIED, false)),
    }
}

#[derive(Default)]
struct Walk {
    path: Path,
    unknown: Vec<String>,
}

impl Walk {
    fn finish(mut self) -> Vec<String> {
        self.unknown.sort_unstable();
        self.unknown
    }

    /// `preserve`: whether unspecified fields stay here, because this node or a list around it says so.
    fn prune(&mut self, schema: &Schema, value: &mut Value, preserve: bool) {
        match value {
            Value::Object(object) => object.retain(|name, child| match schema.field(name) {
                Some(field) => {
                    let mark = self.path.field(name);
                    self.prune(field, child, field.preserve_unknown);
                    self.path.back(mark);
                    true
                }
                None => self.keep(preserve, name),
            }),
            Value::Array(list) => {
                let Some((items, preserve)) = elements(schema, preserve) else { return };
                for (index, child) in list.iter_mut().enumerate() {
                    let mark = self.path.index(index);
                    self.prune(items, child, preserve);
                    self.path.back(mark);
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, schema: &Schema, value: &Value, preserve: bool) {
        match value {
            Value::Object(object) => {
                for (name, child) in object {
                    match schema.field(name) {
                        Some(field) => {
                            let mark = self.path.field(name);
                            self.report(field, child, field.preserve_unknown);
                            self.path.back(mark);
                        }
                        None => {
                            self.keep(preserve, name);
                        }
                    }
                }
            }
            Value::Array(list) => {
                let Some((items, preserve)) = elements(schema, preserve) else { return };
                for (index, child) in list.iter().enumerate() {
                    let mark = self.path.index(index);
                    self.report(items, child, preserve);
                    self.path.back(mark);
                }
            }
            _ => {}
        }
    }

    /// Whether an unspecified field stays; notes it if not.
    fn keep(&mut self, preserve: bool, name: &str) -> bool {
        if !preserve {
            let mark = self.path.field(name);
            self.unknown.push(self.path.as_str().into());
            self.path.back(mark);
        }
        preserve
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use proptest::prelude::*;
    use schemars::SchemaGenerator;
    use serde_json::json;

    use super::super::testing::{any_json, any_schema};
    use super::super::{Definitions, from_crd};
    use super::*;

    fn schema(json: &Value) -> Schema {
        from_crd(json).expect("a good schema")
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let schema = schema(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "string"},
                "disks": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            }}}}),
        );
        let mut object = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "nmae": "b"},
            "spec": {"size": "1", "sise": "2", "disks": [{"name": "x", "bar": {"y": 1}}], "labels": {"any": "thing"}},
            "extra": true,
        });
        let unknown = unknown_fields(&schema, &object);
        assert_eq!(unknown, ["extra", "metadata.nmae", "spec.disks[0].bar", "spec.sise"]);
        assert_eq!(prune(&schema, &mut object), unknown);
        assert_eq!(
            object,
            json!({
                "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
                "spec": {"size": "1", "disks": [{"name": "x"}], "labels": {"any": "thing"}},
            })
        );
    }

    #[test]
    fn below_a_preserving_node_only_specified_fields_are_pruned() {
        let schema = schema(&json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }}}));
        let mut object = json!({"spec": {"free": {"x": [1, {"y": 2}]}, "known": {"a": "1", "b": "2"}}});
        assert_eq!(prune(&schema, &mut object), ["spec.known.b"]);
        assert_eq!(object, json!({"spec": {"free": {"x": [1, {"y": 2}]}, "known": {"a": "1"}}}));
    }

    #[test]
    fn an_embedded_resource_keeps_its_type_and_metadata() {
        let schema = schema(&json!({"type": "object", "properties": {"template": {
            "type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        }}}));
        let mut object = json!({"template": {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}, "other": 1,
        }});
        assert_eq!(prune(&schema, &mut object), ["template.other"]);
    }

    #[test]
    fn a_pod_with_a_typing_mistake() {
        let pod = Definitions::new().kind("io.k8s.api.core.v1.Pod", SchemaGenerator::subschema_for::<Pod>);
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "managedFields": [{"fieldsV1": {"f:spec": {}}}]},
            "spec": {"containers": [{"name": "a", "imagee": "b", "resources": {"limits": {"cpu": "1"}}}]},
        });
        assert_eq!(unknown_fields(&pod, &object), ["spec.containers[0].imagee"]);
    }

    proptest! {
        #[test]
        fn what_is_pruned_stays_pruned(schema in any_schema(), mut value in any_json()) {
            let schema = from_crd(&schema).expect("generated schemas are well formed");
            let announced = unknown_fields(&schema, &value);
            prop_assert_eq!(prune(&schema, &mut value), announced);
            let once = value.clone();
            prop_assert!(unknown_fields(&schema, &value).is_empty());
            prop_assert!(prune(&schema, &mut value).is_empty());
            prop_assert_eq!(once, value);
        }
    }
}
