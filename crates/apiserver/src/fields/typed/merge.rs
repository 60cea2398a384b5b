//! Laying an applied configuration over a live object.
//!
//! Owns the merge and the order of merged lists. Must never remove anything: a configuration says what
//! should be there, and what it no longer says is worked out from ownership.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Shape, field_schema, item_schema, keyed};
use crate::fields::path::PathElement;
use crate::fields::{FieldsError, Problem};
use crate::schema::Schema;

/// `live` with everything that `applied` says. Where both have a leaf the applied one counts; where only one
/// has a field it is kept.
pub fn merge(schema: &Schema, live: &Value, applied: &Value) -> Result<Value, FieldsError> {
    let (below, above) = (Shape::of(schema, live), Shape::of(schema, applied));
    match (below, above) {
        (Shape::Map(live), Shape::Map(applied)) => merge_maps(schema, live, applied).map(Value::Object),
        (Shape::List(live), Shape::List(applied)) if !(live.is_empty() && applied.is_empty()) => {
            merge_lists(schema, live, applied).map(Value::Array)
        }
        // To apply null is no way to take away what others put into a container.
        (below, Shape::Leaf) if applied.is_null() && below.has_items() => Ok(live.clone()),
        _ => Ok(applied.clone()),
    }
}

fn merge_maps(
    schema: &Schema,
    live: &Map<String, Value>,
    applied: &Map<String, Value>,
) -> Result<Map<String, Value>, FieldsError> {
    let mut merged = Map::new();
    for (name, value) in live {
        let value = match applied.get(name) {
            None => value.clone(),
            Some(above) => merge(field_schema(schema, name), value, above)
                .map_err(|e| e.within(&PathElement::field(name)))?,
        };
        merged.insert(name.clone(), value);
    }
    for (name, value) in applied.iter().filter(|(name, _)| !live.contains_key(*name)) {
        merged.insert(name.clone(), value.clone());
    }
    Ok(merged)
}

/// Items that both have come in the applied order. An item that only one has keeps its place after what
/// stands before it there, live items first.
fn merge_lists(schema: &Schema, live: &[Value], applied: &[Value]) -> Result<Vec<Value>, FieldsError> {
    let live = keyed(schema, live)?;
    let applied = keyed(schema, applied)?;
    let mut at_applied = BTreeMap::new();
    for (at, (element, _)) in applied.iter().enumerate() {
        if at_applied.insert(element, at).is_some() {
            return Err(Problem::Duplicate(element.to_string()).here());
        }
    }
    let counterpart: Vec<Option<usize>> =
        live.iter().map(|(element, _)| at_applied.get(element).copied()).collect();
    let bases = bases(&counterpart, applied.len());
    let shared: Vec<usize> = (0..applied.len()).filter(|at| bases[*at] != Base::None).collect();

    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let mut done = vec![false; applied.len()];
    let mut shared = shared.into_iter().peekable();
    let (mut l, mut a) = (0, 0);
    while l < live.len() || a < applied.len() {
        match counterpart.get(l) {
            // Only live.
            Some(None) => {
                out.push(live[l].1.clone());
                l += 1;
                continue;
            }
            // In both, and its turn has come.
            Some(Some(at)) if *at == a => l += 1,
            // In both, but another one that both have comes first.
            Some(Some(at)) if shared.peek().is_some_and(|next| next != at) => {
                l += 1;
                continue;
            }
            Some(Some(at)) if done[*at] => l += 1,
            _ => {}
        }
        if a < applied.len() {
            out.push(merge_item(schema, &bases[a], &live, &applied[a])?);
            done[a] = true;
            shared.next_if_eq(&a);
            a += 1;
        }
    }
    Ok(out)
}

/// The live item that an applied item is laid over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    None,
    Item(usize),
    /// Several have its key: the applied item takes the place of all of them.
    Duplicates,
}

fn bases(counterpart: &[Option<usize>], applied: usize) -> Vec<Base> {
    let mut bases = vec![Base::None; applied];
    for (live, applied) in counterpart.iter().enumerate() {
        let Some(base) = applied.map(|at| &mut bases[at]) else { continue };
        *base = if *base == Base::None { Base::Item(live) } else { Base::Duplicates };
    }
    bases
}

fn merge_item(
    schema: &Schema,
    base: &Base,
    live: &[(PathElement, &Value)],
    (element, applied): &(PathElement, &Value),
) -> Result<Value, FieldsError> {
    match base {
        Base::Item(at) => merge(item_schema(schema), live[*at].1, applied).map_err(|e| e.within(element)),
        Base::None | Base::Duplicates => Ok((*applied).clone()),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "the stories pass literals")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::typed::testing::schema;

    fn merged(live: Value, applied: Value) -> Value {
        merge(&schema(), &live, &applied).unwrap()
    }

    fn order(live: &[&str], applied: &[&str]) -> String {
        let list = |names: &[&str]| json!({"metadata": {"finalizers": names}});
        let out = merged(list(live), list(applied));
        let names = out["metadata"]["finalizers"].as_array().unwrap().iter().map(|v| v.as_str().unwrap());
        names.collect::<Vec<_>>().concat()
    }

    #[test]
    fn leaves_are_replaced_and_the_rest_is_kept() {
        let live = json!({"spec": {"replicas": 1, "paused": true, "selector": {"a": "1"}, "free": {"x": [1], "y": 1}}});
        let applied = json!({"spec": {"replicas": 2, "selector": {"b": "2"}, "free": {"x": [2, 3]}}});
        let want = json!({"spec": {"replicas": 2, "paused": true, "selector": {"b": "2"}, "free": {"x": [2, 3], "y": 1}}});
        assert_eq!(merged(live, applied), want);
    }

    #[test]
    fn list_items_are_merged_by_key() {
        let live =
            json!({"spec": {"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b"}]}});
        let applied = json!({"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "c"}]}});
        let want = json!({"spec": {"containers": [
            {"name": "a", "image": "2", "args": ["x"]}, {"name": "b"}, {"name": "c"},
        ]}});
        assert_eq!(merged(live, applied), want);
    }

    #[test]
    fn merged_lists_keep_the_live_order_and_let_the_applied_one_rule_what_both_have() {
        assert_eq!(order(&["a", "b", "c"], &["a", "b", "c"]), "abc");
        assert_eq!(order(&["a", "b"], &["c"]), "abc");
        assert_eq!(order(&["a", "b", "c"], &["c", "a"]), "bca");
        assert_eq!(order(&["a", "b", "c", "d"], &["d", "x", "a"]), "bcdxa");
        assert_eq!(order(&["a", "b", "c"], &["b", "x", "y", "c"]), "abxyc");
        assert_eq!(order(&["a", "b"], &["x", "a"]), "xab");
        assert_eq!(order(&[], &["b", "a"]), "ba");
        assert_eq!(order(&["b", "a"], &[]), "ba");
    }

    #[test]
    fn null_replaces_a_leaf_but_empties_no_container() {
        assert_eq!(
            merged(json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": null}})),
            json!({"spec": {"replicas": null}})
        );
        let labels = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x"]}});
        assert_eq!(merged(labels.clone(), json!({"metadata": {"labels": null, "finalizers": null}})), labels);
        assert_eq!(merged(json!({"data": {}}), json!({"data": null})), json!({"data": null}));
    }

    #[test]
    fn an_applied_item_takes_the_place_of_live_duplicates() {
        let live =
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}, {"name": "a"}]}});
        let out = merged(live, json!({"spec": {"containers": [{"name": "a", "image": "2"}]}}));
        assert_eq!(out, json!({"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "b"}]}}));
    }

    #[test]
    fn live_duplicates_stay_when_the_configuration_leaves_them_alone() {
        let live =
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]}});
        let out = merged(live.clone(), json!({"spec": {"containers": [{"name": "b"}]}}));
        assert_eq!(out["spec"]["containers"].as_array().unwrap().len(), 3);
        assert_eq!(out["spec"]["containers"][1]["image"], "2");
    }
}
