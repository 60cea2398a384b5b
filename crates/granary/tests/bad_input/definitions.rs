//! Definitions that conflict, change, gain versions and go, with objects of theirs around.

use serde_json::{Value, json};

use super::server;
use super::support::eventually;
use super::support::raw::{DEFINITIONS, Raw, definition, version};

fn rig(name: &str, api: &str) -> Value {
    json!({
        "apiVersion": format!("try.example.com/{api}"), "kind": "Rig",
        "metadata": { "name": name }, "spec": { "replicas": 1 },
    })
}

fn rigs(api: &str) -> String {
    format!("/apis/try.example.com/{api}/namespaces/default/rigs")
}

async fn change(raw: &Raw, name: &str, edit: impl Fn(&mut Value)) -> Value {
    let path = format!("{DEFINITIONS}/{name}");
    let mut definition = raw.get(&path).await.expect(200).body;
    edit(&mut definition);
    raw.put(&path, &definition).await.expect(200).body
}

fn condition<'a>(definition: &'a Value, kind: &str) -> &'a Value {
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|c| c["type"] == kind).unwrap()
}

#[tokio::test]
async fn deleting_a_definition_removes_its_objects_and_its_paths() {
    let (_binary, raw) = server().await;
    raw.make(DEFINITIONS, &definition("rigs", "Rig", "try.example.com")).await;
    for n in 0..20 {
        raw.make(&rigs("v1"), &rig(&format!("r{n}"), "v1")).await;
    }
    let mut held = rig("held", "v1");
    held["metadata"]["finalizers"] = json!(["x.io/y"]);
    raw.make(&rigs("v1"), &held).await;
    let name = "rigs.try.example.com";
    let marked = raw.delete(&format!("{DEFINITIONS}/{name}")).await.expect(200).body;
    assert_eq!(condition(&marked, "Terminating")["status"], "True");
    eventually("all but one to go", || async {
        (raw.get(&rigs("v1")).await.names() == ["held"]).then_some(())
    })
    .await;
    let free = json!({ "metadata": { "finalizers": null } });
    raw.merge(&format!("{}/held", rigs("v1")), &free).await.expect(200);
    eventually("the definition to go", || async {
        (raw.get(&format!("{DEFINITIONS}/{name}")).await.code == 404).then_some(())
    })
    .await;
    raw.get(&rigs("v1")).await.expect(404);
    raw.make(DEFINITIONS, &definition("rigs", "Rig", "try.example.com")).await;
    assert!(raw.get(&rigs("v1")).await.expect(200).names().is_empty(), "nothing comes back from the dead");
}

#[tokio::test]
async fn of_two_definitions_with_the_same_names_the_first_is_served() {
    let (_binary, raw) = server().await;
    raw.make(DEFINITIONS, &definition("rigs", "Rig", "try.example.com")).await;
    let mut late = definition("otherrigs", "Rig", "try.example.com");
    late["spec"]["names"]["singular"] = "otherrig".into();
    let refused = raw.make(DEFINITIONS, &late).await;
    assert_eq!(condition(&refused, "NamesAccepted")["status"], "False");
    assert_eq!(condition(&refused, "NamesAccepted")["reason"], "ListKindConflict");
    assert_eq!(condition(&refused, "Established")["status"], "False");
    let other = "/apis/try.example.com/v1/namespaces/default/otherrigs";
    raw.get(other).await.expect(404);
    raw.make(&rigs("v1"), &rig("a", "v1")).await;

    raw.delete(&format!("{DEFINITIONS}/rigs.try.example.com")).await.expect(200);
    eventually("the second to take its place", || async { (raw.get(other).await.code == 200).then_some(()) })
        .await;
    let accepted = raw.get(&format!("{DEFINITIONS}/otherrigs.try.example.com")).await.body;
    assert_eq!(condition(&accepted, "Established")["status"], "True");
    raw.make(other, &rig("b", "v1")).await;
}

#[tokio::test]
async fn a_stricter_schema_leaves_old_objects_readable_and_lets_them_be_mended() {
    let (_binary, raw) = server().await;
    raw.make(DEFINITIONS, &definition("rigs", "Rig", "try.example.com")).await;
    let mut big = rig("big", "v1");
    big["spec"]["replicas"] = 100.into();
    raw.make(&rigs("v1"), &big).await;
    change(&raw, "rigs.try.example.com", |definition| {
        let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["properties"]["replicas"]["maximum"] = 10.into();
        spec["properties"]["colour"] = json!({ "type": "string", "default": "red" });
    })
    .await;
    let path = format!("{}/big", rigs("v1"));
    let read = raw.get(&path).await.expect(200).body;
    assert_eq!(read["spec"]["replicas"], 100);
    assert_eq!(read["spec"]["colour"], "red", "a new default shows in old objects");
    assert_eq!(raw.get(&rigs("v1")).await.expect(200).body["items"][0]["spec"]["colour"], "red");
    let mut new = rig("new", "v1");
    new["spec"]["replicas"] = 11.into();
    assert_eq!(raw.post(&rigs("v1"), &new).await.expect(422).fields(), ["spec.replicas"]);
    // What was wrong before may stay so while something else changes; it may not get worse.
    raw.merge(&path, &json!({ "metadata": { "labels": { "a": "b" } } })).await.expect(200);
    raw.merge(&path, &json!({ "spec": { "replicas": 101 } })).await.expect(422);
    raw.merge(&path, &json!({ "spec": { "replicas": 10 } })).await.expect(200);
    // A definition that is refused changes nothing.
    let broken = json!({ "spec": { "versions": [] } });
    raw.merge(&format!("{DEFINITIONS}/rigs.try.example.com"), &broken).await.expect(422);
    raw.get(&path).await.expect(200);
}

#[tokio::test]
async fn a_second_version_serves_the_same_objects_and_can_become_the_stored_one() {
    let (_binary, raw) = server().await;
    raw.make(DEFINITIONS, &definition("rigs", "Rig", "try.example.com")).await;
    raw.make(&rigs("v1"), &rig("old", "v1")).await;
    raw.get(&rigs("v2")).await.expect(404);
    let name = "rigs.try.example.com";
    change(&raw, name, |d| d["spec"]["versions"].as_array_mut().unwrap().push(version("v2", false))).await;
    raw.make(&rigs("v2"), &rig("new", "v2")).await;
    for api in ["v1", "v2"] {
        let list = raw.get(&rigs(api)).await.expect(200);
        assert_eq!(list.names(), ["new", "old"]);
        for item in list.body["items"].as_array().unwrap() {
            assert_eq!(item["apiVersion"], format!("try.example.com/{api}"));
        }
    }
    let both = change(&raw, name, |definition| {
        definition["spec"]["versions"][0]["storage"] = false.into();
        definition["spec"]["versions"][1]["storage"] = true.into();
    })
    .await;
    assert_eq!(both["status"]["storedVersions"], json!(["v1", "v2"]));
    let old = format!("{}/old", rigs("v1"));
    let touched = raw.merge(&old, &json!({ "spec": { "replicas": 2 } })).await.expect(200).body;
    assert_eq!(touched["apiVersion"], "try.example.com/v1", "a client gets the version it asked for");
    let seen = raw.get(&format!("{}/old", rigs("v2"))).await.expect(200).body;
    assert_eq!((&seen["apiVersion"], &seen["spec"]["replicas"]), (&json!("try.example.com/v2"), &json!(2)));
    assert_eq!(seen["metadata"]["uid"], touched["metadata"]["uid"]);
    // While objects may lie in v1, it cannot be dropped.
    let mut without = raw.get(&format!("{DEFINITIONS}/{name}")).await.body;
    without["spec"]["versions"].as_array_mut().unwrap().remove(0);
    let refused = raw.put(&format!("{DEFINITIONS}/{name}"), &without).await.expect(422);
    assert_eq!(refused.fields(), ["status.storedVersions[0]"], "{}", refused.text);
    change(&raw, name, |d| d["spec"]["versions"][0]["served"] = false.into()).await;
    raw.get(&rigs("v1")).await.expect(404);
    assert_eq!(raw.get(&rigs("v2")).await.expect(200).names(), ["new", "old"]);
}

#[tokio::test]
async fn a_watch_of_a_kind_that_changes_or_goes_ends() {
    let (_binary, raw) = server().await;
    raw.make(DEFINITIONS, &definition("rigs", "Rig", "try.example.com")).await;
    raw.make(&rigs("v1"), &rig("a", "v1")).await;
    let raw = std::sync::Arc::new(raw);
    let watcher = raw.clone();
    let watch = tokio::spawn(async move { watcher.get(&format!("{}?watch=1", rigs("v1"))).await });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    change(&raw, "rigs.try.example.com", |d| {
        let versions = d["spec"]["versions"].as_array_mut().unwrap();
        versions[0]["storage"] = false.into();
        versions.push(version("v2", true));
    })
    .await;
    let seen = super::support::in_time("the watch to end", watch).await.unwrap().expect(200);
    assert!(seen.text.contains("\"ADDED\"") && !seen.text.contains("example.com/v2"), "{}", seen.text);
}
