//! The last step from a derived schema to one that an API server takes and that keeps what clients send:
//! short descriptions, `null` only where Go clients send it, nothing pruned, quantities checked.
//! Works on the JSON of a schema alone; knows no kind.

use serde_json::{Map, Value, json};

/// What Kubernetes accepts as the text of a quantity.
const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Descriptions are for `kubectl explain`; a longer one than this belongs into the documentation.
const MAX_DESCRIPTION: usize = 120;

/// Rewrites the schema of a whole object in place.
pub(crate) fn tidy_root(schema: &mut Value) {
    if let Value::Object(root) = schema {
        // The server itself keeps apiVersion, kind and metadata, so the root needs no permission for them.
        tidy_keywords(root);
        tidy_children(root);
    }
}

/// Lets the root carry members that no field is declared for: kinds without `spec` have theirs there.
pub(crate) fn keep_unknown_at_root(schema: &mut Value) {
    schema["x-kubernetes-preserve-unknown-fields"] = Value::Bool(true);
}

/// Makes a list one that is merged by the named member of its items; `path` is a JSON pointer.
pub(crate) fn merge_list_by(schema: &mut Value, path: &str, key: &str) {
    let list = schema.pointer_mut(path).expect("the table of kinds names a list of the schema");
    list["x-kubernetes-list-type"] = "map".into();
    list["x-kubernetes-list-map-keys"] = json!([key]);
}

/// Makes `spec` optional, as an object without one would otherwise be refused or not be readable.
pub(crate) fn default_spec(schema: &mut Value) {
    schema["properties"]["spec"]["default"] = json!({});
    let Some(required) = schema["required"].as_array_mut() else { return };
    required.retain(|name| name != "spec");
    if required.is_empty() {
        schema.as_object_mut().and_then(|root| root.remove("required"));
    }
}

fn tidy(schema: &mut Value) {
    if let Value::Object(node) = schema {
        tidy_keywords(node);
        keep_unknown(node);
        tidy_children(node);
    }
}

fn tidy_children(node: &mut Map<String, Value>) {
    for child in
        node.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
    {
        tidy(child);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(keyword) {
            tidy(child);
        }
    }
}

fn tidy_keywords(node: &mut Map<String, Value>) {
    match node.get("description").and_then(Value::as_str).and_then(first_sentence) {
        Some(short) => node.insert("description".to_owned(), Value::String(short)),
        None => node.remove("description"),
    };
    if !goes_null(node) {
        node.remove("nullable");
    }
    if let Some(values) = node.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    if node.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        node.insert("pattern".to_owned(), QUANTITY_PATTERN.into());
    }
}

/// Go writes an empty list, map or time as `null` unless told otherwise, and Longhorn's types do not say so.
/// Any other `null` is a mistake, which the server drops, so that a default can take its place.
fn goes_null(node: &Map<String, Value>) -> bool {
    let is = |keyword: &str, value: &str| node.get(keyword).and_then(Value::as_str) == Some(value);
    let list_map_or_time =
        is("type", "array") || is("format", "date-time") || node.contains_key("additionalProperties");
    list_map_or_time && !node.contains_key("default")
}

/// The server prunes members that a schema does not name; no object of ours may lose any that way.
fn keep_unknown(node: &mut Map<String, Value>) {
    let object = node.get("type").and_then(Value::as_str) == Some("object");
    if object && !node.contains_key("additionalProperties") {
        node.insert("x-kubernetes-preserve-unknown-fields".to_owned(), Value::Bool(true));
    }
}

fn first_sentence(text: &str) -> Option<String> {
    let paragraph = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |stop| stop + 1);
    let sentence = paragraph[..end].trim();
    (!sentence.is_empty() && sentence.len() <= MAX_DESCRIPTION).then(|| sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_end_with_their_first_sentence_or_vanish() {
        assert_eq!(first_sentence("One thing. Another."), Some("One thing.".to_owned()));
        assert_eq!(first_sentence("One\nthing\n\nMore"), Some("One thing".to_owned()));
        assert_eq!(first_sentence(&"long ".repeat(40)), None);
        assert_eq!(first_sentence(""), None);
    }

    #[test]
    fn null_is_allowed_for_lists_maps_and_times_only_and_never_beside_a_default() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "nullable": true},
                "tags": {"type": "array", "nullable": true, "items": {"type": "string", "nullable": true}},
                "labels": {"type": "object", "nullable": true, "additionalProperties": {"type": "string"}},
                "at": {"type": "string", "format": "date-time", "nullable": true},
                "list": {"type": "array", "nullable": true, "default": [], "items": {"type": "string"}},
            }
        });
        tidy_root(&mut schema);
        let nullable = |name: &str| schema["properties"][name]["nullable"] == true;
        assert!(nullable("tags") && nullable("labels") && nullable("at"));
        assert!(!nullable("name") && !nullable("list"));
        assert!(schema["properties"]["tags"]["items"]["nullable"].is_null());
    }

    #[test]
    fn every_object_below_the_root_keeps_unknown_members() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {"deep": {"type": "object"}}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {}}},
            }
        });
        tidy_root(&mut schema);
        let keeps = |node: &Value| node["x-kubernetes-preserve-unknown-fields"] == true;
        assert!(!keeps(&schema));
        assert!(keeps(&schema["properties"]["spec"]));
        assert!(keeps(&schema["properties"]["spec"]["properties"]["deep"]));
        assert!(!keeps(&schema["properties"]["map"]), "a map has no unknown members");
        assert!(keeps(&schema["properties"]["map"]["additionalProperties"]));
    }

    #[test]
    fn an_absent_spec_becomes_an_empty_one() {
        let mut schema = json!({"required": ["spec"], "properties": {"spec": {"type": "object"}}});
        default_spec(&mut schema);
        assert_eq!(schema, json!({"properties": {"spec": {"type": "object", "default": {}}}}));
    }
}
