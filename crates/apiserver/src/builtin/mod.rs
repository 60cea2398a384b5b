//! The kinds that Kubernetes itself brings, one file each: names, defaults, validation, printed columns.
//!
//! Owns what is particular to a built-in kind. Must never store anything; the generic verbs do that.

use granary_api::names;
use jiff::Timestamp;
use serde_json::Value;

use crate::error::FieldError;

pub mod access;
mod address;
mod changes;
mod column;
mod config_map;
mod crd;
mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod endpoints;
mod event;
mod events_event;
mod field;
pub mod human;
mod lease;
mod namespace;
mod node;
mod node_selector;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
#[cfg(test)]
mod properties;
mod quantity;
mod review;
mod secret;
mod service;
mod service_account;
mod storage_class;
#[cfg(test)]
mod testing;
mod volume_attachment;
mod volume_attributes_class;
mod volume_source;
pub mod zero;

pub use events_event::{core_to_events, events_to_core};
pub use review::REVIEWS;

/// Every stored kind, in the order of discovery.
pub static KINDS: &[&Builtin] = &[
    &config_map::CONFIG_MAP,
    &endpoints::ENDPOINTS,
    &event::EVENT,
    &namespace::NAMESPACE,
    &node::NODE,
    &persistent_volume_claim::PERSISTENT_VOLUME_CLAIM,
    &persistent_volume::PERSISTENT_VOLUME,
    &pod::POD,
    &secret::SECRET,
    &service_account::SERVICE_ACCOUNT,
    &service::SERVICE,
    &events_event::EVENTS_EVENT,
    &csi_driver::CSI_DRIVER,
    &csi_node::CSI_NODE,
    &csi_storage_capacity::CSI_STORAGE_CAPACITY,
    &storage_class::STORAGE_CLASS,
    &volume_attachment::VOLUME_ATTACHMENT,
    &volume_attributes_class::VOLUME_ATTRIBUTES_CLASS,
    &crd::CUSTOM_RESOURCE_DEFINITION,
    &lease::LEASE,
];

/// Everything the generic verbs need to know about one built-in kind.
pub struct Builtin {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    /// What `metadata.name` (and `generateName`) must look like.
    pub name_rule: NameRule,
    /// Whether the kind has a `status` subresource: then `status` changes only there, and all else only outside.
    pub has_status: bool,
    /// Whether `status` may come with a create all the same: a node registers itself with it.
    pub status_on_create: bool,
    /// Whether `metadata.generation` counts changes of the spec.
    pub has_generation: bool,
    /// Whether a PUT to a name that is not there creates the object.
    pub create_on_update: bool,
    /// Whether a PUT must carry `metadata.resourceVersion`.
    pub needs_version: bool,
    /// The JSON schema of the kind with descriptions; definitions go to the generator.
    pub schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// Fills what Kubernetes fills when a client leaves it out. Runs on create and on update.
    pub default: fn(&mut Value),
    /// Carries over what a client may leave out but not take away. Runs on updates of the object and of its
    /// status, after `default`; not on the `finalize` subresource of namespaces, which it would undo.
    pub carry: fn(new: &mut Value, old: &Value, now: Timestamp),
    /// Checks values beyond their types; `old` is there on update, for immutable fields.
    pub validate: fn(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>),
    pub columns: &'static [Column],
    /// The cells of one object, one for each column.
    pub row: fn(object: &Value, now: Timestamp) -> Vec<Value>,
    /// Fields that a field selector may name besides `metadata.name` and `metadata.namespace`.
    pub fields: fn(object: &Value) -> Vec<(&'static str, String)>,
}

/// The forms that names of objects can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain: what most kinds use.
    Subdomain,
    /// RFC 1123 label: no dots, at most 63 characters.
    Label,
    /// Anything that fits into a URL: only core events, whose names start with the name of any object.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name; nothing when it is fine.
    pub fn complaints(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => names::dns1123_subdomain(name),
            Self::Label => names::dns1123_label(name),
            Self::PathSegment => names::path_segment(name),
        }
    }
}

/// One column of a server-side table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `date`, …
    pub kind: &'static str,
    pub format: &'static str,
    pub description: &'static str,
    /// 0 is always shown, 1 only with `-o wide`.
    pub priority: i32,
}

/// A kind without any particulars: each kind says only where it differs.
const PLAIN: Builtin = Builtin {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short_names: &[],
    categories: &[],
    namespaced: false,
    name_rule: NameRule::Subdomain,
    has_status: false,
    status_on_create: false,
    has_generation: false,
    create_on_update: false,
    needs_version: false,
    schema: |_| schemars::Schema::default(),
    default: |_| {},
    carry: |_, _, _| {},
    validate: |_, _, _| {},
    columns: &[column::NAME, column::AGE],
    row: |object, now| vec![access::name(object).into(), human::age(object, now).into()],
    fields: |_| Vec::new(),
};
