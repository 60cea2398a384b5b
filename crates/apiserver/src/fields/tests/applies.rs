//! Server-side apply, told as what appliers and updaters do to one object after the other.

use serde_json::{Value, json};

use super::super::typed::testing::schema;
use super::super::{
    ApplyError, Operation, Set, WriteContext, apply, conflict_message, reset_all_but, track_update,
};
use super::at;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn config(rest: Value) -> Value {
    let mut config = json!({"apiVersion": "v1", "kind": "Web", "metadata": {"name": "web"}});
    for (key, value) in rest.as_object().unwrap() {
        if key == "metadata" {
            for (key, value) in value.as_object().unwrap() {
                config["metadata"][key] = value.clone();
            }
        } else {
            config[key] = value.clone();
        }
    }
    config
}

/// One object and the people who write it, one second apart.
#[derive(Default)]
struct Story {
    live: Option<Value>,
    second: i64,
}

impl Story {
    fn try_apply(&mut self, manager: &str, rest: Value, force: bool) -> Result<&Value, ApplyError> {
        self.second += 1;
        let ctx = at(manager, self.second);
        let reset = Set::of_fields(&[&["status"]]);
        let object = apply(&schema(), self.live.as_ref(), &config(rest), &reset, force, &ctx)?;
        Ok(self.live.insert(object))
    }

    #[track_caller]
    fn applies(&mut self, manager: &str, rest: Value) -> &mut Self {
        self.try_apply(manager, rest, false).unwrap();
        self
    }

    #[track_caller]
    fn forces(&mut self, manager: &str, rest: Value) -> &mut Self {
        self.try_apply(manager, rest, true).unwrap();
        self
    }

    #[track_caller]
    fn conflicts(&mut self, manager: &str, rest: Value) -> String {
        let before = self.live.clone();
        let error = self.try_apply(manager, rest, false).map(drop).unwrap_err();
        assert_eq!(self.live, before);
        let ApplyError::Conflicts(conflicts) = error else { panic!("{error}") };
        conflict_message(&conflicts)
    }

    /// An update that changes the object in place.
    fn updates(&mut self, manager: &str, change: impl FnOnce(&mut Value)) -> &mut Self {
        self.second += 1;
        let mut new = self.live.clone().unwrap_or_else(|| config(json!({})));
        change(&mut new);
        track_update(&schema(), self.live.as_ref(), &mut new, &Set::new(), &at(manager, self.second))
            .unwrap();
        self.live = Some(new);
        self
    }

    fn object(&self) -> &Value {
        self.live.as_ref().unwrap()
    }

    #[track_caller]
    fn has(&mut self, part: &str, want: Value) -> &mut Self {
        assert_eq!(self.object().pointer(part).cloned().unwrap_or_default(), want);
        self
    }

    #[track_caller]
    fn owns(&mut self, manager: &str, want: Value) -> &mut Self {
        let list = self.object()["metadata"]["managedFields"].as_array().unwrap();
        let entry = list.iter().find(|e| e["manager"] == manager);
        assert_eq!(entry.map(|e| e["fieldsV1"].clone()), (!want.is_null()).then_some(want));
        self
    }

    fn time(&self, manager: &str) -> &str {
        let list = self.object()["metadata"]["managedFields"].as_array().unwrap();
        list.iter().find(|e| e["manager"] == manager).unwrap()["time"].as_str().unwrap()
    }
}

#[test]
fn the_first_apply_makes_the_object_and_owns_what_it_says() {
    let mut story = Story::default();
    story.applies("a", json!({"spec": {"replicas": 1, "containers": [{"name": "x", "image": "i"}]}}));
    assert_eq!(
        story.object(),
        &json!({
            "apiVersion": "v1",
            "kind": "Web",
            "metadata": {
                "name": "web",
                "managedFields": [{
                    "manager": "a",
                    "operation": "Apply",
                    "apiVersion": "v1",
                    "time": "1970-01-01T00:00:01Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {
                        "f:replicas": {},
                        "f:containers": {r#"k:{"name":"x"}"#: {".": {}, "f:name": {}, "f:image": {}}},
                    }},
                }],
            },
            "spec": {"replicas": 1, "containers": [{"name": "x", "image": "i"}]},
        })
    );
}

#[test]
fn the_same_configuration_again_changes_nothing_not_even_the_time() {
    let mut story = Story::default();
    let spec =
        json!({"spec": {"replicas": 1, "containers": [{"name": "x"}]}, "metadata": {"labels": {"a": "b"}}});
    story.applies("a", spec.clone());
    let before = story.object().clone();
    story.applies("a", spec);
    assert_eq!(story.object(), &before);
}

#[test]
fn a_new_value_for_an_own_field_is_taken_and_timed() {
    let mut story = Story::default();
    story.applies("a", json!({"spec": {"replicas": 1}})).applies("a", json!({"spec": {"replicas": 2}}));
    story.has("/spec/replicas", json!(2));
    assert_eq!(story.time("a"), "1970-01-01T00:00:02Z");
}

#[test]
fn a_field_its_only_applier_drops_is_removed() {
    Story::default()
        .applies("a", json!({"spec": {"replicas": 1, "paused": true}, "metadata": {"labels": {"x": "1"}}}))
        .applies("a", json!({"spec": {"replicas": 1}}))
        .has("/spec", json!({"replicas": 1}))
        .has("/metadata/labels", json!(null))
        .owns("a", json!({"f:spec": {"f:replicas": {}}}));
}

#[test]
fn a_field_that_two_appliers_share_stays_until_both_drop_it() {
    let mut story = Story::default();
    story
        .applies("a", json!({"spec": {"replicas": 1, "paused": true}}))
        .applies("b", json!({"spec": {"replicas": 1}}))
        .owns("b", json!({"f:spec": {"f:replicas": {}}}))
        .applies("a", json!({"spec": {"paused": true}}))
        .has("/spec", json!({"replicas": 1, "paused": true}))
        .applies("b", json!({}))
        .has("/spec", json!({"paused": true}))
        .owns("b", json!(null));
}

#[test]
fn a_field_that_an_updater_owns_too_stays() {
    Story::default()
        .applies("a", json!({"spec": {"replicas": 1, "paused": true}}))
        .updates("hpa", |object| object["spec"]["replicas"] = json!(5))
        .owns("a", json!({"f:spec": {"f:paused": {}}}))
        .applies("a", json!({"spec": {"paused": true}}))
        .has("/spec/replicas", json!(5));
}

#[test]
fn a_field_of_another_applier_is_a_conflict_unless_the_value_is_the_same() {
    let mut story = Story::default();
    story.applies("a", json!({"spec": {"replicas": 1}}));
    let message = story.conflicts("b", json!({"spec": {"replicas": 2}}));
    assert_eq!(message, r#"Apply failed with 1 conflict: conflict with "a": .spec.replicas"#);
    story.applies("b", json!({"spec": {"replicas": 1}}));
    story.conflicts("a", json!({"spec": {"replicas": 3}}));
}

#[test]
fn a_field_of_an_updater_is_a_conflict_too() {
    let mut story = Story::default();
    story.applies("a", json!({"spec": {"replicas": 1, "containers": [{"name": "x", "image": "1"}]}}));
    story.updates("kubectl-edit", |object| {
        object["spec"]["replicas"] = json!(2);
        object["spec"]["containers"][0]["image"] = json!("2");
    });
    let message =
        story.conflicts("a", json!({"spec": {"replicas": 1, "containers": [{"name": "x", "image": "1"}]}}));
    assert_eq!(
        message,
        "Apply failed with 2 conflicts: conflicts with \"kubectl-edit\" using v1:\n\
         - .spec.replicas\n- .spec.containers[name=\"x\"].image"
    );
}

#[test]
fn a_conflict_says_who_and_since_when() {
    let mut story = Story::default();
    story.updates("a", |object| object["spec"] = json!({"replicas": 1}));
    let Err(ApplyError::Conflicts(conflicts)) = story.try_apply("b", json!({"spec": {"replicas": 2}}), false)
    else {
        panic!("no conflict")
    };
    assert_eq!(conflicts.len(), 1);
    assert_eq!((conflicts[0].manager.as_str(), conflicts[0].operation), ("a", Operation::Update));
    assert_eq!(conflicts[0].api_version, "v1");
    assert_eq!(conflicts[0].time.as_deref(), Some("1970-01-01T00:00:01Z"));
    assert_eq!(conflicts[0].fields, [".spec.replicas"]);
}

#[test]
fn force_takes_the_field_away_from_its_owner() {
    Story::default()
        .applies("a", json!({"spec": {"replicas": 1, "paused": true}}))
        .updates("u", |object| object["metadata"]["labels"] = json!({"x": "1"}))
        .forces("b", json!({"spec": {"replicas": 2}, "metadata": {"labels": {"x": "2"}}}))
        .has("/spec/replicas", json!(2))
        .has("/metadata/labels/x", json!("2"))
        .owns("a", json!({"f:spec": {"f:paused": {}}}))
        .owns("b", json!({"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}))
        .owns("u", json!({"f:metadata": {"f:labels": {}}}));
}

#[test]
fn items_of_a_map_list_are_shared_out_by_key() {
    Story::default()
        .applies("a", json!({"spec": {"containers": [{"name": "x", "image": "1"}]}}))
        .applies("b", json!({"spec": {"containers": [{"name": "y", "image": "2"}]}}))
        .has("/spec/containers", json!([{"name": "x", "image": "1"}, {"name": "y", "image": "2"}]))
        .applies("a", json!({"spec": {"containers": [{"name": "z"}]}}))
        .has("/spec/containers", json!([{"name": "y", "image": "2"}, {"name": "z"}]))
        .applies("a", json!({}))
        .applies("b", json!({}))
        .has("/spec", json!(null));
}

#[test]
fn an_item_stays_as_long_as_somebody_applies_a_part_of_it() {
    Story::default()
        .applies("a", json!({"spec": {"containers": [{"name": "x", "image": "1"}]}}))
        .applies("b", json!({"spec": {"containers": [{"name": "x", "args": ["-v"]}]}}))
        .applies("a", json!({}))
        .has("/spec/containers", json!([{"name": "x", "args": ["-v"]}]));
}

#[test]
fn ports_with_and_without_the_default_protocol_are_the_same() {
    let ports = |port: Value| json!({"spec": {"containers": [{"name": "x", "ports": [port]}]}});
    Story::default()
        .applies("a", ports(json!({"containerPort": 80, "protocol": "TCP", "name": "web"})))
        .applies("b", ports(json!({"containerPort": 80})))
        .has("/spec/containers/0/ports", json!([{"containerPort": 80, "protocol": "TCP", "name": "web"}]));
}

#[test]
fn sets_are_united_and_each_applier_takes_back_its_own() {
    let finalizers = |names: &[&str]| json!({"metadata": {"finalizers": names}});
    Story::default()
        .applies("a", finalizers(&["one", "both"]))
        .applies("b", finalizers(&["two", "both"]))
        .has("/metadata/finalizers", json!(["one", "two", "both"]))
        .applies("a", finalizers(&[]))
        .has("/metadata/finalizers", json!(["two", "both"]));
}

#[test]
fn atomic_containers_change_hands_as_a_whole() {
    let mut story = Story::default();
    story.applies("a", json!({"spec": {"selector": {"x": "1"}, "free": {"list": [1]}}}));
    let message = story.conflicts("b", json!({"spec": {"selector": {"y": "1"}, "free": {"list": [1, 2]}}}));
    assert!(message.ends_with("conflicts with \"a\":\n- .spec.selector\n- .spec.free.list"), "{message}");
    story.forces("b", json!({"spec": {"selector": {"y": "1"}}})).has("/spec/selector", json!({"y": "1"}));
}

#[test]
fn what_was_there_before_ownership_was_tracked_has_an_owner_of_its_own() {
    let live = config(json!({"spec": {"replicas": 1, "paused": true}, "status": {"phase": "x"}}));
    let mut story = Story { live: Some(live), second: 0 };
    let message = story.conflicts("a", json!({"spec": {"replicas": 2}}));
    assert_eq!(
        message,
        r#"Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .spec.replicas"#
    );
    story
        .applies("a", json!({"spec": {"replicas": 1}}))
        .owns("a", json!({"f:spec": {"f:replicas": {}}}))
        .owns("before-first-apply", json!({"f:spec": {".": {}, "f:paused": {}, "f:replicas": {}}}));
    assert_eq!(story.time("before-first-apply"), "1970-01-01T00:00:02Z");
}

#[test]
fn fields_that_the_end_point_does_not_persist_are_never_owned_or_in_conflict() {
    Story::default()
        .applies("a", json!({"spec": {"replicas": 1}, "status": {"phase": "mine"}}))
        .owns("a", json!({"f:spec": {"f:replicas": {}}}))
        .applies("b", json!({"status": {"phase": "theirs"}}))
        .owns("b", json!(null));
}

#[test]
fn an_apply_through_a_subresource_is_another_manager() {
    let mut story = Story::default();
    story.applies("a", json!({"spec": {"replicas": 1}}));
    let ctx = WriteContext { subresource: "status", ..at("a", 5) };
    let reset = reset_all_but(&schema(), "status");
    let status = config(json!({"status": {"phase": "x"}}));
    let object = apply(&schema(), story.live.as_ref(), &status, &reset, false, &ctx).unwrap();
    let list = object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(list.len(), 2);
    assert_eq!(list[1]["subresource"], "status");
    assert_eq!(list[1]["fieldsV1"], json!({"f:status": {"f:phase": {}}}));
    assert_eq!(object["spec"]["replicas"], 1);
}

#[test]
fn an_applier_stays_itself_when_it_moves_to_another_version() {
    let mut story = Story::default();
    story.applies("a", json!({"spec": {"replicas": 1, "paused": true}}));
    let ctx = WriteContext { api_version: "v2", ..at("a", 5) };
    let mut next = config(json!({"spec": {"replicas": 1}}));
    next["apiVersion"] = json!("v2");
    let object = apply(&schema(), story.live.as_ref(), &next, &Set::new(), false, &ctx).unwrap();
    assert_eq!(object["spec"], json!({"replicas": 1}));
    let list = object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["apiVersion"], "v2");
}

#[test]
fn a_configuration_must_not_carry_managers_or_another_version() {
    let mut story = Story::default();
    let error = |r: Result<&Value, ApplyError>| match r {
        Err(ApplyError::Invalid(text)) => text,
        other => panic!("{other:?}"),
    };
    for list in [json!([]), json!([{}])] {
        let text = error(story.try_apply("a", json!({"metadata": {"managedFields": list}}), true));
        assert_eq!(text, "metadata.managedFields must be nil");
    }
    let text = error(story.try_apply("a", json!({"apiVersion": "v2"}), true));
    assert_eq!(text, "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1");
    let list = apply(&schema(), None, &json!([1]), &Set::new(), true, &at("a", 1));
    assert!(matches!(list, Err(ApplyError::Invalid(_))));
}

#[test]
fn a_configuration_whose_items_cannot_be_told_apart_is_refused() {
    let twice = json!({"spec": {"containers": [{"name": "x"}, {"name": "x"}]}});
    let error = Story::default().try_apply("a", twice, true).map(drop).unwrap_err();
    assert_eq!(error.to_string(), r#".spec.containers: duplicate entries for key [name="x"]"#);
}

#[test]
fn what_the_system_sets_survives_an_applier_that_takes_everything_back() {
    let mut story = Story::default();
    story.applies("a", json!({"metadata": {"labels": {"x": "1"}}, "spec": {"replicas": 1}}));
    story.updates("server", |object| object["metadata"]["uid"] = json!("u-1"));
    let bare = json!({"apiVersion": "v1", "kind": "Web"});
    let object = apply(&schema(), story.live.as_ref(), &bare, &Set::new(), false, &at("a", 9)).unwrap();
    assert_eq!(object["metadata"], json!({"name": "web", "uid": "u-1"}));
    assert_eq!(object.get("spec"), None);
}

#[test]
fn kubectl_may_take_over_what_it_applied_client_side() {
    let last = config(json!({"spec": {"replicas": 1, "paused": true}}));
    let mut story = Story::default();
    story.updates("kubectl-client-side-apply", |object| {
        object["spec"] = json!({"replicas": 1, "paused": true});
        object["metadata"]["annotations"] = json!({LAST_APPLIED: last.to_string()});
    });
    // Another manager cannot, and neither can kubectl once the field is no longer what it applied.
    story.conflicts("other", json!({"spec": {"replicas": 2}}));
    let mut changed = Story { live: story.live.clone(), second: 5 };
    changed.updates("hpa", |object| object["spec"]["replicas"] = json!(7));
    assert_eq!(
        changed.conflicts("kubectl", json!({"spec": {"replicas": 2, "paused": false}})),
        r#"Apply failed with 1 conflict: conflict with "hpa" using v1: .spec.replicas"#
    );

    story.applies("kubectl", json!({"spec": {"replicas": 2, "paused": true}}));
    story.has("/spec/replicas", json!(2));
    let annotation = story.object()["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap();
    let applied: Value = serde_json::from_str(annotation).unwrap();
    assert_eq!(applied, config(json!({"spec": {"replicas": 2, "paused": true}})));
    assert!(annotation.ends_with('\n'));
}

#[test]
fn other_managers_leave_the_last_applied_annotation_alone() {
    let mut story = Story::default();
    let last = config(json!({})).to_string();
    story.updates("kubectl-client-side-apply", |object| {
        object["metadata"]["annotations"] = json!({LAST_APPLIED: last});
    });
    story.applies("flux", json!({"spec": {"replicas": 2}}));
    assert_eq!(story.object()["metadata"]["annotations"][LAST_APPLIED], json!(last));
    let mut without = Story::default();
    without.applies("kubectl", json!({"spec": {"replicas": 2}}));
    assert_eq!(without.object()["metadata"].get("annotations"), None);
}

#[test]
fn a_last_applied_annotation_that_would_be_too_large_is_dropped() {
    let mut story = Story::default();
    story.updates("kubectl-client-side-apply", |object| {
        object["metadata"]["annotations"] = json!({LAST_APPLIED: "{}"});
    });
    story.applies("kubectl", json!({"data": {"big": "x".repeat(300 << 10)}}));
    assert_eq!(story.object()["metadata"]["annotations"], json!({}));
}
