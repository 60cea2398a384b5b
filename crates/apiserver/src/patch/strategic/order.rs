//! The order of merged lists: what the patch lists comes in the patch's order, the rest in the live order.
//!
//! Owns `$setElementOrder`. Must never add or lose an item.

use std::collections::BTreeMap;

use serde_json::Value;

use super::list::{merge_list, no_merge_key};
use super::{PATCH, clean_items, malformed};
use crate::fields::Ordered;
use crate::patch::PatchError;
use crate::schema::Schema;

/// Merges `patch` into `items` and puts them in the order that `$setElementOrder` gives, if there is one.
pub(super) fn merge_in_order(
    schema: &Schema,
    items: &mut Vec<Value>,
    patch: &[Value],
    order: Option<&[Value]>,
) -> Result<(), PatchError> {
    let Some(order) = order else { return merge_list(schema, items, patch) };
    check_order(patch, order, schema.patch.merge_key.as_deref())?;
    let before = items.clone();
    merge_list(schema, items, patch)?;
    set_order(schema, items, &before, order)
}

/// The items of a list that was not there before, in the order that `$setElementOrder` gives.
pub(super) fn new_in_order(
    schema: &Schema,
    patch: &[Value],
    order: Option<&[Value]>,
) -> Result<Vec<Value>, PatchError> {
    let mut items = clean_items(patch);
    if let Some(order) = order {
        check_order(patch, order, schema.patch.merge_key.as_deref())?;
        set_order(schema, &mut items, &[], order)?;
    }
    Ok(items)
}

/// Puts `items` in `order`; those it does not list stay where they stood `before`, or where they stand.
pub(super) fn set_order(
    schema: &Schema,
    items: &mut Vec<Value>,
    before: &[Value],
    order: &[Value],
) -> Result<(), PatchError> {
    let standing = std::mem::take(items);
    let merge_key = schema.patch.merge_key.as_deref();
    *items = match before {
        [] => {
            let before = standing.clone();
            arrange(standing, order, &before, merge_key)?
        }
        before => arrange(standing, order, before, merge_key)?,
    };
    Ok(())
}

/// The items of a patch must be in its order list, and in that order.
fn check_order(patch: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    for item in patch.iter().filter(|item| item.get(PATCH).is_none()) {
        let key = key_of(item, merge_key)?;
        loop {
            let Some(next) = wanted.next() else {
                return Err(malformed("the order in the patch list doesn't match its $setElementOrder list"));
            };
            if Ordered(key_of(next, merge_key)?) == Ordered(key) {
                break;
            }
        }
    }
    Ok(())
}

/// Sorts `items`: those in `wanted` by their place there, the others by their place in `before`; one of the
/// others comes first where it stood first before.
pub(super) fn arrange(
    items: Vec<Value>,
    wanted: &[Value],
    before: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let wanted = places(wanted, merge_key)?;
    let before = places(before, merge_key)?;
    let (mut listed, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let key = Ordered(key_of(&item, merge_key)?);
        let place = before.get(&key).copied();
        match wanted.get(&key).copied() {
            Some(rank) => listed.push((rank, place, item)),
            None => others.push((place.unwrap_or(usize::MAX), place, item)),
        }
    }
    listed.sort_by_key(|(rank, _, _)| *rank);
    others.sort_by_key(|(rank, _, _)| *rank);

    let mut arranged = Vec::with_capacity(listed.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, place, item) in listed {
        let stood_first = |other: &(usize, Option<usize>, Value)| match (other.1, place) {
            (Some(other), Some(place)) => other < place,
            _ => false,
        };
        while let Some((_, _, other)) = others.next_if(stood_first) {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others.map(|(_, _, item)| item));
    Ok(arranged)
}

/// Where each key stands first.
fn places<'v>(
    items: &'v [Value],
    merge_key: Option<&str>,
) -> Result<BTreeMap<Ordered<'v>, usize>, PatchError> {
    let mut places = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        places.entry(Ordered(key_of(item, merge_key)?)).or_insert(at);
    }
    Ok(places)
}

fn key_of<'v>(item: &'v Value, merge_key: Option<&str>) -> Result<&'v Value, PatchError> {
    match (item, merge_key) {
        (Value::Object(fields), Some(key)) => fields.get(key).ok_or_else(|| no_merge_key(fields, key)),
        _ => Ok(item),
    }
}
