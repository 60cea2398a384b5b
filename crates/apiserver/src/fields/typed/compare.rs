//! What one write did to an object: the fields it added, changed and removed.
//!
//! Owns the comparison of two objects of one kind. Must never decide whose fields they are.

use serde_json::{Map, Value};

use super::{Shape, distinct, field_schema, item_schema, same, sorted};
use crate::fields::FieldsError;
use crate::fields::path::PathElement;
use crate::fields::set::Set;
use crate::schema::Schema;

/// The difference between two objects. No path is in more than one of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    pub added: Set,
    pub modified: Set,
    pub removed: Set,
}

impl Comparison {
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Forgets the fields in `paths`, and with `below` what is under them.
    pub(in crate::fields) fn exclude(&mut self, paths: &Set, below: bool) {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            if below {
                set.subtract_recursively(paths);
            } else {
                set.subtract(paths);
            }
        }
    }

    fn attach(&mut self, element: PathElement, modified: bool, below: Comparison) {
        self.added.push(element.clone(), false, below.added);
        self.removed.push(element.clone(), false, below.removed);
        self.modified.push(element, modified, below.modified);
    }
}

/// Compares two objects of the kind that `schema` describes.
pub fn compare(schema: &Schema, old: &Value, new: &Value) -> Result<Comparison, FieldsError> {
    let mut comparison = Comparison::default();
    diff(schema, old, new, &mut comparison)?;
    Ok(comparison)
}

/// Every path in `value`, containers included: what creating it adds.
pub(in crate::fields) fn every_path(schema: &Schema, value: &Value) -> Result<Set, FieldsError> {
    match Shape::of(schema, value) {
        Shape::Leaf => Ok(Set::new()),
        Shape::Map(map) => {
            let mut set = Set::with_capacity(map.len());
            for (name, value) in map {
                let element = PathElement::field(name);
                let children =
                    every_path(field_schema(schema, name), value).map_err(|e| e.within(&element))?;
                set.push(element, true, children);
            }
            Ok(set)
        }
        Shape::List(items) => {
            let mut set = Set::with_capacity(items.len());
            for (element, item) in distinct(schema, items)? {
                // Duplicates are known by their key alone.
                let children = match item {
                    Some(item) => every_path(item_schema(schema), item).map_err(|e| e.within(&element))?,
                    None => Set::new(),
                };
                set.push(element, true, children);
            }
            Ok(set)
        }
    }
}

/// Adds to `out` what differs below; says whether the value itself, as a whole, was modified.
fn diff(schema: &Schema, old: &Value, new: &Value, out: &mut Comparison) -> Result<bool, FieldsError> {
    let (before, after) = (Shape::of(schema, old), Shape::of(schema, new));
    let nothing = Map::new();
    match (&before, &after) {
        _ if !before.has_items() && !after.has_items() => return Ok(!same(old, new)),
        (Shape::Map(a), Shape::Map(b)) => diff_maps(schema, a, b, out)?,
        (Shape::Map(a), _) if new.is_null() => diff_maps(schema, a, &nothing, out)?,
        (_, Shape::Map(b)) if old.is_null() => diff_maps(schema, &nothing, b, out)?,
        // Most lists do not change, and to see that is much cheaper than to tell their items apart.
        (Shape::List(a), Shape::List(b)) if a == b => {}
        (Shape::List(a), Shape::List(b)) => diff_lists(schema, a, b, out)?,
        (Shape::List(a), _) if new.is_null() => diff_lists(schema, a, &[], out)?,
        (_, Shape::List(b)) if old.is_null() => diff_lists(schema, &[], b, out)?,
        // One kind of value became another.
        _ => {
            out.removed.absorb(every_path(schema, old)?);
            out.added.absorb(every_path(schema, new)?);
            return Ok(!before.has_items() || !after.has_items());
        }
    }
    Ok(false)
}

fn diff_maps(
    schema: &Schema,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    out: &mut Comparison,
) -> Result<(), FieldsError> {
    for (name, after) in new {
        let below = field_schema(schema, name);
        let at = |e: FieldsError| e.within(&PathElement::field(name));
        let Some(before) = old.get(name) else {
            out.added.push(PathElement::field(name), true, every_path(below, after).map_err(at)?);
            continue;
        };
        let mut inner = Comparison::default();
        let modified = diff(below, before, after, &mut inner).map_err(at)?;
        if modified || !inner.is_same() {
            out.attach(PathElement::field(name), modified, inner);
        }
    }
    for (name, before) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        let paths = every_path(field_schema(schema, name), before);
        let paths = paths.map_err(|e| e.within(&PathElement::field(name)))?;
        out.removed.push(PathElement::field(name), true, paths);
    }
    Ok(())
}

fn diff_lists(
    schema: &Schema,
    old: &[Value],
    new: &[Value],
    out: &mut Comparison,
) -> Result<(), FieldsError> {
    let (old, new) = (sorted(schema, old)?, sorted(schema, new)?);
    let same_key = |a: &(PathElement, &Value), b: &(PathElement, &Value)| a.0 == b.0;
    let mut befores = old.chunk_by(same_key).peekable();
    for after in new.chunk_by(same_key) {
        let element = &after[0].0;
        while let Some(gone) = befores.next_if(|before| before[0].0 < *element) {
            diff_items(schema, gone, &[], out)?;
        }
        let before = befores.next_if(|before| before[0].0 == *element).unwrap_or_default();
        diff_items(schema, before, after, out)?;
    }
    befores.try_for_each(|gone| diff_items(schema, gone, &[], out))
}

/// Compares the items with one key. More than one on a side are duplicates, which are known by their key
/// alone and change together.
fn diff_items(
    schema: &Schema,
    before: &[(PathElement, &Value)],
    after: &[(PathElement, &Value)],
    out: &mut Comparison,
) -> Result<(), FieldsError> {
    let Some((element, _)) = before.first().or(after.first()) else { return Ok(()) };
    let below = item_schema(schema);
    let paths = |item: &Value| every_path(below, item).map_err(|e| e.within(element));
    match (before, after) {
        ([(_, old)], [(_, new)]) => {
            let mut inner = Comparison::default();
            let modified = diff(below, old, new, &mut inner).map_err(|e| e.within(element))?;
            if modified || !inner.is_same() {
                out.attach(element.clone(), modified, inner);
            }
        }
        ([], [(_, new)]) => out.added.push(element.clone(), true, paths(new)?),
        ([(_, old)], []) => out.removed.push(element.clone(), true, paths(old)?),
        ([_, _, ..], [_, _, ..]) => {
            let equal = before.len() == after.len() && before.iter().zip(after).all(|(a, b)| same(a.1, b.1));
            out.modified.push(element.clone(), !equal, Set::new());
        }
        ([_, _, ..], _) => {
            if let [(_, new)] = after {
                out.added.push(element.clone(), true, paths(new)?);
            }
            out.removed.push(element.clone(), true, Set::new());
        }
        (_, [_, _, ..]) => {
            if let [(_, old)] = before {
                out.removed.push(element.clone(), true, paths(old)?);
            }
            out.added.push(element.clone(), true, Set::new());
        }
        ([], []) => {}
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "the stories pass literals")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::typed::testing::schema;

    fn changes(old: Value, new: Value) -> [Vec<String>; 3] {
        let comparison = compare(&schema(), &old, &new).unwrap();
        let text = |set: &Set| set.paths().iter().map(ToString::to_string).collect();
        [text(&comparison.added), text(&comparison.modified), text(&comparison.removed)]
    }

    #[test]
    fn equal_objects_have_no_difference() {
        let object = json!({"spec": {"replicas": 1, "containers": [{"name": "a"}], "selector": {"x": "y"}}});
        assert!(compare(&schema(), &object, &object).unwrap().is_same());
        let float = json!({"spec": {"replicas": 1.0, "containers": [{"name": "a"}], "selector": {"x": "y"}}});
        assert!(compare(&schema(), &object, &float).unwrap().is_same());
    }

    #[test]
    fn an_added_container_is_added_with_all_it_holds() {
        let [added, modified, removed] =
            changes(json!({}), json!({"metadata": {"labels": {"app": "web"}}, "spec": {"replicas": 1}}));
        assert_eq!(
            added,
            [".metadata", ".spec", ".metadata.labels", ".metadata.labels.app", ".spec.replicas"]
        );
        assert!(modified.is_empty() && removed.is_empty());
    }

    #[test]
    fn scalars_change_and_atomic_containers_change_as_a_whole() {
        let [added, modified, removed] = changes(
            json!({"spec": {"replicas": 1, "selector": {"a": "1"}}}),
            json!({"spec": {"replicas": 2, "selector": {"b": "1"}, "paused": true}}),
        );
        assert_eq!(added, [".spec.paused"]);
        assert_eq!(modified, [".spec.replicas", ".spec.selector"]);
        assert!(removed.is_empty());
    }

    #[test]
    fn list_items_are_found_by_key_wherever_they_stand() {
        let [added, modified, removed] = changes(
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}, {"name": "c"}]}}),
            json!({"spec": {"containers": [{"name": "c"}, {"name": "a", "image": "2"}, {"name": "d"}]}}),
        );
        assert_eq!(added, [r#".spec.containers[name="d"]"#, r#".spec.containers[name="d"].name"#]);
        assert_eq!(modified, [r#".spec.containers[name="a"].image"#]);
        assert_eq!(removed, [r#".spec.containers[name="b"]"#, r#".spec.containers[name="b"].name"#]);
    }

    #[test]
    fn emptied_and_nulled_containers_lose_their_items_only() {
        let labels = json!({"metadata": {"labels": {"a": "1"}}});
        for emptied in [json!({"metadata": {"labels": {}}}), json!({"metadata": {"labels": null}})] {
            let [added, modified, removed] = changes(labels.clone(), emptied);
            assert_eq!(removed, [".metadata.labels.a"]);
            assert!(added.is_empty() && modified.is_empty());
        }
        let [_, modified, _] = changes(json!({"data": {}}), json!({"data": null}));
        assert_eq!(modified, [".data"]);
    }

    #[test]
    fn a_value_may_become_one_of_another_kind() {
        let [added, modified, removed] =
            changes(json!({"spec": {"free": {"a": {"b": 1}}}}), json!({"spec": {"free": {"a": "text"}}}));
        assert_eq!(modified, [".spec.free.a"]);
        assert_eq!(removed, [".spec.free.a.b"]);
        assert!(added.is_empty());
    }

    #[test]
    fn duplicates_are_compared_as_one() {
        let twice =
            |image: &str| json!({"spec": {"containers": [{"name": "a"}, {"name": "a", "image": image}]}});
        let once = json!({"spec": {"containers": [{"name": "a"}]}});
        let a = r#".spec.containers[name="a"]"#;
        assert_eq!(changes(twice("1"), twice("1")), [vec![], vec![], Vec::<String>::new()]);
        assert_eq!(changes(twice("1"), twice("2"))[1], [a]);
        assert_eq!(changes(once.clone(), twice("1"))[0], [a]);
        assert_eq!(changes(twice("1"), once)[2], [a]);
    }
}
