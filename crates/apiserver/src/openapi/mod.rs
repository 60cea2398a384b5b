//! OpenAPI: the description of every kind that `kubectl explain`, its checks before sending and generators
//! of clients read.
//!
//! Owns the documents. They are made when somebody asks, from the same sources as the schemas the server
//! works with, and are not kept: most servers are never asked.

mod definitions;
mod operations;
mod v2;
mod v2_crd;
mod v2_messages;
mod v2_proto;
mod v3;

use std::borrow::Cow;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::builtin::Builtin;
use crate::schema;

/// OpenAPI 2.0 ("swagger"), one document for everything.
pub use v2::document as v2_document;
/// The same document in the form old clients ask for.
pub use v2_proto::encode as v2_protobuf;
/// OpenAPI 3.0, one document for each group and version.
pub use v3::{document as v3_document, index as v3_index};

/// How a client asks for the protocol buffer form of the version 2 document; the second name is the newer one.
pub const V2_PROTOBUF_ACCEPT: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];

/// What to call it in the answer, whichever was asked for: clients cannot parse a media type with an `@` in it.
pub const V2_PROTOBUF_TYPE: &str = V2_PROTOBUF_ACCEPT[1];

/// One served kind in one version.
#[derive(Clone)]
pub struct Described<'a> {
    pub group: Cow<'a, str>,
    pub version: Cow<'a, str>,
    pub kind: Cow<'a, str>,
    pub list_kind: Cow<'a, str>,
    pub plural: Cow<'a, str>,
    pub namespaced: bool,
    pub has_status: bool,
    pub has_scale: bool,
    /// Reviews and the like: they are asked, not stored.
    pub create_only: bool,
    pub source: Source<'a>,
}

/// Where the schema of a kind comes from.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    Builtin(fn(&mut schemars::SchemaGenerator) -> schemars::Schema),
    /// The `openAPIV3Schema` of a CustomResourceDefinition, if it has one.
    Crd(Option<&'a Value>),
}

impl<'a> Described<'a> {
    pub fn builtin(kind: &'a Builtin) -> Self {
        Self {
            group: kind.group.into(),
            version: kind.version.into(),
            kind: kind.kind.into(),
            list_kind: format!("{}List", kind.kind).into(),
            plural: kind.plural.into(),
            namespaced: kind.namespaced,
            has_status: kind.has_status,
            has_scale: false,
            create_only: matches!(kind.group, "authentication.k8s.io" | "authorization.k8s.io"),
            source: Source::Builtin(kind.schema),
        }
    }

    /// The name of the definition: Kubernetes' own for its kinds, the group backwards for all others.
    fn definition(&self, kind: &str) -> String {
        match self.source {
            Source::Builtin(_) => schema::definition_of(&self.group, &self.version, kind),
            Source::Crd(_) => {
                let group: Vec<&str> = self.group.rsplit('.').collect();
                format!("{}.{}.{kind}", group.join("."), self.version)
            }
        }
    }

    fn gvk(&self, kind: &str) -> Value {
        json!({"group": self.group, "version": self.version, "kind": kind})
    }

    /// `api/v1` or `apis/example.com/v1`, also the name of the group version's document.
    fn prefix(&self) -> String {
        if self.group.is_empty() {
            format!("api/{}", self.version)
        } else {
            format!("apis/{}/{}", self.group, self.version)
        }
    }
}

/// Changes whenever a document about these kinds does, without making the document.
pub fn fingerprint(kinds: &[Described<'_>]) -> String {
    let mut hash = Sha256::new();
    hash.update(env!("CARGO_PKG_VERSION"));
    for kind in kinds {
        for text in [&kind.group, &kind.version, &kind.kind, &kind.list_kind, &kind.plural] {
            hash.update(text.as_bytes());
            hash.update([0]);
        }
        hash.update([kind.namespaced, kind.has_status, kind.has_scale].map(u8::from));
        if let Source::Crd(Some(schema)) = kind.source {
            hash.update(schema.to_string());
        }
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02X}")).collect()
}

/// How the two versions of OpenAPI differ in schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    V2,
    V3,
}

impl Dialect {
    fn reference(self, name: &str) -> Value {
        let root = match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        };
        json!({"$ref": format!("{root}{name}")})
    }

    /// A reference with a description of its own. In version 3 nothing may stand beside `$ref`.
    fn described_reference(self, name: &str, description: Option<&str>) -> Value {
        let mut node = match (self, description) {
            (Self::V3, Some(_)) => json!({"allOf": [self.reference(name)]}),
            _ => self.reference(name),
        };
        if let Some(text) = description {
            node["description"] = text.into();
        }
        node
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use k8s_openapi::api::authentication::v1::TokenReview;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
    use k8s_openapi::api::storage::v1::StorageClass;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use schemars::SchemaGenerator;

    use super::*;

    fn builtin<'a>(
        group: &'a str,
        kind: &'a str,
        plural: &'a str,
        namespaced: bool,
        source: Source<'a>,
    ) -> Described<'a> {
        Described {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            list_kind: format!("{kind}List").into(),
            plural: plural.into(),
            namespaced,
            has_status: kind == "Pod",
            has_scale: false,
            create_only: kind == "TokenReview",
            source,
        }
    }

    /// A few kinds of every sort.
    pub fn kinds(widget: &Value) -> Vec<Described<'_>> {
        let source = Source::Builtin;
        vec![
            builtin(
                "",
                "Namespace",
                "namespaces",
                false,
                source(SchemaGenerator::subschema_for::<Namespace>),
            ),
            builtin("", "Pod", "pods", true, source(SchemaGenerator::subschema_for::<Pod>)),
            builtin("", "ConfigMap", "configmaps", true, source(SchemaGenerator::subschema_for::<ConfigMap>)),
            builtin(
                "storage.k8s.io",
                "StorageClass",
                "storageclasses",
                false,
                source(SchemaGenerator::subschema_for::<StorageClass>),
            ),
            builtin(
                "authentication.k8s.io",
                "TokenReview",
                "tokenreviews",
                false,
                source(SchemaGenerator::subschema_for::<TokenReview>),
            ),
            builtin(
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                "customresourcedefinitions",
                false,
                source(SchemaGenerator::subschema_for::<CustomResourceDefinition>),
            ),
            Described {
                has_status: true,
                has_scale: true,
                ..builtin("example.com", "Widget", "widgets", true, Source::Crd(Some(widget)))
            },
            builtin("example.com", "Gadget", "gadgets", false, Source::Crd(None)),
        ]
    }

    pub fn widget() -> Value {
        json!({
            "description": "Widget turns.",
            "type": "object",
            "required": ["spec"],
            "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                "spec": {
                    "description": "What it shall be.",
                    "type": "object",
                    "required": ["size", "maybe"],
                    "properties": {
                        "size": {"description": "How large.", "type": "integer", "format": "int64", "minimum": 1, "default": 3},
                        "mode": {"type": "string", "enum": ["fast", "slow"]},
                        "maybe": {"type": "string", "nullable": true},
                        "port": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
                        "disks": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}},
                        "free": {"x-kubernetes-preserve-unknown-fields": true},
                        "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
                    },
                    "oneOf": [{"required": ["size"]}, {"required": ["mode"]}],
                    "x-kubernetes-validations": [{"rule": "self.size > 0"}],
                },
                "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
            },
        })
    }

    #[test]
    fn a_fingerprint_follows_the_schema() {
        let (one, mut other) = (widget(), widget());
        assert_eq!(fingerprint(&kinds(&one)), fingerprint(&kinds(&other)));
        other["properties"]["spec"]["properties"]["size"]["minimum"] = 2.into();
        assert_ne!(fingerprint(&kinds(&one)), fingerprint(&kinds(&other)));
    }
}
