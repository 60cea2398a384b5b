//! Strategic merge patch: a merge patch that knows which lists are merged and by what.
//!
//! Owns the directives and the merging of objects; [`list`] merges lists, [`order`] puts them in order. Must
//! never leave a directive in a document.

mod list;
mod order;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::PatchError;
use crate::schema::Schema;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// Merges `patch` into `doc` the way the schema's patch strategies say.
pub fn strategic(schema: &Schema, doc: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        return Err(malformed("a strategic merge patch must be an object"));
    };
    let Value::Object(doc) = doc else { return Err(malformed("only objects can be patched")) };
    merge_object(schema, doc, patch)
}

/// What a key of a patch stands for.
enum Key<'a> {
    Field(&'a str),
    /// `$setElementOrder/field`
    Order(&'a str),
    /// `$deleteFromPrimitiveList/field`
    DeleteFrom(&'a str),
    /// Concerns the object as a whole.
    Directive,
}

impl<'a> Key<'a> {
    fn of(key: &'a str) -> Result<Self, PatchError> {
        if !key.starts_with('$') {
            return Ok(Self::Field(key));
        }
        if key == PATCH || key == RETAIN_KEYS {
            return Ok(Self::Directive);
        }
        for (prefix, of_field) in
            [(SET_ORDER, Self::Order as fn(&'a str) -> Self), (DELETE_FROM, Self::DeleteFrom)]
        {
            if let Some(rest) = key.strip_prefix(prefix) {
                let field = rest.strip_prefix('/');
                return field.map(of_field).ok_or_else(|| malformed(&format!("{key:?} must name a list")));
            }
        }
        Ok(Self::Field(key))
    }
}

fn merge_object(
    schema: &Schema,
    doc: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    match directive(patch)? {
        Directive::Merge => {}
        Directive::Delete => {
            doc.clear();
            return Ok(());
        }
        Directive::Replace => {
            *doc = clean_fields(patch);
            return Ok(());
        }
    }
    retain_keys(doc, patch)?;
    for (key, value) in patch {
        match Key::of(key)? {
            Key::Field(name) => merge_field(schema, doc, name, value, patch)?,
            Key::Order(name) if !matches!(patch.get(name), Some(Value::Array(_))) => {
                if let Some(Value::Array(items)) = doc.get_mut(name) {
                    order::set_order(below(schema, name), items, &[], list_of(value, key)?)?;
                }
            }
            Key::Order(_) | Key::DeleteFrom(_) | Key::Directive => {}
        }
    }
    // What is to be deleted is deleted last: a value that the patch both adds and deletes is gone.
    for (key, value) in patch {
        if let Key::DeleteFrom(name) = Key::of(key)? {
            let gone = list_of(value, key)?;
            if let Some(Value::Array(items)) = doc.get_mut(name) {
                list::delete_scalars(items, gone);
            }
        }
    }
    Ok(())
}

fn merge_field(
    schema: &Schema,
    doc: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let below = below(schema, name);
    match (doc.get_mut(name), value) {
        (_, Value::Null) => {
            doc.remove(name);
        }
        (Some(Value::Object(doc)), Value::Object(patch)) => merge_object(below, doc, patch)?,
        (standing, Value::Array(added)) => {
            let key = format!("{SET_ORDER}/{name}");
            let order = patch.get(&key).map(|order| list_of(order, &key)).transpose()?;
            match standing {
                Some(Value::Array(items)) => order::merge_in_order(below, items, added, order)?,
                _ => {
                    let items = order::new_in_order(below, added, order)?;
                    doc.insert(name.to_owned(), Value::Array(items));
                }
            }
        }
        (_, value) => match clean(value) {
            Some(value) => {
                doc.insert(name.to_owned(), value);
            }
            None => {
                doc.remove(name);
            }
        },
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

/// The `$patch` of an object; merging is what happens without one.
fn directive(patch: &Map<String, Value>) -> Result<Directive, PatchError> {
    match patch.get(PATCH) {
        None => Ok(Directive::Merge),
        Some(Value::String(text)) if text == "merge" => Ok(Directive::Merge),
        Some(Value::String(text)) if text == "replace" => Ok(Directive::Replace),
        Some(Value::String(text)) if text == "delete" => Ok(Directive::Delete),
        Some(other) => Err(malformed(&format!("unknown patch type: {other}"))),
    }
}

/// Clears every field that `$retainKeys` does not list.
fn retain_keys(doc: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), PatchError> {
    let Some(listed) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let listed: std::collections::BTreeSet<&str> =
        list_of(listed, RETAIN_KEYS)?.iter().filter_map(Value::as_str).collect();
    for (key, _) in patch.iter().filter(|(_, value)| !value.is_null()) {
        if let Key::Field(name) = Key::of(key)?
            && !listed.contains(name)
        {
            return Err(malformed(&format!("{name:?} is in the patch but not in its {RETAIN_KEYS} list")));
        }
    }
    doc.retain(|name, _| listed.contains(name.as_str()));
    Ok(())
}

/// A value that is new to the document, without nulls and directives. Nothing if it is to be deleted.
fn clean(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) if directive(fields) == Ok(Directive::Delete) => None,
        Value::Object(fields) => Some(Value::Object(clean_fields(fields))),
        Value::Array(items) => Some(Value::Array(clean_items(items))),
        scalar => Some(scalar.clone()),
    }
}

fn clean_fields(fields: &Map<String, Value>) -> Map<String, Value> {
    let kept =
        fields.iter().filter(|(key, value)| !value.is_null() && matches!(Key::of(key), Ok(Key::Field(_))));
    kept.filter_map(|(key, value)| Some((key.clone(), clean(value)?))).collect()
}

/// Items that carry a directive say what to do, not what to add.
fn clean_items(items: &[Value]) -> Vec<Value> {
    items.iter().filter(|item| item.get(PATCH).is_none()).filter_map(clean).collect()
}

fn below<'s>(schema: &'s Schema, name: &str) -> &'s Schema {
    static UNSPECIFIED: std::sync::LazyLock<Schema> = std::sync::LazyLock::new(Schema::default);
    schema.properties.get(name).or(schema.additional.as_ref()).map_or(&UNSPECIFIED, |schema| schema)
}

fn list_of<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], PatchError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| malformed(&format!("{key:?} must be a list")))
}

fn malformed(why: &str) -> PatchError {
    PatchError::Malformed(why.to_owned())
}
