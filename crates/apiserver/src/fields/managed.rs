//! Ownership after ordinary writes: create, update and every patch that is not an apply.
//!
//! Owns the rule that whoever changes a field becomes its owner. Must never change anything in an object but
//! `metadata.managedFields`.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::entry::{Entry, Identity, Managers, Operation, Time};
use super::set::Set;
use super::typed::{Comparison, compare, every_path};
use super::{FieldsError, MAX_DEPTH, Problem, deeper_than};
use crate::schema::Schema;

/// Who writes, through which end point, and when.
#[derive(Debug, Clone, Copy)]
pub struct WriteContext<'a> {
    pub manager: &'a str,
    /// Group and version of the request.
    pub api_version: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    pub now: Timestamp,
    /// What every new object of the kind contains before a client says anything; nobody owns it.
    pub zero: Option<&'a Value>,
}

impl WriteContext<'_> {
    pub(super) fn identity(&self, operation: Operation) -> Identity {
        let manager = if self.manager.is_empty() { "unknown" } else { self.manager };
        Identity::new(manager, operation, self.api_version, self.subresource)
    }

    pub(super) fn entry(&self, set: Set) -> Entry {
        // A scale has no managers of its own to take a time from, so Kubernetes notes none.
        let time = (self.subresource != "scale").then(|| Time::of(self.now));
        Entry { api_version: self.api_version.into(), time, set }
    }
}

/// Fields that the server sets, and that identify an object: nobody owns them.
pub(super) static SYSTEM_FIELDS: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// The fields that an end point which persists only `kept` does not: all others of the kind. For `/status`.
pub fn reset_all_but(schema: &Schema, kept: &str) -> Set {
    let mut reset = Set::new();
    for name in schema.properties.keys().filter(|name| &***name != kept) {
        reset.insert(&[&**name].into_iter().collect());
    }
    reset
}

/// Sets `new.metadata.managedFields` from the managers of `live` and from what changed.
///
/// `live` is absent for a create. `reset` are the fields that the end point does not persist. When nothing
/// that can be owned has changed, the managers are those of `live` to the letter, times included.
///
/// # Errors
/// When the fields of the object cannot be told apart. `new` then carries the managers of `live`, so the
/// write can go on without being tracked.
pub fn track_update(
    schema: &Schema,
    live: Option<&Value>,
    new: &mut Value,
    reset: &Set,
    ctx: &WriteContext<'_>,
) -> Result<(), FieldsError> {
    let Some(metadata) = metadata_of(new) else { return Ok(()) };
    let sent = metadata.remove("managedFields");
    match managers_after(schema, live, new, sent, reset, ctx) {
        Ok(list) => {
            set_managers(new, list);
            Ok(())
        }
        Err(error) => {
            set_managers(new, live.and_then(stored_managers).cloned());
            Err(error)
        }
    }
}

/// The next `managedFields`; nothing when ownership is not tracked.
fn managers_after(
    schema: &Schema,
    live: Option<&Value>,
    new: &Value,
    sent: Option<Value>,
    reset: &Set,
    ctx: &WriteContext<'_>,
) -> Result<Option<Value>, FieldsError> {
    let stored = live.and_then(stored_managers);
    let echoed = sent.is_some() && sent.as_ref() == stored;
    // A subresource cannot be used to rewrite who owns what.
    let edited = match &sent {
        Some(list) if is_reset(list) && ctx.subresource.is_empty() => Some(Managers::default()),
        Some(list) if !echoed && ctx.subresource.is_empty() => {
            Managers::decode(list).ok().filter(|managers| !managers.is_empty())
        }
        _ => None,
    };
    let comparison = changes(schema, live.or(ctx.zero), new, reset)?;
    let mut managers = match edited {
        Some(managers) => managers,
        None if comparison.is_same() => return Ok(if echoed { sent } else { stored.cloned() }),
        None => stored.and_then(|list| Managers::decode(list).ok()).unwrap_or_default(),
    };
    // An object that is not tracked stays so until the first apply.
    if managers.is_empty() && live.is_some() {
        return Ok(None);
    }
    managers.follow_schema(schema);
    credit_update(&mut managers, comparison, ctx.identity(Operation::Update), ctx);
    managers.cap_updaters();
    Ok(managers.encode())
}

/// What a write changed, of all that can be owned and that the end point persists.
pub(super) fn changes(
    schema: &Schema,
    live: Option<&Value>,
    new: &Value,
    reset: &Set,
) -> Result<Comparison, FieldsError> {
    if deeper_than(new, MAX_DEPTH) {
        return Err(Problem::TooDeep.here());
    }
    let mut comparison = match live {
        Some(live) => compare(schema, live, new)?,
        None => Comparison { added: every_path(schema, new)?, ..Comparison::default() },
    };
    comparison.exclude(reset, true);
    comparison.exclude(&SYSTEM_FIELDS, false);
    Ok(comparison)
}

/// Gives what was added and modified to `identity`, and takes it and what was removed from all others.
pub(super) fn credit_update(
    managers: &mut Managers,
    comparison: Comparison,
    identity: Identity,
    ctx: &WriteContext<'_>,
) {
    let mut own = comparison.added;
    own.absorb(comparison.modified);
    managers.take_away(&own, None);
    managers.take_away(&comparison.removed, None);
    if !own.is_empty() {
        managers.credit(identity, ctx.entry(own));
    }
    managers.drop_empty();
}

/// A list without entries, or with one that says nothing, asks to forget all owners.
fn is_reset(sent: &Value) -> bool {
    let empty = |entry: &Value| entry.as_object().is_some_and(Map::is_empty);
    sent.as_array().is_some_and(|list| list.is_empty() || (list.len() == 1 && empty(&list[0])))
}

fn metadata_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}

/// The managers that an object carries, if any.
pub(super) fn stored_managers(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields").filter(|list| !list.is_null())
}

pub(super) fn set_managers(object: &mut Value, list: Option<Value>) {
    let Some(metadata) = metadata_of(object) else { return };
    match list {
        Some(list) => metadata.insert("managedFields".into(), list),
        None => metadata.remove("managedFields"),
    };
}
