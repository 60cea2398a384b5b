//! Merging the lists of a strategic merge patch: scalars as a set, objects by their merge key.
//!
//! Owns which items a merged list has. Must never compare every item with every other: lists are as long as
//! a hostile client makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{Directive, PATCH, clean, clean_items, directive, malformed, merge_object, order};
use crate::fields::Ordered;
use crate::patch::PatchError;
use crate::schema::Schema;

/// Merges `patch` into `items`; replaces them where the schema does not ask for merging.
pub(super) fn merge_list(schema: &Schema, items: &mut Vec<Value>, patch: &[Value]) -> Result<(), PatchError> {
    if !schema.patch.merge {
        *items = clean_items(patch);
        return Ok(());
    }
    match kind_of_items(items, patch)? {
        None => Ok(()),
        Some(ItemKind::Scalar) => merge_scalars(items, patch),
        Some(ItemKind::Object) => {
            let key = schema.patch.merge_key.as_deref();
            let key =
                key.ok_or_else(|| malformed("a list of objects cannot be merged without a merge key"))?;
            merge_objects(schema, items, patch, key)
        }
    }
}

/// Removes every item that equals one of `gone`.
pub(super) fn delete_scalars(items: &mut Vec<Value>, gone: &[Value]) {
    let gone: BTreeSet<Ordered<'_>> = gone.iter().map(Ordered).collect();
    items.retain(|item| !gone.contains(&Ordered(item)));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Scalar,
    Object,
}

/// What both lists hold; they must agree.
fn kind_of_items(items: &[Value], patch: &[Value]) -> Result<Option<ItemKind>, PatchError> {
    let mut found = None;
    for item in items.iter().chain(patch) {
        let kind = match item {
            Value::Object(_) => ItemKind::Object,
            Value::Array(_) => {
                return Err(PatchError::Unprocessable("lists of lists are not supported".into()));
            }
            Value::Null => return Err(malformed("null is not an item of a list")),
            _ => ItemKind::Scalar,
        };
        if *found.get_or_insert(kind) != kind {
            return Err(malformed("list element types are not identical"));
        }
    }
    Ok(found)
}

fn merge_scalars(items: &mut Vec<Value>, patch: &[Value]) -> Result<(), PatchError> {
    let before = std::mem::take(items);
    let mut seen = BTreeSet::new();
    let all = before.iter().chain(patch).filter(|item| seen.insert(Ordered(item))).cloned().collect();
    *items = order::arrange(all, patch, &before, None)?;
    Ok(())
}

fn merge_objects(
    schema: &Schema,
    items: &mut Vec<Value>,
    patch: &[Value],
    merge_key: &str,
) -> Result<(), PatchError> {
    let patch = obey_directives(items, patch, merge_key)?;
    let Some(patch) = patch else { return Ok(()) };
    // Keys are copied: the items change while they are looked up by key.
    let before: Vec<Value> = items.iter().map(|item| key_only(item, merge_key)).collect();
    let mut at: BTreeMap<Ordered<'_>, usize> = BTreeMap::new();
    for (index, item) in before.iter().enumerate() {
        if let Some(key) = item.get(merge_key) {
            at.entry(Ordered(key)).or_insert(index);
        }
    }
    for fields in &patch {
        let key = fields.get(merge_key).ok_or_else(|| no_merge_key(fields, merge_key))?;
        match at.get(&Ordered(key)) {
            Some(index) => {
                if let Value::Object(item) = &mut items[*index] {
                    merge_object(item_schema(schema), item, fields)?;
                }
            }
            None => {
                at.insert(Ordered(key), items.len());
                items.extend(clean(&Value::Object((*fields).clone())));
            }
        }
    }
    let wanted: Vec<Value> =
        patch.iter().filter_map(|fields| Some(with_key(fields.get(merge_key)?, merge_key))).collect();
    *items = order::arrange(std::mem::take(items), &wanted, &before, Some(merge_key))?;
    Ok(())
}

/// Does what the items with a `$patch` say, and returns the others; nothing if they have replaced the list.
fn obey_directives<'p>(
    items: &mut Vec<Value>,
    patch: &'p [Value],
    merge_key: &str,
) -> Result<Option<Vec<&'p Map<String, Value>>>, PatchError> {
    let mut plain = Vec::new();
    let mut deleted = BTreeSet::new();
    let mut replaced = false;
    for fields in patch.iter().filter_map(Value::as_object) {
        if !fields.contains_key(PATCH) {
            plain.push(fields);
            continue;
        }
        match directive(fields)? {
            Directive::Delete => {
                let key = fields.get(merge_key).ok_or_else(|| no_merge_key(fields, merge_key))?;
                deleted.insert(Ordered(key));
            }
            Directive::Replace => replaced = true,
            Directive::Merge => return Err(malformed("merging lists cannot yet be specified in the patch")),
        }
    }
    if replaced {
        *items = clean_items(patch);
        return Ok(None);
    }
    items.retain(|item| item.get(merge_key).is_none_or(|key| !deleted.contains(&Ordered(key))));
    Ok(Some(plain))
}

fn key_only(item: &Value, merge_key: &str) -> Value {
    item.get(merge_key).map_or(Value::Null, |key| with_key(key, merge_key))
}

fn with_key(key: &Value, merge_key: &str) -> Value {
    Value::Object(Map::from_iter([(merge_key.to_owned(), key.clone())]))
}

fn item_schema(schema: &Schema) -> &Schema {
    static UNSPECIFIED: LazyLock<Schema> = LazyLock::new(Schema::default);
    schema.items.as_ref().map_or(&UNSPECIFIED, |schema| schema)
}

pub(super) fn no_merge_key(fields: &Map<String, Value>, merge_key: &str) -> PatchError {
    let fields = Value::Object(fields.clone());
    malformed(&format!("map: {fields} does not contain declared merge key: {merge_key}"))
}
