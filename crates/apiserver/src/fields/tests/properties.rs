//! What holds whatever was written before and by whom.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::managed::SYSTEM_FIELDS;
use super::super::typed::testing::schema;
use super::super::typed::{compare, every_path, stored_field_set, with_named_fields};
use super::super::{ApplyError, Path, Set, WriteContext, apply, track_update};
use super::{anything, at};

fn written(live: Option<&Value>, mut new: Value, ctx: &WriteContext<'_>) -> Value {
    track_update(&schema(), live, &mut new, &Set::new(), ctx).unwrap();
    new
}

fn owners(object: &Value) -> Vec<(String, Set)> {
    let list = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let set = |e: &Value| Set::from_fields_v1(&e["fieldsV1"]).unwrap();
    list.iter().map(|e| (e["manager"].as_str().unwrap().to_owned(), set(e))).collect()
}

fn owned(object: &Value, manager: &str, operation: &str) -> Set {
    let list = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let entry = list.iter().find(|e| e["manager"] == manager && e["operation"] == operation);
    entry.map(|e| Set::from_fields_v1(&e["fieldsV1"]).unwrap()).unwrap_or_default()
}

fn forced(live: Option<&Value>, config: &Value, manager: &str, second: i64) -> Value {
    apply(&schema(), live, config, &Set::new(), true, &at(manager, second)).unwrap()
}

fn leaves(object: &Value) -> Set {
    let mut set = stored_field_set(&schema(), object).unwrap();
    set.subtract(&SYSTEM_FIELDS);
    set
}

/// What somebody else did to the object before.
fn history() -> impl Strategy<Value = Option<Value>> {
    let writes =
        prop::collection::vec((anything(), any::<bool>(), prop::sample::select(vec!["b", "c"])), 0..4);
    writes.prop_map(|writes| {
        let mut live: Option<Value> = None;
        for (second, (mut object, applied, manager)) in writes.into_iter().enumerate() {
            live = Some(if applied {
                forced(live.as_ref(), &object, manager, second as i64)
            } else {
                track_update(&schema(), live.as_ref(), &mut object, &Set::new(), &at(manager, second as i64))
                    .unwrap();
                object
            });
        }
        live
    })
}

proptest! {
    #[test]
    fn updaters_share_out_an_object_without_overlap_and_without_rest(
        versions in prop::collection::vec((anything(), prop::sample::select(vec!["a", "b", "c"])), 1..6),
    ) {
        let mut live: Option<Value> = None;
        for (second, (new, manager)) in versions.into_iter().enumerate() {
            let before = live.clone();
            let after = written(live.as_ref(), new.clone(), &at(manager, second as i64));
            let owned = owners(&after);
            let mut all = Set::new();
            for (_, set) in &owned {
                prop_assert!(all.intersection(set).is_empty(), "two owners of {:?}", all.intersection(set).paths());
                all.absorb(set.clone());
            }
            // Everything that is there has an owner, and nothing that is not there has one.
            let mut there = stored_field_set(&schema(), &new).unwrap();
            there.subtract(&SYSTEM_FIELDS);
            prop_assert!(there.is_subset(&all), "unowned: {:?}", there.difference(&all).paths());
            let every = every_path(&schema(), &new).unwrap();
            prop_assert!(all.is_subset(&every));
            // What changed is the writer's.
            if let Some(before) = before {
                let mut changed = compare(&schema(), &before, &after).unwrap();
                changed.exclude(&SYSTEM_FIELDS, false);
                let mine = owned.iter().find(|(name, _)| name == manager).map(|(_, set)| set.clone()).unwrap_or_default();
                prop_assert!(changed.added.is_subset(&mine) && changed.modified.is_subset(&mine));
                prop_assert!(all.intersection(&changed.removed).is_empty());
            }
            live = Some(after);
        }
    }

    #[test]
    fn applying_twice_is_applying_once(live in history(), config in anything()) {
        let once = forced(live.as_ref(), &config, "a", 100);
        // Where nobody has claimed anything, the second apply is the first that finds something untracked.
        prop_assume!(once["metadata"].get("managedFields").is_some());
        let twice = forced(Some(&once), &config, "a", 200);
        prop_assert_eq!(&once, &twice);
        let unforced = apply(&schema(), Some(&once), &config, &Set::new(), false, &at("a", 200));
        prop_assert_eq!(once, unforced.unwrap());
    }

    #[test]
    fn every_leaf_of_the_configuration_is_in_the_object_and_owned(live in history(), config in anything()) {
        let object = forced(live.as_ref(), &config, "a", 100);
        prop_assert_eq!(owned(&object, "a", "Apply"), leaves(&config));
        let comparison = compare(&schema(), &config, &object).unwrap();
        prop_assert!(comparison.modified.is_empty() && comparison.removed.is_empty(), "{comparison:?}");
    }

    #[test]
    fn nobody_loses_a_field_whose_value_did_not_change(live in history(), config in anything()) {
        let Some(live) = live else { return Ok(()) };
        let object = forced(Some(&live), &config, "a", 100);
        let changed = compare(&schema(), &live, &object).unwrap();
        for entry in live["metadata"]["managedFields"].as_array().unwrap_or(&vec![]) {
            let (manager, operation) = (entry["manager"].as_str().unwrap(), entry["operation"].as_str().unwrap());
            let mut kept = Set::from_fields_v1(&entry["fieldsV1"]).unwrap();
            for gone in [&changed.added, &changed.modified, &changed.removed] {
                kept.subtract(gone);
            }
            prop_assert_eq!(owned(&object, manager, operation), kept);
        }
    }

    #[test]
    fn taking_everything_back_removes_exactly_what_was_only_ours(live in history(), config in anything()) {
        let object = forced(live.as_ref(), &config, "a", 100);
        let bare = forced(Some(&object), &json!({"apiVersion": "v1", "kind": "Web"}), "a", 200);
        prop_assert!(owned(&bare, "a", "Apply").is_empty());
        let ours = owned(&object, "a", "Apply");
        let mut others = Set::new();
        for entry in object["metadata"]["managedFields"].as_array().unwrap_or(&vec![]) {
            if entry["manager"] != "a" {
                others.absorb(Set::from_fields_v1(&entry["fieldsV1"]).unwrap());
            }
        }
        let (before, after) = (leaves(&object), leaves(&bare));
        // What is gone was ours, or nobody's in a container that held nothing of anybody else's.
        let named = |set: &Set| with_named_fields(&schema(), set.clone());
        let only_ours = named(&ours).difference(&named(&others));
        for path in before.difference(&after).paths() {
            let ours = (1..=path.0.len()).any(|n| only_ours.contains(&Path(path.0[..n].to_vec())));
            prop_assert!(ours, "{path} is gone");
        }
        // What is left of ours is others' too, or holds something of theirs.
        for path in after.intersection(&ours).paths() {
            let below = |p: &Path| p.0.starts_with(&path.0);
            prop_assert!(others.paths().iter().any(below), "{path} is still there");
        }
    }

    #[test]
    fn without_force_an_apply_either_conflicts_or_does_what_force_does(live in history(), config in anything()) {
        match apply(&schema(), live.as_ref(), &config, &Set::new(), false, &at("a", 100)) {
            Ok(object) => prop_assert_eq!(object, forced(live.as_ref(), &config, "a", 100)),
            Err(ApplyError::Conflicts(conflicts)) => prop_assert!(conflicts.iter().all(|c| !c.fields.is_empty())),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
