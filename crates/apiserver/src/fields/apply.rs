//! Server-side apply: merge a configuration into an object and settle who owns what.
//!
//! Owns conflicts and the removal of fields that their only applier no longer mentions. Must never take a
//! field from another manager unless forced.

use serde_json::{Map, Value};

use super::conflict::{Conflict, conflict_message};
use super::entry::{Identity, Managers, Operation};
use super::managed::{SYSTEM_FIELDS, WriteContext, changes, credit_update, set_managers, stored_managers};
use super::set::Set;
use super::typed::{Comparison, field_set, merge, remove_items, stored_field_set, with_named_fields};
use super::{FieldsError, MAX_DEPTH, Problem, deeper_than, last_applied};
use crate::schema::Schema;

/// The manager to whom everything belongs that was there before ownership was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Fields belong to others; the caller may repeat with force.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The fields of the configuration or of the live object cannot be told apart.
    #[error(transparent)]
    Fields(#[from] FieldsError),
}

/// The object that results from applying `config`, with its `managedFields`.
///
/// `live` is absent when the object does not exist yet. `reset` are the fields that the end point does not
/// persist: they are merged, for the caller to reset, but never owned. When nothing changes, the result
/// equals `live`.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    reset: &Set,
    force: bool,
    ctx: &WriteContext<'_>,
) -> Result<Value, ApplyError> {
    check_config(config, ctx)?;
    let nothing = Value::Object(Map::new());
    let live = live.unwrap_or(&nothing);
    let mut managers = managers_of(schema, live, reset, ctx)?;
    managers.follow_schema(schema);

    let own = ctx.identity(Operation::Apply);
    let mut claimed = field_set(schema, config)?;
    claimed.subtract_recursively(reset);
    let mut merged = merge(schema, live, config)?;
    set_managers(&mut merged, None);
    let mut object = prune(schema, merged, &managers, &own, &claimed)?;
    let comparison = changes(schema, Some(live), &object, reset)?;
    if !force {
        refuse_conflicts(schema, live, &managers, &own, &comparison, ctx)?;
    }
    settle(&mut managers, own, claimed, &comparison, ctx);

    if ctx.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, config);
    }
    if let Value::Object(fields) = &mut object {
        fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    }
    set_managers(&mut object, managers.encode());
    Ok(object)
}

fn check_config(config: &Value, ctx: &WriteContext<'_>) -> Result<(), ApplyError> {
    if !config.is_object() {
        return Err(ApplyError::Invalid("the applied configuration must be an object".into()));
    }
    if stored_managers(config).is_some() {
        return Err(ApplyError::Invalid("metadata.managedFields must be nil".into()));
    }
    if deeper_than(config, MAX_DEPTH) {
        return Err(Problem::TooDeep.here().into());
    }
    match config.get("apiVersion").and_then(Value::as_str) {
        Some(version) if version != ctx.api_version => Err(ApplyError::Invalid(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {}",
            ctx.api_version
        ))),
        _ => Ok(()),
    }
}

/// The managers of the live object. If it has none, all its fields belong to whoever came before.
fn managers_of(
    schema: &Schema,
    live: &Value,
    reset: &Set,
    ctx: &WriteContext<'_>,
) -> Result<Managers, FieldsError> {
    let mut managers = stored_managers(live).map(Managers::decode).transpose()?.unwrap_or_default();
    if managers.is_empty() {
        let everything = changes(schema, None, live, reset)?;
        let earlier = WriteContext { manager: BEFORE_FIRST_APPLY, ..*ctx };
        credit_update(&mut managers, everything, earlier.identity(Operation::Update), ctx);
    }
    Ok(managers)
}

/// Removes what `own` applied last time, does not claim now, and nobody else owns.
fn prune(
    schema: &Schema,
    merged: Value,
    managers: &Managers,
    own: &Identity,
    claimed: &Set,
) -> Result<Value, FieldsError> {
    let Some(last) = managers.get(own).map(|entry| &entry.set).filter(|last| !last.is_subset(claimed)) else {
        return Ok(merged);
    };
    let named = |set: Set| with_named_fields(schema, set);
    let without = |paths: &Set| {
        let mut object = merged.clone();
        remove_items(schema, &mut object, paths);
        object
    };
    let fields = |object: &Value| stored_field_set(schema, object).map(named);

    let last = named(last.clone());
    let all = fields(&merged)?;
    // First everything goes that was applied last time, with all that is below it; then whatever anybody
    // owns comes back, together with the containers it lives in.
    let mut kept = fields(&without(&last))?;
    kept.absorb(named(owned_by_anyone(managers, own, claimed)));
    let kept = fields(&without(&all.difference(&kept)))?;
    // What nobody owns is not ours to remove either, and the system's fields never are.
    let mut gone = all.difference(&kept).intersection(&last);
    gone.subtract(&SYSTEM_FIELDS);
    Ok(without(&gone))
}

fn owned_by_anyone(managers: &Managers, own: &Identity, claimed: &Set) -> Set {
    let others = managers.iter().filter(|(identity, _)| *identity != own);
    let mut sets: Vec<Set> = others.map(|(_, entry)| entry.set.clone()).collect();
    sets.push(claimed.clone());
    Set::union_all(sets)
}

fn refuse_conflicts(
    schema: &Schema,
    live: &Value,
    managers: &Managers,
    own: &Identity,
    comparison: &Comparison,
    ctx: &WriteContext<'_>,
) -> Result<(), ApplyError> {
    let changed = comparison.added.union(&comparison.modified);
    let mut conflicts: Vec<_> = managers
        .iter()
        .filter(|(identity, _)| *identity != own)
        .map(|(identity, entry)| (identity, entry, entry.set.intersection(&changed)))
        .filter(|(_, _, fields)| !fields.is_empty())
        .collect();
    if conflicts.is_empty() {
        return Ok(());
    }
    if ctx.manager == last_applied::MANAGER
        && let Some(taken_over) = last_applied::taken_over(schema, live, ctx.api_version)
    {
        conflicts.iter_mut().for_each(|(_, _, fields)| {
            fields.subtract(&taken_over);
        });
        conflicts.retain(|(_, _, fields)| !fields.is_empty());
        if conflicts.is_empty() {
            return Ok(());
        }
    }
    let conflicts = conflicts.iter().map(|(identity, entry, fields)| Conflict::new(identity, entry, fields));
    Err(ApplyError::Conflicts(conflicts.collect()))
}

/// Writes down the new owners. The time of the applier's entry moves only if the object changed; one that only
/// joins has none.
fn settle(
    managers: &mut Managers,
    own: Identity,
    mut claimed: Set,
    comparison: &Comparison,
    ctx: &WriteContext<'_>,
) {
    for changed in [&comparison.added, &comparison.modified, &comparison.removed] {
        managers.take_away(changed, Some(&own));
    }
    claimed.subtract(&SYSTEM_FIELDS);
    let mut entry = ctx.entry(claimed);
    if comparison.is_same() {
        entry.time = managers.get(&own).and_then(|last| last.time.clone());
    }
    managers.insert(own, entry);
    managers.drop_empty();
}
