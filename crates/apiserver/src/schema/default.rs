//! Defaulting: fills in what a schema supplies and the client left out.
//!
//! Owns the treatment of `null`: where a field may not be null, it means "absent". Must never replace a
//! value that the client did give.

use serde_json::Value;

use super::Schema;

/// Fills the defaults of the whole tree, then drops nulls that are neither allowed nor defaulted.
pub fn apply_defaults(schema: &Schema, value: &mut Value) {
    fill(schema, value);
    drop_nulls(schema, value);
}

fn fill(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, field) in &schema.properties {
                let Some(default) = &field.default else { continue };
                match object.get(&**name) {
                    None => {
                        object.insert(name.to_string(), default.clone());
                    }
                    Some(Value::Null) if !field.nullable => {
                        object.insert(name.to_string(), default.clone());
                    }
                    Some(_) => {}
                }
            }
            for (name, child) in object {
                if let Some(field) = schema.field(name) {
                    replace_null(field, child);
                    fill(field, child);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = &schema.items else { return };
            for child in list {
                replace_null(items, child);
                fill(items, child);
            }
        }
        _ => {}
    }
}

fn replace_null(schema: &Schema, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

/// Elements of lists stay, null or not: their place may mean something.
fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(object) => object.retain(|name, child| match schema.field(name) {
            Some(field) if child.is_null() => field.nullable || field.default.is_some(),
            Some(field) => {
                drop_nulls(field, child);
                true
            }
            None => true,
        }),
        Value::Array(list) => {
            if let Some(items) = &schema.items {
                list.iter_mut().for_each(|child| drop_nulls(items, child));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{any_json, any_schema};
    use super::super::{Schema, from_crd};
    use super::*;

    fn defaulted(schema: &Value, mut value: Value) -> Value {
        apply_defaults(&from_crd(schema).expect("a good schema"), &mut value);
        value
    }

    #[test]
    fn missing_fields_are_filled_at_every_level() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "default": {}, "properties": {
                "replicas": {"type": "integer", "default": 3},
                "disks": {"type": "array", "items": {"type": "object", "properties": {
                    "mode": {"type": "string", "default": "rw"},
                }}},
                "pools": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                    "weight": {"type": "integer", "default": 1},
                }}},
            }},
        }});
        assert_eq!(defaulted(&schema, json!({})), json!({"spec": {"replicas": 3}}));
        assert_eq!(
            defaulted(
                &schema,
                json!({"spec": {"replicas": 1, "disks": [{}, {"mode": "ro"}], "pools": {"a": {}}}})
            ),
            json!({"spec": {"replicas": 1, "disks": [{"mode": "rw"}, {"mode": "ro"}], "pools": {"a": {"weight": 1}}}})
        );
    }

    #[test]
    fn null_means_absent_unless_the_field_may_be_null() {
        let schema = json!({"type": "object", "properties": {
            "defaulted": {"type": "string", "default": "d"},
            "nullable": {"type": "string", "nullable": true, "default": "d"},
            "plain": {"type": "string"},
            "map": {"type": "object", "additionalProperties": {"type": "string", "default": "d"}},
            "list": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }});
        assert_eq!(
            defaulted(
                &schema,
                json!({"defaulted": null, "nullable": null, "plain": null, "map": {"a": null}, "list": [null], "free": {"x": null}})
            ),
            json!({"defaulted": "d", "nullable": null, "map": {"a": "d"}, "list": [null], "free": {"x": null}})
        );
    }

    #[test]
    fn an_explicit_null_creation_time_disappears() {
        let schema = json!({"type": "object"});
        assert_eq!(
            defaulted(&schema, json!({"metadata": {"name": "a", "creationTimestamp": null}})),
            json!({"metadata": {"name": "a"}})
        );
    }

    proptest! {
        #[test]
        fn defaulting_twice_changes_nothing_more(schema in any_schema(), mut value in any_json()) {
            let schema: Schema = from_crd(&schema).expect("generated schemas are well formed");
            apply_defaults(&schema, &mut value);
            let once = value.clone();
            apply_defaults(&schema, &mut value);
            prop_assert_eq!(once, value);
        }
    }
}
