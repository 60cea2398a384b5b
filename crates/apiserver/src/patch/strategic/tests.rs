//! The rules of strategic merge patch, each as a small document and what becomes of it.

#![expect(clippy::needless_pass_by_value, reason = "the stories pass literals")]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::strategic;
use crate::patch::PatchError;
use crate::schema::{Kind, PatchStrategy, Schema};

fn list(merge: bool, merge_key: Option<&str>, items: Schema) -> Arc<Schema> {
    Arc::new(Schema {
        kind: Kind::Array,
        items: Some(Arc::new(items)),
        patch: PatchStrategy { merge, merge_key: merge_key.map(Into::into), retain_keys: false },
        ..Schema::default()
    })
}

/// `list` is merged by `name`, as is the `list` in its items; `ints` is merged as a set; `plain` is replaced.
fn schema() -> Schema {
    let object = |fields: Vec<(&str, Arc<Schema>)>| Schema {
        kind: Kind::Object,
        properties: fields.into_iter().map(|(name, schema)| (name.into(), schema)).collect(),
        ..Schema::default()
    };
    let ints = || list(true, None, Schema { kind: Kind::Integer, ..Schema::default() });
    let inner = object(vec![("list", list(true, Some("name"), Schema::default())), ("ints", ints())]);
    object(vec![
        ("list", list(true, Some("name"), inner.clone())),
        ("ints", ints()),
        ("plain", list(false, None, Schema::default())),
        ("nokey", list(true, None, Schema::default())),
        ("map", Arc::new(inner)),
    ])
}

fn patched(mut doc: Value, patch: Value) -> Result<Value, PatchError> {
    strategic(&schema(), &mut doc, &patch).map(|()| doc)
}

#[track_caller]
fn check(doc: Value, patch: Value, want: Value) {
    assert_eq!(patched(doc, patch), Ok(want));
}

#[track_caller]
fn refused(doc: Value, patch: Value, text: &str) {
    let error = patched(doc, patch).unwrap_err();
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn objects_merge_null_deletes_and_scalars_are_replaced() {
    check(
        json!({"map": {"a": 1, "b": 2}, "x": 1, "y": {"deep": {"z": 1}}}),
        json!({"map": {"a": null, "c": 3}, "x": "one", "y": {"deep": {"w": 2}}, "gone": null}),
        json!({"map": {"b": 2, "c": 3}, "x": "one", "y": {"deep": {"z": 1, "w": 2}}}),
    );
}

#[test]
fn a_value_that_is_new_comes_without_nulls_and_directives() {
    check(
        json!({}),
        json!({
            "map": {"a": null, "b": 1, "$setElementOrder/ints": [1], "$retainKeys": ["b"]},
            "list": [{"name": "a", "x": null}, {"name": "b", "$patch": "delete"}, {"$patch": "replace"}],
            "dead": {"$patch": "delete"},
            "fresh": {"$patch": "replace", "a": 1},
        }),
        json!({"map": {"b": 1}, "list": [{"name": "a"}], "fresh": {"a": 1}}),
    );
}

#[test]
fn a_value_of_another_kind_replaces() {
    check(
        json!({"map": [1], "ints": {"a": 1}}),
        json!({"map": {"a": 1}, "ints": [1]}),
        json!({"map": {"a": 1}, "ints": [1]}),
    );
    check(json!({"map": null}), json!({"map": {"a": 1}}), json!({"map": {"a": 1}}));
}

#[test]
fn an_object_can_be_replaced_or_emptied() {
    let doc = json!({"map": {"a": 1, "b": 2}, "x": 1});
    check(doc.clone(), json!({"map": {"$patch": "replace", "c": 3}}), json!({"map": {"c": 3}, "x": 1}));
    check(doc.clone(), json!({"map": {"$patch": "delete"}}), json!({"map": {}, "x": 1}));
    check(
        doc.clone(),
        json!({"map": {"$patch": "merge", "c": 3}}),
        json!({"map": {"a": 1, "b": 2, "c": 3}, "x": 1}),
    );
    check(doc.clone(), json!({"$patch": "replace"}), json!({}));
    check(doc, json!({"$patch": "replace", "other": "a"}), json!({"other": "a"}));
}

#[test]
fn a_directive_nobody_knows_is_refused() {
    refused(json!({"map": {}}), json!({"map": {"$patch": "frob"}}), "unknown patch type");
    refused(json!({"map": {}}), json!({"map": {"$patch": 7}}), "unknown patch type");
    refused(
        json!({"list": [{"name": "a"}]}),
        json!({"list": [{"name": "a", "$patch": "frob"}]}),
        "unknown patch type",
    );
    refused(
        json!({"list": [{"name": "a"}]}),
        json!({"list": [{"name": "a", "$patch": "merge"}]}),
        "cannot yet",
    );
    refused(json!({}), json!({"$setElementOrder": []}), "must name a list");
    refused(json!({}), json!({"$deleteFromPrimitiveListX/ints": []}), "must name a list");
    refused(json!({"ints": [1]}), json!({"$deleteFromPrimitiveList/ints": 1}), "must be a list");
    refused(json!({}), json!([]), "must be an object");
}

#[test]
fn a_list_without_a_strategy_is_replaced() {
    check(
        json!({"plain": [1, 2], "unknown": [1]}),
        json!({"plain": [3], "unknown": []}),
        json!({"plain": [3], "unknown": []}),
    );
}

#[test]
fn lists_of_objects_merge_by_their_key() {
    check(
        json!({"list": [{"name": 1, "value": 1}, {"name": 2, "value": 2}]}),
        json!({"list": [{"name": 2, "value": 3, "other": 1}, {"name": 3}]}),
        json!({"list": [{"name": 1, "value": 1}, {"name": 2, "value": 3, "other": 1}, {"name": 3}]}),
    );
    check(
        json!({"list": [{"name": "a", "list": [{"name": "x"}, {"name": "y", "v": 1}]}]}),
        json!({"list": [{"name": "a", "list": [{"name": "y", "v": null}]}]}),
        json!({"list": [{"name": "a", "list": [{"name": "x"}, {"name": "y"}]}]}),
    );
}

#[test]
fn an_item_is_deleted_by_its_key_with_all_its_duplicates() {
    check(
        json!({"list": [{"name": 1}, {"name": 1}, {"name": 2, "value": "a"}, {"name": 3}, {"name": 3}]}),
        json!({"list": [{"name": 1, "$patch": "delete"}, {"name": 3, "$patch": "delete"}, {"name": 9, "$patch": "delete"}]}),
        json!({"list": [{"name": 2, "value": "a"}]}),
    );
    refused(json!({"list": [{"name": 1}]}), json!({"list": [{"$patch": "delete"}]}), "merge key");
}

#[test]
fn a_merged_list_can_be_replaced() {
    check(json!({"list": [{"name": 1}]}), json!({"list": [{"$patch": "replace"}]}), json!({"list": []}));
    check(
        json!({"list": [{"name": 1}, {"name": 2}]}),
        json!({"list": [{"name": 3}, {"$patch": "replace"}, {"name": 1, "x": 1}]}),
        json!({"list": [{"name": 3}, {"name": 1, "x": 1}]}),
    );
}

#[test]
fn an_item_without_its_merge_key_is_refused() {
    let missing = "does not contain declared merge key: name";
    refused(json!({"list": [{"name": 1}]}), json!({"list": [{"value": "b"}]}), missing);
    refused(json!({"list": [{"value": 1}]}), json!({"list": [{"name": "b"}]}), missing);
    refused(json!({"nokey": [{"a": 1}]}), json!({"nokey": [{"a": 1}]}), "without a merge key");
}

#[test]
fn lists_must_hold_one_kind_of_thing() {
    refused(json!({"list": [{"name": 1}]}), json!({"list": ["a"]}), "not identical");
    refused(json!({"ints": [[1]]}), json!({"ints": [1]}), "lists of lists");
    refused(json!({"ints": [1]}), json!({"ints": [null]}), "null");
}

#[test]
fn lists_of_scalars_merge_as_sets() {
    check(json!({"ints": [1, 2]}), json!({"ints": [2, 3]}), json!({"ints": [1, 2, 3]}));
    check(json!({"ints": []}), json!({"ints": []}), json!({"ints": []}));
    check(json!({"ints": [3, 1, 2]}), json!({"ints": [1, 3]}), json!({"ints": [1, 3, 2]}));
}

#[test]
fn scalars_are_deleted_by_value_whatever_the_strategy() {
    check(
        json!({"ints": [1, 2, 1, 3]}),
        json!({"$deleteFromPrimitiveList/ints": [1, 9]}),
        json!({"ints": [2, 3]}),
    );
    check(json!({"plain": [1, 2]}), json!({"$deleteFromPrimitiveList/plain": [2]}), json!({"plain": [1]}));
    check(
        json!({"x": 1, "ints": null}),
        json!({"$deleteFromPrimitiveList/ints": [1], "$deleteFromPrimitiveList/no": [1]}),
        json!({"x": 1, "ints": null}),
    );
    check(
        json!({"ints": [1, 2]}),
        json!({"ints": [3], "$deleteFromPrimitiveList/ints": [1], "$setElementOrder/ints": [2, 3]}),
        json!({"ints": [2, 3]}),
    );
}

#[test]
fn the_order_directive_rules_and_server_only_items_keep_their_place() {
    let named = |names: &[i32]| names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>();
    for (live, order, want) in [
        (vec![1, 3, 4, 2, 9], vec![4, 2, 3, 1], vec![4, 2, 3, 1, 9]),
        (vec![1, 2, 9, 3, 4], vec![2, 1, 4, 3], vec![2, 1, 9, 4, 3]),
        (vec![1, 2, 7, 9, 8, 3, 4], vec![2, 1, 4, 3], vec![2, 1, 7, 9, 8, 4, 3]),
        (vec![1, 3], vec![3, 2, 1], vec![3, 1]),
        (vec![1, 2, 3, 2, 4], vec![2, 1, 4, 3, 2], vec![2, 2, 1, 4, 3]),
    ] {
        check(json!({"ints": live}), json!({"$setElementOrder/ints": order}), json!({"ints": want}));
        check(
            json!({"list": named(&live)}),
            json!({"$setElementOrder/list": named(&order)}),
            json!({"list": named(&want)}),
        );
    }
    check(
        json!({"list": [{"name": 1}, {"name": 3}]}),
        json!({
            "$setElementOrder/list": [{"name": 3}, {"name": 2}, {"name": 1}],
            "list": [{"name": 3, "value": 3}, {"name": 2}, {"name": 1, "value": 1}, {"name": 8, "$patch": "delete"}],
        }),
        json!({"list": [{"name": 3, "value": 3}, {"name": 2}, {"name": 1, "value": 1}]}),
    );
    check(json!({}), json!({"$setElementOrder/list": [{"name": 1}]}), json!({}));
}

#[test]
fn a_patch_must_agree_with_its_order_directive() {
    refused(
        json!({"ints": [1, 3, 2]}),
        json!({"$setElementOrder/ints": [1, 2, 3], "ints": [3, 1]}),
        "doesn't match",
    );
    refused(
        json!({"list": [{"name": 1}]}),
        json!({"$setElementOrder/list": [{"name": 1}], "list": [{"name": 2}]}),
        "doesn't match",
    );
    refused(json!({}), json!({"$setElementOrder/ints": [1], "ints": [1, 1]}), "doesn't match");
    refused(json!({"ints": [1]}), json!({"$setElementOrder/ints": 3}), "must be a list");
}

#[test]
fn retained_keys_clear_the_others() {
    check(
        json!({"map": {"type": "RollingUpdate", "rollingUpdate": {"max": 1}}}),
        json!({"map": {"$retainKeys": ["type"], "type": "Recreate"}}),
        json!({"map": {"type": "Recreate"}}),
    );
    check(
        json!({"map": {"a": 1, "b": 2, "c": 3}}),
        json!({"map": {"$retainKeys": ["a", "d"], "d": 4, "b": null}}),
        json!({"map": {"a": 1, "d": 4}}),
    );
    refused(json!({"map": {}}), json!({"map": {"$retainKeys": ["a"], "b": 1}}), "$retainKeys");
    refused(json!({"map": {}}), json!({"map": {"$retainKeys": "a"}}), "must be a list");
}

/// Documents out of few names and values, so that they often meet, with every directive thrown in.
fn document() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!(null)),
        (0..4).prop_map(Value::from),
        Just(json!("a")),
        Just(json!("delete")),
        Just(json!("replace")),
    ];
    let key = prop_oneof![
        6 => prop::sample::select(vec!["list", "ints", "plain", "nokey", "map", "name", "x"]),
        3 => prop::sample::select(vec![
            "$patch", "$retainKeys", "$setElementOrder/list", "$setElementOrder/ints", "$setElementOrder",
            "$deleteFromPrimitiveList/ints", "$deleteFromPrimitiveList/list", "$other",
        ]),
    ];
    scalar.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone().prop_map(String::from), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    document().prop_map(|value| if value.is_object() { value } else { json!({"list": value}) })
}

fn has_directive(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            ["$patch", "$retainKeys", "$setElementOrder", "$deleteFromPrimitiveList"]
                .iter()
                .any(|d| key.starts_with(d))
                || has_directive(value)
        }),
        Value::Array(items) => items.iter().any(has_directive),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_patch_panics_and_no_directive_is_left_behind(doc in object(), patch in object()) {
        if let Ok(after) = patched(doc.clone(), patch) {
            prop_assert!(has_directive(&doc) || !has_directive(&after), "{after}");
        }
    }

    #[test]
    fn an_empty_patch_changes_nothing(doc in object()) {
        prop_assert_eq!(patched(doc.clone(), json!({})), Ok(doc));
    }

    #[test]
    fn a_list_of_keys_ends_up_in_the_order_that_was_asked_for(
        live in prop::collection::btree_set(0..20, 0..10), order in prop::collection::vec(0..20, 0..10).prop_shuffle(),
    ) {
        let live: Vec<i32> = live.into_iter().collect();
        let order = order.into_iter().fold(Vec::new(), |mut seen, n| { if !seen.contains(&n) { seen.push(n); } seen });
        let after = patched(json!({"ints": live}), json!({"$setElementOrder/ints": order})).unwrap();
        let after: Vec<i32> = serde_json::from_value(after["ints"].clone()).unwrap();
        let mut sorted = after.clone();
        sorted.sort_unstable();
        prop_assert_eq!(&sorted, &live);
        let listed: Vec<i32> = after.iter().copied().filter(|n| order.contains(n)).collect();
        let wanted: Vec<i32> = order.iter().copied().filter(|n| live.contains(n)).collect();
        prop_assert_eq!(listed, wanted);
    }
}
