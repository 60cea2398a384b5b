//! Who owns what after creates, updates and patches.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::typed::testing::schema;
use super::super::{Set, WriteContext, reset_all_but, track_update};
use super::{at, web};

/// The object as it is stored after `manager` wrote `new` over `live`.
fn written(live: Option<&Value>, new: Value, ctx: &WriteContext<'_>) -> Value {
    let mut new = new;
    track_update(&schema(), live, &mut new, &Set::of_fields(&[&["status"]]), ctx).unwrap();
    new
}

/// `new` with what clients send back: the managers they were given.
fn sent_back(live: &Value, mut new: Value) -> Value {
    new["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
    new
}

fn managers(object: &Value) -> Vec<(&str, &str)> {
    let list = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    list.iter().map(|e| (e["manager"].as_str().unwrap(), e["operation"].as_str().unwrap())).collect()
}

fn fields<'v>(object: &'v Value, manager: &str) -> &'v Value {
    let list = object["metadata"]["managedFields"].as_array().unwrap();
    &list.iter().find(|e| e["manager"] == manager).unwrap()["fieldsV1"]
}

#[test]
fn the_creator_owns_everything_but_what_the_system_sets() {
    let mut new = web(json!({"replicas": 1, "containers": [{"name": "a", "image": "i"}]}));
    new["metadata"]["labels"] = json!({"app": "web"});
    new["metadata"]["resourceVersion"] = json!("7");
    new["metadata"]["generation"] = json!(1);
    new["status"] = json!({"phase": "x"});
    let object = written(None, new, &at("kubectl-create", 1_700_000_000));
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{
            "manager": "kubectl-create",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2023-11-14T22:13:20Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    ".": {},
                    "f:replicas": {},
                    "f:containers": {".": {}, r#"k:{"name":"a"}"#: {".": {}, "f:name": {}, "f:image": {}}},
                },
            },
        }])
    );
}

#[test]
fn times_have_no_fractions_of_seconds() {
    let ctx = WriteContext { now: "2024-05-06T07:08:09.987654321Z".parse().unwrap(), ..at("m", 0) };
    let object = written(None, web(json!({"replicas": 1})), &ctx);
    assert_eq!(object["metadata"]["managedFields"][0]["time"], "2024-05-06T07:08:09Z");
}

#[test]
fn whoever_changes_a_field_becomes_its_owner() {
    let live = written(None, web(json!({"replicas": 1, "paused": true})), &at("a", 1));
    let live =
        written(Some(&live), sent_back(&live, web(json!({"replicas": 2, "paused": true}))), &at("b", 2));
    assert_eq!(managers(&live), [("a", "Update"), ("b", "Update")]);
    assert_eq!(fields(&live, "a"), &json!({"f:spec": {".": {}, "f:paused": {}}}));
    assert_eq!(fields(&live, "b"), &json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(live["metadata"]["managedFields"][0]["time"], "1970-01-01T00:00:01Z");
    assert_eq!(live["metadata"]["managedFields"][1]["time"], "1970-01-01T00:00:02Z");
}

#[test]
fn an_updater_adds_to_what_it_owns() {
    let live = written(None, web(json!({"replicas": 1})), &at("a", 1));
    let live = written(Some(&live), web(json!({"replicas": 1, "paused": true})), &at("a", 2));
    assert_eq!(managers(&live), [("a", "Update")]);
    assert_eq!(fields(&live, "a"), &json!({"f:spec": {".": {}, "f:paused": {}, "f:replicas": {}}}));
    assert_eq!(live["metadata"]["managedFields"][0]["time"], "1970-01-01T00:00:02Z");
}

#[test]
fn a_removed_field_belongs_to_nobody_and_entries_without_fields_vanish() {
    let live = written(None, web(json!({"paused": true})), &at("a", 1));
    let live = written(Some(&live), web(json!({"paused": true, "replicas": 1})), &at("b", 2));
    assert_eq!(managers(&live).len(), 2);
    let live = written(Some(&live), web(json!({"paused": true})), &at("c", 3));
    assert_eq!(managers(&live), [("a", "Update")]);
    assert_eq!(live["metadata"]["managedFields"][0]["time"], "1970-01-01T00:00:01Z");
}

#[test]
fn a_write_that_changes_nothing_leaves_the_managers_to_the_letter() {
    let live = written(None, web(json!({"replicas": 1})), &at("a", 1));
    for mut again in [web(json!({"replicas": 1})), sent_back(&live, web(json!({"replicas": 1})))] {
        // The server moves these; nobody owns them.
        again["metadata"]["resourceVersion"] = json!("8");
        again["metadata"]["generation"] = json!(2);
        // The end point does not persist this.
        again["status"] = json!({"phase": "y"});
        let after = written(Some(&live), again, &at("b", 9));
        assert_eq!(after["metadata"]["managedFields"], live["metadata"]["managedFields"]);
    }
}

#[test]
fn the_order_of_a_map_list_is_nobodys() {
    let live = written(None, web(json!({"containers": [{"name": "a"}, {"name": "b"}]})), &at("a", 1));
    let after = written(Some(&live), web(json!({"containers": [{"name": "b"}, {"name": "a"}]})), &at("b", 2));
    assert_eq!(after["metadata"]["managedFields"], live["metadata"]["managedFields"]);
}

#[test]
fn a_subresource_has_entries_of_its_own() {
    let live = written(None, web(json!({"replicas": 1})), &at("a", 1));
    let mut new = live.clone();
    new["status"] = json!({"phase": "Running"});
    new["metadata"]["labels"] = json!({"not": "persisted"});
    let reset = reset_all_but(&schema(), "status");
    let ctx = WriteContext { subresource: "status", ..at("a", 2) };
    track_update(&schema(), Some(&live), &mut new, &reset, &ctx).unwrap();
    let entry = &new["metadata"]["managedFields"][1];
    assert_eq!(entry["subresource"], "status");
    assert_eq!(entry["fieldsV1"], json!({"f:status": {".": {}, "f:phase": {}}}));
    assert_eq!(new["metadata"]["managedFields"][0], live["metadata"]["managedFields"][0]);
}

#[test]
fn a_subresource_cannot_rewrite_the_managers() {
    let live = written(None, web(json!({"replicas": 1})), &at("a", 1));
    let mut new = live.clone();
    new["metadata"]["managedFields"] = json!([]);
    let ctx = WriteContext { subresource: "status", ..at("a", 2) };
    track_update(&schema(), Some(&live), &mut new, &Set::new(), &ctx).unwrap();
    assert_eq!(new["metadata"]["managedFields"], live["metadata"]["managedFields"]);
}

#[test]
fn an_explicitly_empty_list_forgets_all_managers_until_the_next_apply() {
    let live = written(None, web(json!({"replicas": 1})), &at("a", 1));
    for reset in [json!([]), json!([{}])] {
        let mut new = web(json!({"replicas": 2}));
        new["metadata"]["managedFields"] = reset;
        let forgotten = written(Some(&live), new, &at("b", 2));
        assert_eq!(forgotten["metadata"].get("managedFields"), None);
        let after = written(Some(&forgotten), web(json!({"replicas": 3})), &at("c", 3));
        assert_eq!(after["metadata"].get("managedFields"), None);
    }
}

#[test]
fn managers_that_are_absent_or_undecodable_are_those_of_the_live_object() {
    let live = written(None, web(json!({"replicas": 1})), &at("a", 1));
    for sent in
        [json!(null), json!("x"), json!([{"manager": "evil"}]), json!([{"operation": "Nonsense"}, {}])]
    {
        let mut new = web(json!({"replicas": 1, "paused": true}));
        new["metadata"]["managedFields"] = sent;
        let after = written(Some(&live), new, &at("b", 2));
        assert_eq!(managers(&after), [("a", "Update"), ("b", "Update")]);
    }
}

#[test]
fn managers_can_be_edited() {
    let live = written(None, web(json!({"replicas": 1, "paused": true})), &at("a", 1));
    let mut new = sent_back(&live, web(json!({"replicas": 1, "paused": true})));
    new["metadata"]["managedFields"][0]["manager"] = json!("renamed");
    let after = written(Some(&live), new, &at("editor", 2));
    assert_eq!(managers(&after), [("renamed", "Update")]);
}

#[test]
fn a_manager_without_a_name_is_unknown() {
    let live = written(None, web(json!({"replicas": 1})), &at("", 1));
    assert_eq!(managers(&live), [("unknown", "Update")]);
}

#[test]
fn more_than_ten_updaters_are_merged() {
    let names: Vec<String> = (0..12).map(|n| format!("m{n:02}")).collect();
    let mut live = None;
    for (n, name) in names.iter().enumerate() {
        let labels: Value = (0..=n).map(|n| (format!("l{n}"), json!("x"))).collect();
        let mut new = web(json!({}));
        new["metadata"]["labels"] = labels;
        let ctx = WriteContext {
            manager: name,
            api_version: "v1",
            subresource: "",
            now: Timestamp::from_second(n as i64).unwrap(),
            zero: None,
        };
        live = Some(written(live.as_ref(), new, &ctx));
    }
    let live = live.unwrap();
    assert_eq!(managers(&live).len(), 10);
    assert_eq!(managers(&live)[0], ("ancient-changes", "Update"));
    let ancient = fields(&live, "ancient-changes");
    assert_eq!(ancient["f:metadata"]["f:labels"], json!({".": {}, "f:l0": {}, "f:l1": {}, "f:l2": {}}));
}

#[test]
fn an_object_whose_fields_cannot_be_told_apart_keeps_its_managers() {
    let live = written(None, web(json!({"containers": [{"name": "a"}]})), &at("a", 1));
    let mut new = web(json!({"containers": [{"image": "nameless"}]}));
    assert!(track_update(&schema(), Some(&live), &mut new, &Set::new(), &at("b", 2)).is_err());
    assert_eq!(new["metadata"]["managedFields"], live["metadata"]["managedFields"]);
    assert_eq!(new["spec"]["containers"][0]["image"], "nameless");
}

#[test]
fn a_tracked_object_can_always_be_read_back() {
    let nested = |depth| (0..depth).fold(json!(1), |value, _| json!({"d": value}));
    for depth in [90, 97, 98, 99, 110, 120] {
        let mut new = web(json!({"free": nested(depth)}));
        let tracked = track_update(&schema(), None, &mut new, &Set::new(), &at("a", 1));
        assert_eq!(tracked.is_ok(), depth <= 98, "{depth}");
        let text = serde_json::to_string(&new).unwrap();
        assert!(serde_json::from_str::<Value>(&text).is_ok(), "{depth}");
    }
}

#[test]
fn something_without_metadata_is_left_alone() {
    let mut new = json!({"spec": 1});
    track_update(&schema(), None, &mut new, &Set::new(), &at("a", 1)).unwrap();
    assert_eq!(new, json!({"spec": 1}));
}

#[test]
fn a_field_that_became_atomic_is_owned_as_a_whole() {
    let mut live = web(json!({"selector": {"a": "1"}, "replicas": 1}));
    live["metadata"]["managedFields"] = json!([{
        "manager": "a", "operation": "Update", "apiVersion": "v1", "time": "2024-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:selector": {".": {}, "f:a": {}}}},
    }]);
    let after = written(Some(&live), web(json!({"selector": {"a": "1"}, "replicas": 2})), &at("b", 2));
    assert_eq!(fields(&after, "a"), &json!({"f:spec": {"f:selector": {}}}));
}
