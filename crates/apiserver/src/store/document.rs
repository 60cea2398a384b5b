//! An object on its way into the store: its JSON, complete but for the revision that it is about to get.
//!
//! Owns the place of `metadata.resourceVersion`. Objects are written out by the tasks that bring them, so that
//! the one thread that writes only has to copy bytes.

use serde_json::{Map, Value};

const VERSION: &str = "resourceVersion";

#[derive(Debug)]
pub(super) struct Document {
    json: Vec<u8>,
    /// Where the digits of the revision belong.
    at: usize,
    /// The objects that this one belongs to.
    pub owners: Vec<String>,
}

impl Document {
    pub fn of(object: &Value) -> Self {
        let mut json = Vec::with_capacity(512);
        let mut at = None;
        let none = Map::new();
        let members = object.as_object().unwrap_or(&none);
        json.push(b'{');
        for (name, value) in members {
            name_member(&mut json, name);
            if name == "metadata" {
                at = Some(write_metadata(&mut json, value.as_object().unwrap_or(&none)));
            } else {
                append(&mut json, value);
            }
        }
        let at = at.unwrap_or_else(|| {
            name_member(&mut json, "metadata");
            write_metadata(&mut json, &none)
        });
        json.push(b'}');
        Self { json, at, owners: owner_uids(object) }
    }

    pub fn len(&self) -> usize {
        self.json.len()
    }

    /// What comes before and after the digits of the revision.
    pub fn halves(&self) -> (&[u8], &[u8]) {
        self.json.split_at(self.at)
    }
}

/// Writes all members but the version, and leaves a place for that where the order of names has it.
fn write_metadata(json: &mut Vec<u8>, metadata: &Map<String, Value>) -> usize {
    let mut at = None;
    json.push(b'{');
    for (name, value) in metadata.iter().filter(|(name, _)| *name != VERSION) {
        if at.is_none() && name.as_str() > VERSION {
            at = Some(leave_place(json));
        }
        name_member(json, name);
        append(json, value);
    }
    let at = at.unwrap_or_else(|| leave_place(json));
    json.push(b'}');
    at
}

fn leave_place(json: &mut Vec<u8>) -> usize {
    name_member(json, VERSION);
    json.extend_from_slice(b"\"\"");
    json.len() - 1
}

fn name_member(json: &mut Vec<u8>, name: &str) {
    if json.last() != Some(&b'{') {
        json.push(b',');
    }
    append(json, name);
    json.push(b':');
}

fn append<T: serde::Serialize + ?Sized>(json: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(json, value).expect("JSON values have text keys, and memory takes every write");
}

pub(super) fn owner_uids(object: &Value) -> Vec<String> {
    let Some(references) = object.pointer("/metadata/ownerReferences").and_then(Value::as_array) else {
        return Vec::new();
    };
    references.iter().filter_map(|r| r["uid"].as_str()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Document;

    fn stored(object: &Value, revision: u64) -> String {
        let document = Document::of(object);
        let (head, tail) = document.halves();
        format!("{}{revision}{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
    }

    #[test]
    fn a_document_is_the_object_with_its_revision() {
        for object in [
            json!({ "metadata": {} }),
            json!({ "metadata": { "name": "a" } }),
            json!({ "metadata": { "uid": "u" } }),
            json!({ "metadata": { "name": "a", "resourceVersion": "7", "uid": "u" }, "data": { "x": "\"\u{1}é" } }),
            json!({ "apiVersion": "v1", "data": { "metadata": { "resourceVersion": "1" } }, "metadata": { "name": "a" }, "z": [1, null] }),
            json!({ "metadata": null, "spec": {} }),
            json!({}),
        ] {
            let mut expected = object.clone();
            expected["metadata"]["resourceVersion"] = "42".into();
            assert_eq!(stored(&object, 42), expected.to_string());
        }
    }

    #[test]
    fn owners_are_found() {
        let object = json!({ "metadata": { "ownerReferences": [{ "uid": "a" }, {}, { "uid": "b" }] } });
        assert_eq!(Document::of(&object).owners, ["a", "b"]);
    }
}
