//! Schemas of built-in kinds, from the JSON schemas that their Rust types carry.
//!
//! Owns the walk through `$ref`s, so that kinds share the types they have in common and no type contains
//! itself. Must never keep descriptions: they are most of the bytes, and only OpenAPI documents show them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::SchemaGenerator;
use serde_json::Value;

use super::{Format, Kind, Schema, table};
use crate::builtin::Builtin;

/// Collects the kinds of one server; drop it when all are in.
pub struct Definitions {
    generator: SchemaGenerator,
    known: HashMap<Box<str>, Arc<Schema>>,
    /// Scalars without any constraint are most of the nodes; each is there once.
    plain: HashMap<(Kind, Option<Format>), Arc<Schema>>,
}

impl Default for Definitions {
    fn default() -> Self {
        Self::new()
    }
}

impl Definitions {
    pub fn new() -> Self {
        Self { generator: SchemaGenerator::default(), known: HashMap::new(), plain: HashMap::new() }
    }

    /// The schema of one built-in kind.
    pub fn builtin(&mut self, kind: &Builtin) -> Arc<Schema> {
        self.kind(&definition_of(kind.group, kind.version, kind.kind), kind.schema)
    }

    /// The schema of one type, by the name and the source of its definition.
    pub fn kind(&mut self, name: &str, schema: fn(&mut SchemaGenerator) -> schemars::Schema) -> Arc<Schema> {
        let json = schema(&mut self.generator).to_value();
        self.node(&json, Some(name))
    }

    fn node(&mut self, json: &Value, definition: Option<&str>) -> Arc<Schema> {
        if let Some(name) = json.get("$ref").and_then(Value::as_str).and_then(definition_name) {
            return self.definition(name);
        }
        let (kind, format) = scalar(json);
        if !matches!(kind, Kind::Object | Kind::Array | Kind::Any) && definition.is_none() {
            return self.plain(kind, format);
        }
        let mut schema = Schema::of(kind);
        schema.definition = definition.map(Into::into);
        if let Some(format) = format {
            schema.rules_mut().format = Some(format);
        }
        if let Some(properties) = json.get("properties").and_then(Value::as_object) {
            for (name, field) in properties {
                schema.properties.insert(name.as_str().into(), self.field(field, definition, name));
            }
        }
        if let Some(values) = json.get("additionalProperties").filter(|v| v.is_object()) {
            schema.additional = Some(self.node(values, None));
        }
        if let Some(items) = json.get("items").filter(|v| v.is_object()) {
            schema.items = Some(self.node(items, None));
        }
        if let Some(required) = json.get("required").and_then(Value::as_array) {
            let listed = required.iter().filter_map(Value::as_str);
            let required = table::required(definition.unwrap_or_default(), listed);
            schema.required = required.into_iter().map(Into::into).collect();
        }
        Arc::new(schema)
    }

    fn definition(&mut self, name: &str) -> Arc<Schema> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        // Stands in for the type inside itself; replaced below.
        self.known.insert(name.into(), Arc::new(Schema::anything()));
        let schema = match special(name) {
            Some(schema) => Arc::new(schema),
            None => {
                let json = self.generator.definitions().get(name).cloned().unwrap_or(Value::Null);
                let mut schema = Arc::unwrap_or_clone(self.node(&json, Some(name)));
                schema.atomic = table::is_atomic(name);
                Arc::new(schema)
            }
        };
        self.known.insert(name.into(), schema.clone());
        schema
    }

    /// A field with what only the table knows about it.
    fn field(&mut self, json: &Value, definition: Option<&str>, name: &str) -> Arc<Schema> {
        let schema = self.node(json, None);
        let Some(definition) = definition else { return schema };
        let fact = table::fact(definition, name);
        let default = table::default(definition, name);
        if fact.is_none() && default.is_none() {
            return schema;
        }
        let mut schema = Arc::unwrap_or_clone(schema);
        if let Some(fact) = fact {
            schema.list = fact.list_kind();
            schema.patch = fact.patch();
            schema.atomic = fact.atomic.unwrap_or(schema.atomic);
        }
        schema.default = default.map(Value::from);
        Arc::new(schema)
    }

    fn plain(&mut self, kind: Kind, format: Option<Format>) -> Arc<Schema> {
        let make = || {
            let mut schema = Schema::of(kind);
            if let Some(format) = format {
                schema.rules_mut().format = Some(format);
            }
            Arc::new(schema)
        };
        self.plain.entry((kind, format)).or_insert_with(make).clone()
    }
}

/// `metadata` of every kind, built-in or not.
pub fn object_meta() -> Arc<Schema> {
    static OBJECT_META: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        Definitions::new().kind(OBJECT_META_NAME, SchemaGenerator::subschema_for::<ObjectMeta>)
    });
    OBJECT_META.clone()
}

pub(crate) const OBJECT_META_NAME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// How Kubernetes names the definition of one of its own kinds.
pub(crate) fn definition_of(group: &str, version: &str, kind: &str) -> String {
    match group.split('.').next() {
        None | Some("") => format!("io.k8s.api.core.{version}.{kind}"),
        Some("apiextensions") => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        Some(first) => format!("io.k8s.api.{first}.{version}.{kind}"),
    }
}

/// `io.k8s.api.core.v1.Pod` of `#/$defs/io.k8s.api.core.v1.Pod`.
pub(crate) fn definition_name(reference: &str) -> Option<&str> {
    reference.rsplit('/').next().filter(|name| !name.is_empty())
}

/// Types whose JSON schema says less than their decoder knows.
fn special(name: &str) -> Option<Schema> {
    let with_format = |kind, format| {
        let mut schema = Schema { definition: Some(name.into()), ..Schema::of(kind) };
        schema.rules_mut().format = Some(format);
        schema
    };
    match name.rsplit('.').next()? {
        "Quantity" => Some(with_format(Kind::IntOrString, Format::Quantity)),
        "FieldsV1" | "RawExtension" => {
            Some(Schema { atomic: true, kind: Kind::Object, ..Schema::anything() })
        }
        "JSON"
        | "JSONSchemaProps"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray" => Some(Schema::anything()),
        _ => None,
    }
}

fn scalar(json: &Value) -> (Kind, Option<Format>) {
    if json.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true) {
        return (Kind::IntOrString, None);
    }
    let kind = match json.get("type").and_then(Value::as_str) {
        Some("object") => Kind::Object,
        Some("array") => Kind::Array,
        Some("string") => Kind::String,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        _ => Kind::Any,
    };
    (kind, json.get("format").and_then(Value::as_str).and_then(|name| Format::named(name, kind)))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

    use super::super::ListKind;
    use super::*;

    const POD: &str = "io.k8s.api.core.v1.Pod";

    fn at<'a>(schema: &'a Schema, path: &str) -> &'a Schema {
        path.split('.').fold(schema, |node, name| match name {
            "[]" => node.items.as_deref().expect("a list"),
            _ => node.properties.get(name).unwrap_or_else(|| panic!("no {name} in {path}")),
        })
    }

    #[test]
    fn a_pod_knows_how_its_lists_merge() {
        let pod = Definitions::new().kind(POD, SchemaGenerator::subschema_for::<Pod>);
        let containers = at(&pod, "spec.containers");
        assert_eq!(containers.list, ListKind::Map(vec!["name".into()]));
        assert_eq!(containers.patch.merge_key.as_deref(), Some("name"));
        assert!(at(&pod, "spec.volumes").patch.retain_keys);
        let ports = at(&pod, "spec.containers.[].ports");
        assert_eq!(ports.list, ListKind::Map(vec!["containerPort".into(), "protocol".into()]));
        assert_eq!(at(ports, "[].protocol").default, Some("TCP".into()));
        assert_eq!(at(&pod, "metadata.finalizers").list, ListKind::Set);
        assert!(at(&pod, "metadata.finalizers").patch.merge);
        assert_eq!(at(&pod, "spec.tolerations").list, ListKind::Atomic);
        assert!(at(&pod, "spec.nodeSelector").atomic);
        assert!(at(&pod, "spec.containers.[].env.[].valueFrom.secretKeyRef").atomic);
        assert_eq!(
            at(&pod, "spec.containers.[].resources.limits").additional.as_ref().map(|q| q.kind),
            Some(Kind::IntOrString)
        );
        assert!(at(&pod, "metadata.managedFields.[].fieldsV1").preserve_unknown);
    }

    #[test]
    fn kinds_share_the_types_they_have_in_common() {
        let mut definitions = Definitions::new();
        let pod = definitions.kind(POD, SchemaGenerator::subschema_for::<Pod>);
        let secret = definitions.kind("io.k8s.api.core.v1.Secret", SchemaGenerator::subschema_for::<Secret>);
        assert!(Arc::ptr_eq(&pod.properties["metadata"], &secret.properties["metadata"]));
        assert!(Arc::ptr_eq(&pod.properties["kind"], &secret.properties["apiVersion"]));
    }

    #[test]
    fn a_kind_may_come_inline_or_by_reference() {
        use schemars::JsonSchema as _;
        let inline =
            Definitions::new().kind("io.k8s.api.core.v1.ServiceAccount", ServiceAccount::json_schema);
        assert_eq!(at(&inline, "secrets").list, ListKind::Map(vec!["name".into()]));
        assert_eq!(at(&inline, "metadata").definition.as_deref(), Some(OBJECT_META_NAME));
    }

    #[test]
    fn a_type_that_contains_itself_ends() {
        let name = definition_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let crd = Definitions::new().kind(&name, SchemaGenerator::subschema_for::<CustomResourceDefinition>);
        assert!(at(&crd, "spec.versions.[].schema.openAPIV3Schema").preserve_unknown);
    }
}
