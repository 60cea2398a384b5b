//! The structural schema of one kind: the single description that defaulting, pruning, validation,
//! field ownership, strategic merge and OpenAPI all read.
//!
//! Owns the shape of objects. Must never know about storage, HTTP or a particular kind.

mod cel;
mod default;
mod defs;
mod format;
mod invariants;
mod parse;
mod path;
mod prune;
mod rules;
mod scalars;
mod structural;
pub(crate) mod table;
#[cfg(test)]
mod testing;
mod types;
mod update;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use default::apply_defaults;
pub use defs::{Definitions, object_meta};
pub(crate) use defs::{OBJECT_META_NAME, definition_name, definition_of};
pub use format::Format;
pub use parse::from_crd;
pub use prune::{prune, unknown_fields};
pub use rules::{Bound, Pattern, Rules};
pub use structural::check_crd_schema;
pub use types::type_errors;
pub use validate::validate;

/// One node of a structural schema. Trees share sub-trees through `Arc` and never contain cycles.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// The definition of a built-in type, e.g. `io.k8s.api.core.v1.PodSpec`.
    pub definition: Option<Arc<str>>,
    pub kind: Kind,
    pub nullable: bool,
    /// Named fields of an object.
    pub properties: BTreeMap<Box<str>, Arc<Schema>>,
    /// Schema of the values of a map (`additionalProperties` with a schema).
    pub additional: Option<Arc<Schema>>,
    /// Schema of the elements of a list.
    pub items: Option<Arc<Schema>>,
    pub required: Vec<Box<str>>,
    pub default: Option<Value>,
    /// `x-kubernetes-preserve-unknown-fields`: fields that are not specified are kept as they are.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`: the object carries its own apiVersion, kind and metadata.
    pub embedded_resource: bool,
    pub list: ListKind,
    /// `x-kubernetes-map-type: atomic`: owned and replaced as a whole.
    pub atomic: bool,
    /// How strategic merge patch treats this field; only built-in kinds have it.
    pub patch: PatchStrategy,
    /// Everything that only validation looks at.
    pub rules: Option<Box<Rules>>,
    /// Whether this node or one below has rules in CEL.
    pub(crate) has_cel: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// No `type`: any value.
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
}

/// `x-kubernetes-list-type`, with the keys of a map list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<Box<str>>),
}

/// The `patchStrategy` and `patchMergeKey` of a built-in field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchStrategy {
    /// Lists are merged instead of replaced; by this key when they hold objects, as a set when `merge_key` is absent.
    pub merge: bool,
    pub merge_key: Option<Box<str>>,
    /// `retainKeys`: fields that the patch does not list in `$retainKeys` are cleared.
    pub retain_keys: bool,
}

impl Schema {
    /// A node of this kind without any constraint.
    pub fn of(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// A node below which everything is kept as it is.
    pub fn anything() -> Self {
        Self { preserve_unknown: true, nullable: true, ..Self::default() }
    }

    /// The schema of a field of an object: a named one, or that of the values of a map.
    pub fn field(&self, name: &str) -> Option<&Arc<Schema>> {
        self.properties.get(name).or(self.additional.as_ref())
    }

    fn rules_mut(&mut self) -> &mut Rules {
        self.rules.get_or_insert_default()
    }
}
