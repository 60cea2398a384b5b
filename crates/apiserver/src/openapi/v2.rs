//! OpenAPI 2.0: one document for all kinds.
//!
//! Owns its frame; schemas and paths are made elsewhere.

use serde_json::{Value, json};

use super::definitions::definitions;
use super::operations::paths;
use super::{Described, Dialect};

pub fn document(kinds: &[Described<'_>]) -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Granary", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths(kinds, Dialect::V2),
        "definitions": definitions(kinds, Dialect::V2),
        "securityDefinitions": {
            "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer token"},
        },
        "security": [{"BearerToken": []}],
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds, widget};
    use super::*;

    /// Every `$ref` of a document.
    fn references(json: &Value, found: &mut Vec<String>) {
        match json {
            Value::Object(object) => {
                found.extend(object.get("$ref").and_then(Value::as_str).map(String::from));
                object.values().for_each(|child| references(child, found));
            }
            Value::Array(list) => list.iter().for_each(|child| references(child, found)),
            _ => {}
        }
    }

    #[test]
    fn nothing_is_referred_to_that_is_not_there() {
        let widget = widget();
        let document = document(&kinds(&widget));
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 300);
        for reference in found {
            let name = reference.strip_prefix("#/definitions/").expect("a definition");
            assert!(document["definitions"].get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn built_in_fields_say_how_they_merge() {
        let widget = widget();
        let document = document(&kinds(&widget));
        let containers = &document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
        let pod = &document["definitions"]["io.k8s.api.core.v1.Pod"];
        assert_eq!(
            pod["x-kubernetes-group-version-kind"],
            json!([{"group": "", "version": "v1", "kind": "Pod"}])
        );
        assert_eq!(pod["properties"]["spec"]["$ref"], "#/definitions/io.k8s.api.core.v1.PodSpec");
        assert!(pod["properties"]["spec"]["description"].is_string());
    }

    #[test]
    fn custom_kinds_are_weakened_to_what_version_2_can_say() {
        let widget = widget();
        let document = document(&kinds(&widget));
        let widget = &document["definitions"]["com.example.v1.Widget"];
        let spec = &widget["properties"]["spec"];
        assert!(spec.get("oneOf").is_none());
        assert_eq!(spec["required"], json!(["size"]));
        assert!(spec["properties"]["maybe"].get("type").is_none());
        assert!(spec["properties"]["raw"].get("type").is_none());
        assert!(spec["properties"]["raw"].get("properties").is_none());
        assert!(spec["properties"]["port"].get("anyOf").is_none());
        assert_eq!(spec["properties"]["disks"]["type"], "array");
        assert_eq!(spec["properties"]["pod"]["required"], json!(["kind", "apiVersion"]));
        let metadata = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        assert_eq!(widget["properties"]["metadata"]["$ref"], metadata);
        assert_eq!(document["definitions"]["com.example.v1.Gadget"]["type"], "object");
        assert!(document["definitions"].get("com.example.v1.WidgetList").is_some());
    }

    #[test]
    fn a_patch_can_be_tried_out() {
        let widget = widget();
        let document = document(&kinds(&widget));
        let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Widget");
        let names: Vec<&Value> =
            patch["parameters"].as_array().expect("a list").iter().map(|p| &p["name"]).collect();
        assert!(names.contains(&&json!("dryRun")) && names.contains(&&json!("fieldValidation")));
        assert!(document["paths"].get("/apis/authentication.k8s.io/v1/tokenreviews").is_some());
        assert!(document["paths"].get("/apis/authentication.k8s.io/v1/tokenreviews/{name}").is_none());
        assert!(document["paths"].get("/api/v1/namespaces/{namespace}/pods/{name}/status").is_some());
    }

    #[test]
    fn every_operation_has_an_id_of_its_own() {
        let widget = widget();
        let document = document(&kinds(&widget));
        let mut ids = Vec::new();
        for path in document["paths"].as_object().expect("paths").values() {
            ids.extend(
                path.as_object().expect("a path").values().filter_map(|op| op.get("operationId")?.as_str()),
            );
        }
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
        assert!(ids.contains(&"patchStorageV1StorageClass"));
        assert!(ids.contains(&"listCoreV1PodForAllNamespaces"));
    }
}
