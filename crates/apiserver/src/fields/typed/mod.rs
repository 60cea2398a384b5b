//! What a schema says about the fields of a value: which are leaves, which containers are merged, and how
//! list items are told apart.
//!
//! Owns the reading of schemas for ownership. Must never judge values: validation does that elsewhere, so a
//! value of the wrong type is simply a leaf, a map or a list as JSON has it.

mod compare;
mod field_set;
mod merge;
mod remove;

use std::sync::LazyLock;

use serde_json::{Map, Value};

pub(super) use compare::every_path;
pub use compare::{Comparison, compare};
pub use field_set::field_set;
pub(super) use field_set::{collapse_atomic, stored_field_set, with_named_fields};
pub use merge::merge;
pub use remove::{extract_items, remove_items};

use super::path::PathElement;
use super::{FieldsError, Problem};
use crate::schema::{Kind, ListKind, Schema};

/// Where nothing is specified, objects are merged field by field and lists are owned as a whole.
static UNSPECIFIED: LazyLock<Schema> = LazyLock::new(Schema::default);

/// How ownership sees a value.
enum Shape<'v> {
    /// Owned and replaced as a whole.
    Leaf,
    Map(&'v Map<String, Value>),
    List(&'v [Value]),
}

impl<'v> Shape<'v> {
    fn of(schema: &Schema, value: &'v Value) -> Self {
        match value {
            Value::Object(map) if !schema.atomic => Self::Map(map),
            Value::Array(items) if schema.list != ListKind::Atomic => Self::List(items),
            _ => Self::Leaf,
        }
    }

    /// Has items of its own that can be owned.
    fn has_items(&self) -> bool {
        match self {
            Self::Leaf => false,
            Self::Map(map) => !map.is_empty(),
            Self::List(items) => !items.is_empty(),
        }
    }
}

fn is_named(schema: &Schema, name: &str) -> bool {
    schema.properties.contains_key(name)
}

fn field_schema<'s>(schema: &'s Schema, name: &str) -> &'s Schema {
    schema.properties.get(name).or(schema.additional.as_ref()).map_or(&UNSPECIFIED, |schema| schema)
}

fn item_schema(schema: &Schema) -> &Schema {
    schema.items.as_ref().map_or(&UNSPECIFIED, |schema| schema)
}

/// The schema of whatever `element` leads to.
fn schema_below<'s>(schema: &'s Schema, element: &PathElement) -> &'s Schema {
    match element {
        PathElement::Field(name) => field_schema(schema, name),
        _ => item_schema(schema),
    }
}

fn is_atomic(schema: &Schema) -> bool {
    match schema.kind {
        Kind::Object => schema.atomic,
        Kind::Array => schema.list == ListKind::Atomic,
        _ => false,
    }
}

/// What tells this item apart from the others of its list.
fn item_element(schema: &Schema, item: &Value) -> Result<PathElement, FieldsError> {
    let ListKind::Map(keys) = &schema.list else {
        return match item {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => Ok(PathElement::value(item.clone())),
            _ => Err(Problem::ItemNotScalar.here()),
        };
    };
    let Value::Object(map) = item else { return Err(Problem::ItemNotObject.here()) };
    let default =
        |key: &str| item_schema(schema).properties.get(key).and_then(|field| field.default.as_ref());
    // A key that is neither given nor defaulted is left out: "without a protocol" is an item of its own.
    let fields =
        keys.iter().filter_map(|key| Some((key.clone(), map.get(&**key).or_else(|| default(key))?.clone())));
    match PathElement::key(fields) {
        PathElement::Key(fields) if fields.is_empty() => {
            Err(Problem::NoKey(keys.iter().map(ToString::to_string).collect()).here())
        }
        element => Ok(element),
    }
}

/// The items of a list in their order, each with what tells it apart.
fn keyed<'v>(schema: &Schema, items: &'v [Value]) -> Result<Vec<(PathElement, &'v Value)>, FieldsError> {
    let element = |(at, item)| match item_element(schema, item) {
        Ok(element) => Ok((element, item)),
        Err(error) => Err(error.within(&PathElement::Index(at as i64))),
    };
    items.iter().enumerate().map(element).collect()
}

/// As [`keyed`], sorted; items that cannot be told apart stand next to each other in their order.
fn sorted<'v>(schema: &Schema, items: &'v [Value]) -> Result<Vec<(PathElement, &'v Value)>, FieldsError> {
    let mut items = keyed(schema, items)?;
    items.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(items)
}

/// What tells the items of a list apart, sorted, each with its item or nothing if several are the same.
fn distinct<'v>(
    schema: &Schema,
    items: &'v [Value],
) -> Result<Vec<(PathElement, Option<&'v Value>)>, FieldsError> {
    let mut distinct: Vec<(PathElement, Option<&Value>)> = Vec::with_capacity(items.len());
    for (element, item) in sorted(schema, items)? {
        match distinct.last_mut() {
            Some((last, only)) if *last == element => *only = None,
            _ => distinct.push((element, Some(item))),
        }
    }
    Ok(distinct)
}

/// Equality in which `1` and `1.0` are the same number.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    a == b || super::path::compare_values(a, b).is_eq()
}

#[cfg(test)]
pub(super) mod testing {
    //! A small kind that has one of everything, for the tests of this folder and its parent.

    use std::sync::Arc;

    use serde_json::json;

    use crate::schema::{Kind, ListKind, Schema};

    pub fn scalar(kind: Kind) -> Arc<Schema> {
        Arc::new(Schema { kind, ..Schema::default() })
    }

    pub fn object(fields: &[(&str, Arc<Schema>)]) -> Arc<Schema> {
        let properties = fields.iter().map(|(name, schema)| ((*name).into(), schema.clone())).collect();
        Arc::new(Schema { kind: Kind::Object, properties, ..Schema::default() })
    }

    pub fn map_of(values: Arc<Schema>) -> Arc<Schema> {
        Arc::new(Schema { kind: Kind::Object, additional: Some(values), ..Schema::default() })
    }

    pub fn list_of(list: ListKind, items: Arc<Schema>) -> Arc<Schema> {
        Arc::new(Schema { kind: Kind::Array, list, items: Some(items), ..Schema::default() })
    }

    pub fn keys(names: &[&str]) -> ListKind {
        ListKind::Map(names.iter().map(|name| (*name).into()).collect())
    }

    fn defaulted(kind: Kind, default: serde_json::Value) -> Arc<Schema> {
        Arc::new(Schema { kind, default: Some(default), ..Schema::default() })
    }

    /// Object metadata, a spec like that of a pod, and a status.
    pub fn schema() -> Schema {
        let text = || scalar(Kind::String);
        let metadata = object(&[
            ("name", text()),
            ("namespace", text()),
            ("uid", text()),
            ("resourceVersion", text()),
            ("generation", scalar(Kind::Integer)),
            ("labels", map_of(text())),
            ("annotations", map_of(text())),
            ("finalizers", list_of(ListKind::Set, text())),
            ("managedFields", list_of(ListKind::Atomic, scalar(Kind::Any))),
        ]);
        let port = object(&[
            ("containerPort", scalar(Kind::Integer)),
            ("protocol", defaulted(Kind::String, json!("TCP"))),
            ("name", text()),
        ]);
        let container = object(&[
            ("name", text()),
            ("image", text()),
            ("args", list_of(ListKind::Atomic, text())),
            ("ports", list_of(keys(&["containerPort", "protocol"]), port)),
        ]);
        let selector =
            Schema { kind: Kind::Object, atomic: true, additional: Some(text()), ..Schema::default() };
        let spec = object(&[
            ("replicas", scalar(Kind::Integer)),
            ("paused", scalar(Kind::Boolean)),
            ("selector", Arc::new(selector)),
            ("containers", list_of(keys(&["name"]), container)),
            ("free", Arc::new(Schema { kind: Kind::Object, preserve_unknown: true, ..Schema::default() })),
        ]);
        let status = object(&[("phase", text()), ("ready", scalar(Kind::Integer))]);
        let root = object(&[
            ("apiVersion", text()),
            ("kind", text()),
            ("metadata", metadata),
            ("data", map_of(text())),
            ("spec", spec),
            ("status", status),
        ]);
        Arc::unwrap_or_clone(root)
    }
}
