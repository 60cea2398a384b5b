//! Requests as they go over the wire, for what a well-behaved client never sends.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

pub const JSON: &str = "application/json";
pub const YAML: &str = "application/yaml";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const MERGE: &str = "application/merge-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";

/// A client without manners.
pub struct Raw(pub Client);

#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    /// Null when it is not JSON.
    pub body: Value,
    pub text: String,
    pub warnings: Vec<String>,
}

impl Raw {
    pub async fn send(&self, method: &str, path: &str, media: &str, body: impl Into<Bytes>) -> Answer {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
        if !media.is_empty() {
            request = request.header("content-type", media);
        }
        self.call(request.body(Body::from(body.into().to_vec())).unwrap()).await
    }

    pub async fn call(&self, request: Request<Body>) -> Answer {
        let response = self.0.send(request).await.unwrap();
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|w| w.to_str().unwrap().to_string()).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Answer { code, body, text: String::from_utf8_lossy(&bytes).into_owned(), warnings }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", Bytes::new()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, "", Bytes::new()).await
    }

    pub async fn post(&self, path: &str, object: &Value) -> Answer {
        self.send("POST", path, JSON, object.to_string()).await
    }

    pub async fn put(&self, path: &str, object: &Value) -> Answer {
        self.send("PUT", path, JSON, object.to_string()).await
    }

    pub async fn merge(&self, path: &str, change: &Value) -> Answer {
        self.send("PATCH", path, MERGE, change.to_string()).await
    }

    /// Creates an object that must be welcome.
    pub async fn make(&self, path: &str, object: &Value) -> Value {
        self.post(path, object).await.expect(201).body
    }
}

impl Answer {
    #[track_caller]
    pub fn expect(self, code: u16) -> Self {
        assert_eq!(self.code, code, "{}", self.text);
        self
    }

    pub fn reason(&self) -> &str {
        self.body["reason"].as_str().unwrap_or_default()
    }

    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// The fields that a refusal names.
    pub fn fields(&self) -> Vec<&str> {
        let causes = self.body["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
        causes.iter().filter_map(|cause| cause["field"].as_str()).collect()
    }

    pub fn names(&self) -> Vec<&str> {
        let items = self.body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
    }
}

pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

/// A namespaced definition with a status and a scale, of one version.
pub fn definition(plural: &str, kind: &str, group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "plural": plural, "kind": kind },
            "versions": [version("v1", true)],
        },
    })
}

pub fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name,
        "served": true,
        "storage": storage,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "schema": { "openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": { "type": "object", "properties": {
                    "replicas": { "type": "integer", "minimum": 0 },
                    "size": { "type": "string", "default": "small" },
                    "weight": { "type": "number" },
                    "id": {
                        "type": "string",
                        "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "id stays" }],
                    },
                } },
                "status": { "type": "object", "properties": {
                    "replicas": { "type": "integer" },
                    "selector": { "type": "string" },
                } },
            },
        } },
    })
}
