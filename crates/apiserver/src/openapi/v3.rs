//! OpenAPI 3.0: an index, and one document for each group and version.
//!
//! Owns their frames. The index must never make documents: clients read it often and the documents rarely.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::definitions::definitions;
use super::operations::paths;
use super::{Described, Dialect, fingerprint};

/// Where the document of each group version is, under an address that changes when the document does.
pub fn index(kinds: &[Described<'_>]) -> Value {
    let mut groups: BTreeMap<String, Vec<Described<'_>>> = BTreeMap::new();
    for kind in kinds {
        groups.entry(kind.prefix()).or_default().push(kind.clone());
    }
    let paths: Map<String, Value> = groups
        .into_iter()
        .map(|(prefix, kinds)| {
            let address = format!("/openapi/v3/{prefix}?hash={}", fingerprint(&kinds));
            (prefix, json!({"serverRelativeURL": address}))
        })
        .collect();
    json!({ "paths": paths })
}

/// The document of one group version, named as in the index (`api/v1`, `apis/example.com/v1`).
pub fn document(prefix: &str, kinds: &[Described<'_>]) -> Option<Value> {
    let kinds: Vec<Described<'_>> = kinds.iter().filter(|kind| kind.prefix() == prefix).cloned().collect();
    if kinds.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Granary", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths(&kinds, Dialect::V3),
        "components": {
            "schemas": definitions(&kinds, Dialect::V3),
            "securitySchemes": {
                "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer token"},
            },
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds, widget};
    use super::*;

    #[test]
    fn the_index_lists_every_group_version() {
        let widget = widget();
        let index = index(&kinds(&widget));
        let names: Vec<&String> = index["paths"].as_object().expect("paths").keys().collect();
        assert_eq!(
            names,
            [
                "api/v1",
                "apis/apiextensions.k8s.io/v1",
                "apis/authentication.k8s.io/v1",
                "apis/example.com/v1",
                "apis/storage.k8s.io/v1",
            ]
        );
        let address = index["paths"]["api/v1"]["serverRelativeURL"].as_str().expect("an address");
        assert!(address.starts_with("/openapi/v3/api/v1?hash="));
    }

    #[test]
    fn a_document_holds_one_group_version_and_what_it_needs() {
        let widget = widget();
        let kinds = kinds(&widget);
        assert!(document("apis/nobody.example/v1", &kinds).is_none());
        let custom = document("apis/example.com/v1", &kinds).expect("served");
        let schemas = &custom["components"]["schemas"];
        let spec = &schemas["com.example.v1.Widget"]["properties"]["spec"];
        assert_eq!(spec["oneOf"], widget["properties"]["spec"]["oneOf"]);
        assert_eq!(spec["properties"]["maybe"]["nullable"], true);
        assert!(schemas.get("io.k8s.api.core.v1.Pod").is_none());
        let metadata = &schemas["com.example.v1.Widget"]["properties"]["metadata"]["allOf"][0]["$ref"];
        assert_eq!(metadata, "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        assert!(schemas.get("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference").is_some());

        let core = document("api/v1", &kinds).expect("served");
        let schemas = &core["components"]["schemas"];
        assert_eq!(schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]["oneOf"][1]["type"], "number");
        assert_eq!(schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]["default"], "TCP");
        let patch = &core["paths"]["/api/v1/namespaces/{name}"]["patch"];
        let field = json!({"name": "fieldValidation", "in": "query", "schema": {"type": "string", "uniqueItems": true}});
        assert!(patch["parameters"].as_array().expect("a list").contains(&field));
    }
}
