//! What an update tried to change, for refusals of immutable parts.
//!
//! Owns the text after `… is immutable`. Must never be used for a Secret's values.

use serde_json::Value;

use super::access::same;

/// Longer lists help nobody.
const SHOWN: usize = 10;

static NULL: Value = Value::Null;

/// One `-` and one `+` line for each field that differs, each after a line break.
pub fn listed(old: &Value, new: &Value) -> String {
    let mut found = Vec::new();
    collect(old, new, String::new(), &mut found);
    let mut text = String::new();
    for (path, old, new) in found.iter().take(SHOWN) {
        if !old.is_null() {
            text.push_str(&format!("\n- {path}: {old}"));
        }
        if !new.is_null() {
            text.push_str(&format!("\n+ {path}: {new}"));
        }
    }
    if found.len() > SHOWN {
        text.push_str(&format!("\n... and {} more", found.len() - SHOWN));
    }
    text
}

fn collect<'a>(
    old: &'a Value,
    new: &'a Value,
    path: String,
    found: &mut Vec<(String, &'a Value, &'a Value)>,
) {
    if same(old, new) {
        return;
    }
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let value = |map: &'a serde_json::Map<String, Value>| map.get(key).unwrap_or(&NULL);
                collect(value(before), value(after), path, found);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for i in 0..before.len().max(after.len()) {
                let value = |list: &'a Vec<Value>| list.get(i).unwrap_or(&NULL);
                collect(value(before), value(after), format!("{path}[{i}]"), found);
            }
        }
        _ => found.push((path, old, new)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_fields_that_differ_are_listed() {
        let old = json!({ "class": "fast", "modes": ["RWO"], "same": { "a": 1 }, "gone": true });
        let new = json!({ "class": "slow", "modes": ["RWO", "RWX"], "same": { "a": 1, "b": null } });
        assert_eq!(
            listed(&old, &new),
            "\n- class: \"fast\"\n+ class: \"slow\"\n- gone: true\n+ modes[1]: \"RWX\""
        );
    }
}
