//! Reading and filling `serde_json` objects whose shape nobody has checked yet.
//!
//! Owns the small accessors that the kinds share. Must never panic: a field of a wrong type reads as absent.

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// The value at a JSON pointer; `null` when it is not there.
pub fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&NULL)
}

/// The text at a pointer, empty when it is absent or not text.
pub fn str_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).as_str().unwrap_or_default()
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    str_at(object, "/metadata/name")
}

/// The whole number at a pointer, if there is one.
pub fn int_at(object: &Value, pointer: &str) -> Option<i64> {
    at(object, pointer).as_i64()
}

/// Whether the value at a pointer is `true`.
pub fn bool_at(object: &Value, pointer: &str) -> bool {
    at(object, pointer).as_bool().unwrap_or_default()
}

/// The elements of the list at a pointer, none when it is absent.
pub fn list_at<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The texts of the list at a pointer; elements of another type read as empty.
pub fn texts_at<'a>(object: &'a Value, pointer: &str) -> Vec<&'a str> {
    list_at(object, pointer).iter().map(|v| v.as_str().unwrap_or_default()).collect()
}

/// The entries of the map at a pointer, none when it is absent.
pub fn entries_at<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    at(object, pointer).as_object().into_iter().flatten().map(|(k, v)| (k.as_str(), v))
}

/// Whether there is anything but `null` at a pointer.
pub fn is_set(object: &Value, pointer: &str) -> bool {
    !at(object, pointer).is_null()
}

/// How many elements or entries are at a pointer.
pub fn len_at(object: &Value, pointer: &str) -> usize {
    match at(object, pointer) {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    }
}

/// The map at a pointer, made if it or its parents are missing. `None` when something else is in the way.
pub fn map_mut<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    let mut here = object;
    for key in pointer.split('/').skip(1) {
        let map = here.as_object_mut()?;
        here = map.entry(key.replace("~1", "/").replace("~0", "~")).or_insert(Value::Null);
        if here.is_null() {
            *here = Value::Object(Map::new());
        }
    }
    here.as_object_mut()
}

/// The elements of the list at a pointer, to be changed in place.
pub fn each_mut<'a>(object: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Sets a field that is absent or `null`; parents are made on the way.
pub fn fill(object: &mut Value, pointer: &str, value: impl Into<Value>) {
    fill_where(object, pointer, value.into(), Value::is_null);
}

/// Sets a field that is absent, `null` or the zero of its type: what a Go server cannot tell from absent.
pub fn fill_zero(object: &mut Value, pointer: &str, value: impl Into<Value>) {
    fill_where(object, pointer, value.into(), is_zero);
}

fn fill_where(object: &mut Value, pointer: &str, value: Value, missing: fn(&Value) -> bool) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    let Some(map) = map_mut(object, parent) else { return };
    let slot = map.entry(key.replace("~1", "/").replace("~0", "~")).or_insert(Value::Null);
    if missing(slot) {
        *slot = value;
    }
}

/// Removes a field, if its parent is there.
pub fn remove(object: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, key) = pointer.rsplit_once('/')?;
    object.pointer_mut(parent)?.as_object_mut()?.remove(key)
}

/// Keeps an old field for one text and its newer list in step; where they differ, the old field wins.
pub fn mirror_first(object: &mut Value, one: &str, list: &str) {
    let single = str_at(object, one).to_string();
    let first = list_at(object, list).first().cloned();
    if single.is_empty() {
        if let Some(first) = first {
            remove(object, one);
            fill(object, one, first);
        }
    } else if first.as_ref().and_then(Value::as_str) != Some(&single) {
        remove(object, list);
        fill(object, list, serde_json::json!([single]));
    }
}

/// `null`, `false`, `0`, `""`, `[]` and `{}`: what Kubernetes leaves out when it writes an object.
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_zero),
    }
}

/// Whether two values mean the same, where an absent field is as good as the zero of its type.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().all(|(k, v)| same(v, b.get(k).unwrap_or(&NULL)))
                && b.iter().all(|(k, v)| a.contains_key(k) || is_zero(v))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(x, y)),
        _ => a == b || (is_zero(a) && is_zero(b)),
    }
}

/// Whether the same thing is at a pointer in two objects.
pub fn same_at(a: &Value, b: &Value, pointer: &str) -> bool {
    same(at(a, pointer), at(b, pointer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_of_the_wrong_type_reads_as_absent() {
        let object = json!({ "spec": 7, "list": "no", "flag": "yes" });
        assert_eq!(str_at(&object, "/spec/nodeName"), "");
        assert!(list_at(&object, "/list").is_empty());
        assert!(!bool_at(&object, "/flag"));
        assert_eq!(entries_at(&object, "/list").count(), 0);
    }

    #[test]
    fn filling_makes_parents_but_never_overwrites() {
        let mut object = json!({ "spec": { "kept": false, "text": "" }, "odd": "text" });
        fill(&mut object, "/status/phase", "Pending");
        fill(&mut object, "/spec/kept", true);
        fill(&mut object, "/spec/text", "x");
        fill_zero(&mut object, "/metadata/labels/a~1b", "c");
        fill(&mut object, "/odd/child", 1);
        let filled = json!({
            "spec": { "kept": false, "text": "" }, "odd": "text",
            "status": { "phase": "Pending" }, "metadata": { "labels": { "a/b": "c" } },
        });
        assert_eq!(object, filled);
    }

    #[test]
    fn the_old_field_for_one_and_the_list_agree() {
        for (object, agreed) in [
            (json!({ "one": "a" }), json!({ "one": "a", "all": ["a"] })),
            (json!({ "all": ["a", "b"] }), json!({ "one": "a", "all": ["a", "b"] })),
            (json!({ "one": "c", "all": ["a", "b"] }), json!({ "one": "c", "all": ["c"] })),
            (json!({ "one": "" }), json!({ "one": "" })),
        ] {
            let mut object = object;
            mirror_first(&mut object, "/one", "/all");
            assert_eq!(object, agreed);
        }
    }

    #[test]
    fn absent_and_zero_mean_the_same() {
        assert!(same(&json!({ "a": 1, "b": null, "c": [] }), &json!({ "a": 1, "d": false, "e": {} })));
        assert!(same(&json!({ "r": { "limits": {} } }), &json!({})));
        assert!(!same(&json!({ "a": 1 }), &json!({})));
        assert!(!same(&json!([1, 2]), &json!([2, 1])));
    }
}
