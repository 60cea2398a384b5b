//! Deletion with everything that can hold it up, and what becomes of dependents.

use std::sync::Arc;

use serde_json::{Value, json};

use super::server;
use super::support::eventually;
use super::support::raw::{CONFIG_MAPS, JSON, Raw, config_map};

fn at(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

fn owned(name: &str, owner: &Value, blocks: bool) -> Value {
    let mut object = config_map(name);
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
    }]);
    object
}

async fn gone(raw: &Raw, name: &str) {
    eventually(&format!("{name} to go"), || async { (raw.get(&at(name)).await.code == 404).then_some(()) })
        .await;
}

#[tokio::test]
async fn preconditions_must_hold() {
    let (_binary, raw) = server().await;
    let made = raw.make(CONFIG_MAPS, &config_map("a")).await;
    let options = |conditions: Value| {
        json!({ "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": conditions }).to_string()
    };
    for wrong in [json!({ "uid": "x" }), json!({ "resourceVersion": "1" })] {
        let answer = raw.send("DELETE", &at("a"), JSON, options(wrong)).await.expect(409);
        assert_eq!(answer.reason(), "Conflict");
    }
    let right =
        json!({ "uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"] });
    raw.send("DELETE", &at("a"), JSON, options(right)).await.expect(200);
    raw.get(&at("a")).await.expect(404);
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_one_is_gone() {
    let (_binary, raw) = server().await;
    let mut object = config_map("held");
    object["metadata"]["finalizers"] = json!(["x.io/one", "x.io/two"]);
    raw.make(CONFIG_MAPS, &object).await;
    let marked = raw.delete(&at("held")).await.expect(200).body;
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    raw.delete(&at("held")).await.expect(200);
    let again = raw.get(&at("held")).await.expect(200).body;
    assert_eq!(again["metadata"]["deletionTimestamp"], marked["metadata"]["deletionTimestamp"]);
    let more = json!({ "metadata": { "finalizers": ["x.io/one", "x.io/two", "x.io/three"] } });
    assert_eq!(raw.merge(&at("held"), &more).await.expect(422).fields(), ["metadata.finalizers"]);
    raw.merge(&at("held"), &json!({ "metadata": { "finalizers": ["x.io/two"] } })).await.expect(200);
    raw.get(&at("held")).await.expect(200);
    raw.post(CONFIG_MAPS, &config_map("held")).await.expect(409);
    raw.merge(&at("held"), &json!({ "metadata": { "finalizers": null } })).await.expect(200);
    raw.get(&at("held")).await.expect(404);
}

#[tokio::test]
async fn dependents_go_after_before_or_not_at_all() {
    let (_binary, raw) = server().await;
    let raw = Arc::new(raw);
    for policy in ["Background", "Foreground", "Orphan"] {
        let (owner, child, held) = (
            format!("owner-{policy}").to_lowercase(),
            format!("child-{policy}").to_lowercase(),
            format!("held-{policy}").to_lowercase(),
        );
        let made = raw.make(CONFIG_MAPS, &config_map(&owner)).await;
        raw.make(CONFIG_MAPS, &owned(&child, &made, true)).await;
        let mut slow = owned(&held, &made, true);
        slow["metadata"]["finalizers"] = json!(["x.io/slow"]);
        raw.make(CONFIG_MAPS, &slow).await;
        let options = json!({ "propagationPolicy": policy }).to_string();
        raw.send("DELETE", &at(&owner), JSON, options).await.expect(200);
        match policy {
            "Orphan" => {
                gone(&raw, &owner).await;
                for left in [&child, &held] {
                    let left = raw.get(&at(left)).await.expect(200).body;
                    assert!(left["metadata"].get("ownerReferences").is_none(), "{left}");
                    assert!(left["metadata"].get("deletionTimestamp").is_none(), "{left}");
                }
            }
            "Foreground" => {
                gone(&raw, &child).await;
                let waiting = raw.get(&at(&owner)).await.expect(200).body;
                assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
                raw.merge(&at(&held), &json!({ "metadata": { "finalizers": null } })).await.expect(200);
                gone(&raw, &held).await;
                gone(&raw, &owner).await;
            }
            _ => {
                raw.get(&at(&owner)).await.expect(404);
                gone(&raw, &child).await;
                let held = raw.get(&at(&held)).await.expect(200).body;
                assert_eq!(held["metadata"]["finalizers"], json!(["x.io/slow"]));
            }
        }
    }
}

#[tokio::test]
async fn a_dependent_of_somebody_who_never_was_goes() {
    let (_binary, raw) = server().await;
    let nobody = json!({ "metadata": { "name": "nobody", "uid": "0000" } });
    raw.make(CONFIG_MAPS, &owned("lost", &nobody, false)).await;
    gone(&raw, "lost").await;
    // Same name, another object: not the owner that was meant.
    let other = raw.make(CONFIG_MAPS, &config_map("nobody")).await;
    raw.make(CONFIG_MAPS, &owned("mistaken", &nobody, false)).await;
    gone(&raw, "mistaken").await;
    // Of two owners one is left: the dependent stays and forgets the other.
    let mut shared = owned("shared", &other, false);
    let mut second = shared["metadata"]["ownerReferences"][0].clone();
    second["uid"] = "0000".into();
    second["name"] = "gone".into();
    shared["metadata"]["ownerReferences"].as_array_mut().unwrap().push(second);
    raw.make(CONFIG_MAPS, &shared).await;
    eventually("the dead owner to be forgotten", || async {
        let shared = raw.get(&at("shared")).await.expect(200).body;
        (shared["metadata"]["ownerReferences"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_collection_is_deleted_as_far_as_the_selectors_reach() {
    let (_binary, raw) = server().await;
    for (name, label) in [("a1", "x"), ("a2", "x"), ("b1", "y"), ("c1", "z")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({ "l": label });
        raw.make(CONFIG_MAPS, &object).await;
    }
    raw.delete(&format!("{CONFIG_MAPS}?labelSelector=l%20in")).await.expect(400);
    assert_eq!(raw.get(CONFIG_MAPS).await.names().len(), 4, "a selector that makes no sense selects nothing");
    raw.delete(&format!("{CONFIG_MAPS}?labelSelector=l%20in%20(x)")).await.expect(200);
    assert_eq!(raw.get(CONFIG_MAPS).await.names(), ["b1", "c1"]);
    raw.delete(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dc1")).await.expect(200);
    assert_eq!(raw.get(CONFIG_MAPS).await.names(), ["b1"]);
    raw.delete(CONFIG_MAPS).await.expect(200);
    assert!(raw.get(CONFIG_MAPS).await.names().is_empty());
}

#[tokio::test]
async fn a_namespace_says_what_keeps_it_and_goes_when_that_is_gone() {
    let (_binary, raw) = server().await;
    raw.make("/api/v1/namespaces", &json!({ "metadata": { "name": "doomed" } })).await;
    let maps = "/api/v1/namespaces/doomed/configmaps";
    let mut stuck = config_map("stuck");
    stuck["metadata"]["finalizers"] = json!(["x.io/stuck"]);
    raw.make(maps, &stuck).await;
    raw.make(maps, &config_map("plain")).await;
    raw.make("/api/v1/namespaces/doomed/secrets", &json!({ "metadata": { "name": "s" } })).await;
    let answer = raw.delete("/api/v1/namespaces/doomed").await.expect(200).body;
    assert_eq!(answer["status"]["phase"], "Terminating");

    let conditions = eventually("the namespace to say what keeps it", || async {
        let namespace = raw.get("/api/v1/namespaces/doomed").await.expect(200).body;
        namespace["status"]["conditions"].as_array().cloned()
    })
    .await;
    let of = |kind: &str| {
        conditions.iter().find(|c| c["type"] == kind).unwrap_or_else(|| panic!("{conditions:?}"))
    };
    assert_eq!(of("NamespaceContentRemaining")["status"], "True");
    assert!(of("NamespaceContentRemaining")["message"].as_str().unwrap().contains("configmaps. has 1"));
    assert!(of("NamespaceFinalizersRemaining")["message"].as_str().unwrap().contains("x.io/stuck in 1"));

    let refused = raw.post(maps, &config_map("late")).await.expect(403);
    assert!(refused.message().contains("being terminated"), "{}", refused.message());
    assert_eq!(refused.body["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert_eq!(raw.get(maps).await.names(), ["stuck"]);
    raw.merge(&format!("{maps}/stuck"), &json!({ "metadata": { "finalizers": null } })).await.expect(200);
    eventually("the namespace to go", || async {
        (raw.get("/api/v1/namespaces/doomed").await.code == 404).then_some(())
    })
    .await;
    raw.make("/api/v1/namespaces", &json!({ "metadata": { "name": "doomed" } })).await;
    assert!(raw.get(maps).await.names().is_empty());
}
