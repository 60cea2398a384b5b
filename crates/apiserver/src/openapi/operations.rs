//! The paths of a document: what can be done with each kind, and with which parameters.
//!
//! Owns the list of operations, once for both dialects.

use serde_json::{Map, Value, json};

use super::definitions::{DELETE_OPTIONS, PATCH, STATUS};
use super::{Described, Dialect, Source};

/// One thing that can be done at one path.
struct Operation {
    method: &'static str,
    /// What Kubernetes calls it in `x-kubernetes-action`.
    action: &'static str,
    /// How the operation's id begins.
    verb: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    /// The definition of what is sent.
    body: Option<Body>,
    answer: Answer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Object,
    Patch,
    DeleteOptions,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Object,
    List,
    Status,
}

const LIST_PARAMETERS: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE_PARAMETERS: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH_PARAMETERS: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const DELETE_PARAMETERS: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

/// kubectl patches a kind strategically when its patch operation says that it can be.
const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
const CUSTOM_PATCH_TYPES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
const OBJECT_TYPES: &[&str] = &["application/json", "application/yaml"];

const fn operation(method: &'static str, action: &'static str, verb: &'static str) -> Operation {
    Operation { method, action, verb, parameters: &[], body: None, answer: Answer::Object }
}

const LIST: Operation =
    Operation { parameters: LIST_PARAMETERS, answer: Answer::List, ..operation("get", "list", "list") };
const CREATE: Operation = Operation {
    parameters: WRITE_PARAMETERS,
    body: Some(Body::Object),
    ..operation("post", "post", "create")
};
const DELETE_ALL: Operation = Operation {
    parameters: LIST_PARAMETERS,
    body: Some(Body::DeleteOptions),
    answer: Answer::Status,
    ..operation("delete", "deletecollection", "deletecollection")
};
const READ: Operation = operation("get", "get", "read");
const REPLACE: Operation = Operation {
    parameters: WRITE_PARAMETERS,
    body: Some(Body::Object),
    ..operation("put", "put", "replace")
};
const UPDATE: Operation = Operation {
    parameters: PATCH_PARAMETERS,
    body: Some(Body::Patch),
    ..operation("patch", "patch", "patch")
};
const DELETE: Operation = Operation {
    parameters: DELETE_PARAMETERS,
    body: Some(Body::DeleteOptions),
    answer: Answer::Status,
    ..operation("delete", "delete", "delete")
};

/// All paths of these kinds.
pub fn paths(kinds: &[Described<'_>], dialect: Dialect) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in kinds {
        let base = format!("/{}", kind.prefix());
        let all = format!("{base}/{}", kind.plural);
        let writer = Writer { kind, dialect };
        let mut add = |path: String, operations: &[Operation]| {
            paths.insert(path.clone(), writer.path(&path, operations));
        };
        let home = if kind.namespaced {
            format!("{base}/namespaces/{{namespace}}/{}", kind.plural)
        } else {
            all.clone()
        };
        if kind.create_only {
            add(home, &[CREATE]);
            continue;
        }
        if kind.namespaced {
            add(all, &[LIST]);
        }
        add(home.clone(), &[LIST, CREATE, DELETE_ALL]);
        add(format!("{home}/{{name}}"), &[READ, REPLACE, UPDATE, DELETE]);
        for (subresource, there) in [("status", kind.has_status), ("scale", kind.has_scale)] {
            if there {
                add(format!("{home}/{{name}}/{subresource}"), &[READ, REPLACE, UPDATE]);
            }
        }
    }
    paths
}

struct Writer<'a> {
    kind: &'a Described<'a>,
    dialect: Dialect,
}

impl Writer<'_> {
    fn path(&self, path: &str, operations: &[Operation]) -> Value {
        let mut item: Map<String, Value> = operations
            .iter()
            .map(|operation| (operation.method.into(), self.operation(operation, path)))
            .collect();
        let mut parameters = Vec::new();
        for name in ["name", "namespace"] {
            if path.contains(&format!("{{{name}}}")) {
                parameters.push(self.parameter(name, "path", "string"));
            }
        }
        parameters.push(self.parameter("pretty", "query", "string"));
        item.insert("parameters".into(), parameters.into());
        Value::Object(item)
    }

    fn operation(&self, operation: &Operation, path: &str) -> Value {
        let mut parameters: Vec<Value> =
            operation.parameters.iter().map(|(name, kind)| self.parameter(name, "query", kind)).collect();
        let mut out = json!({
            "operationId": self.id(operation, path),
            "responses": self.responses(operation),
            "x-kubernetes-action": operation.action,
            "x-kubernetes-group-version-kind": self.kind.gvk(&self.kind.kind),
        });
        if let Some(body) = operation.body {
            let types = match (body, self.kind.source) {
                (Body::Patch, Source::Crd(_)) => CUSTOM_PATCH_TYPES,
                (Body::Patch, Source::Builtin(_)) => PATCH_TYPES,
                _ => OBJECT_TYPES,
            };
            let schema = self.dialect.reference(&match body {
                Body::Object => self.kind.definition(&self.kind.kind),
                Body::Patch => PATCH.to_string(),
                Body::DeleteOptions => DELETE_OPTIONS.to_string(),
            });
            let required = body != Body::DeleteOptions;
            match self.dialect {
                Dialect::V2 => {
                    parameters
                        .push(json!({"name": "body", "in": "body", "required": required, "schema": schema}));
                    out["consumes"] = types.into();
                }
                Dialect::V3 => {
                    out["requestBody"] = json!({"content": content(types, &schema), "required": required});
                }
            }
        }
        if self.dialect == Dialect::V2 {
            out["produces"] = OBJECT_TYPES.into();
            out["schemes"] = json!(["https"]);
        }
        if !parameters.is_empty() {
            out["parameters"] = parameters.into();
        }
        out
    }

    fn parameter(&self, name: &str, place: &str, kind: &str) -> Value {
        let mut out = json!({"name": name, "in": place});
        match self.dialect {
            Dialect::V2 => {
                out["type"] = kind.into();
                out["uniqueItems"] = true.into();
            }
            Dialect::V3 => out["schema"] = json!({"type": kind, "uniqueItems": true}),
        }
        if place == "path" {
            out["required"] = true.into();
        }
        out
    }

    fn responses(&self, operation: &Operation) -> Value {
        let schema = self.dialect.reference(&match operation.answer {
            Answer::Object => self.kind.definition(&self.kind.kind),
            Answer::List => self.kind.definition(&self.kind.list_kind),
            Answer::Status => STATUS.to_string(),
        });
        let answer = |description: &str| match self.dialect {
            Dialect::V2 => json!({"description": description, "schema": schema}),
            Dialect::V3 => json!({"description": description, "content": content(OBJECT_TYPES, &schema)}),
        };
        let mut out = json!({"200": answer("OK"), "401": {"description": "Unauthorized"}});
        match operation.method {
            "post" | "put" | "patch" => out["201"] = answer("Created"),
            "delete" => out["202"] = answer("Accepted"),
            _ => {}
        }
        out
    }

    /// `patchStorageV1StorageClass`, `listCoreV1PodForAllNamespaces`: unique within all documents.
    fn id(&self, operation: &Operation, path: &str) -> String {
        let group = self.kind.group.split('.').next().filter(|g| !g.is_empty()).unwrap_or("core");
        let inside = path.contains("{namespace}");
        let scope = if inside { "Namespaced" } else { "" };
        let tail = match path.rsplit('/').next() {
            Some("status") => "Status",
            Some("scale") => "Scale",
            _ if self.kind.namespaced && !inside => "ForAllNamespaces",
            _ => "",
        };
        let collection = if operation.action == "deletecollection" { "Collection" } else { "" };
        let verb = if collection.is_empty() { operation.verb } else { "delete" };
        let version = capital(&self.kind.version);
        format!("{verb}{}{version}{collection}{scope}{}{tail}", capital(group), self.kind.kind)
    }
}

fn content(types: &[&str], schema: &Value) -> Value {
    Value::Object(types.iter().map(|name| ((*name).to_string(), json!({"schema": schema}))).collect())
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds, widget};
    use super::{Dialect, paths};

    #[test]
    fn only_built_in_kinds_offer_strategic_patches() {
        let widget = widget();
        for dialect in [Dialect::V2, Dialect::V3] {
            let paths = paths(&kinds(&widget), dialect);
            for (path, offered) in [
                ("/api/v1/namespaces/{namespace}/pods/{name}", true),
                ("/apis/example.com/v1/namespaces/{namespace}/widgets/{name}", false),
                ("/apis/example.com/v1/gadgets/{name}", false),
            ] {
                let patch = paths[path]["patch"].to_string();
                assert!(patch.contains("application/merge-patch+json"), "{path}: {patch}");
                assert_eq!(
                    patch.contains("application/strategic-merge-patch+json"),
                    offered,
                    "{path}: {patch}"
                );
            }
        }
    }
}
