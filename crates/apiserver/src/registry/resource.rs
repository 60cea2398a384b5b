//! One resource as one API version serves it: names, shape, subresources.
//!
//! Owns nothing but description. Must never touch the store.

use std::sync::Arc;

use serde_json::Value;

use crate::builtin::Builtin;
use crate::error::Subject;
use crate::fields::Set;
use crate::http::media::apiversion;
use crate::schema::Schema;

/// What the generic verbs know of a resource.
pub struct Resource {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// The first part of its keys in the store; two API groups that show the same objects share it.
    pub storage: String,
    /// The version objects are stored in.
    pub stored_version: String,
    pub schema: Arc<Schema>,
    pub has_status: bool,
    pub has_generation: bool,
    pub scale: Option<Scale>,
    pub source: Source,
    /// Fields that a write to the object itself, and to its status, does not persist.
    pub unwritten: Unwritten,
}

#[derive(Default)]
pub struct Unwritten {
    pub by_main: Set,
    pub by_status: Set,
}

/// Where a resource's particulars come from.
pub enum Source {
    Builtin(&'static Builtin),
    Custom(Custom),
}

/// What a CustomResourceDefinition says of one of its versions beyond names and schema.
#[derive(Default)]
pub struct Custom {
    pub columns: Vec<CustomColumn>,
    /// Paths that a field selector may name, e.g. `spec.nodeID`.
    pub selectable: Vec<String>,
    /// The warning for users of a deprecated version.
    pub deprecation: Option<String>,
    /// Whether all objects lie in the store in the version that is served, with the defaults it has now.
    pub as_stored: bool,
    /// The published schema, for OpenAPI.
    pub open_api: Arc<Value>,
}

#[derive(Debug, Clone)]
pub struct CustomColumn {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub path: String,
}

/// The three paths of a `scale` subresource, as JSON pointers.
#[derive(Debug, Clone)]
pub struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

impl Resource {
    /// `v1` or `storage.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        apiversion(&self.group, &self.version)
    }

    pub fn stored_api_version(&self) -> String {
        match self.source {
            Source::Builtin(kind) if kind.group != self.storage_group() => "v1".into(),
            _ => apiversion(&self.group, &self.stored_version),
        }
    }

    fn storage_group(&self) -> &str {
        self.storage.split_once('.').map_or("", |(_, group)| group)
    }

    /// Whether stored objects can be sent as they are.
    pub fn served_as_stored(&self) -> bool {
        match &self.source {
            Source::Builtin(kind) => kind.group == self.storage_group(),
            Source::Custom(custom) => custom.as_stored,
        }
    }

    pub fn is_custom(&self) -> bool {
        matches!(self.source, Source::Custom(_))
    }

    pub fn builtin(&self) -> Option<&'static Builtin> {
        match self.source {
            Source::Builtin(kind) => Some(kind),
            Source::Custom(_) => None,
        }
    }

    /// How most errors name an object.
    pub fn subject(&self, name: &str) -> Subject {
        Subject { group: self.group.clone(), kind: self.plural.clone(), name: name.into() }
    }

    /// How `Invalid` names an object: by kind.
    pub fn kind_subject(&self, name: &str) -> Subject {
        Subject { group: self.group.clone(), kind: self.kind.clone(), name: name.into() }
    }

    /// Whether this is the built-in resource of the core group with that plural.
    pub fn is_core(&self, plural: &str) -> bool {
        self.group.is_empty() && self.plural == plural
    }

    /// A new object is generation 1, except for the one kind that shows none until its first change.
    pub fn counts_from_one(&self) -> bool {
        !(self.group == "storage.k8s.io" && self.plural == "csidrivers")
    }

    /// Namespaces go one by one: all at once would be everything there is.
    pub fn deletes_collections(&self) -> bool {
        !self.is_core("namespaces")
    }

    pub fn is_crd(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.plural == "customresourcedefinitions"
    }
}
