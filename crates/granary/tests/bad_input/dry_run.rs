//! A dry run answers as the real thing would and leaves no trace.

use serde_json::{Value, json};

use super::server;
use super::support::raw::{
    APPLY, Answer, CONFIG_MAPS, DEFINITIONS, JSON, JSON_PATCH, MERGE, Raw, STRATEGIC, config_map, definition,
};

/// Everything there is in the default namespace, and the version of the whole.
async fn state(raw: &Raw) -> (Vec<Value>, Value, Value) {
    let maps = raw.get(CONFIG_MAPS).await.expect(200).body;
    let all = raw.get("/api/v1/namespaces").await.expect(200).body;
    let definitions = raw.get(DEFINITIONS).await.expect(200).body;
    (maps["items"].as_array().unwrap().clone(), all["items"].clone(), definitions["metadata"].clone())
}

#[tokio::test]
async fn no_verb_leaves_a_trace() {
    let (_binary, raw) = server().await;
    raw.make(CONFIG_MAPS, &config_map("there")).await;
    let there = |query: &str| format!("{CONFIG_MAPS}/there?dryRun=All{query}");
    let before = state(&raw).await;
    let mut change = config_map("there");
    change["data"] = json!({ "a": "b" });
    let body = change.to_string();
    let add = json!([{ "op": "add", "path": "/data", "value": { "a": "b" } }]).to_string();

    let changed: Vec<Answer> = vec![
        raw.put(&there(""), &change).await,
        raw.send("PATCH", &there(""), MERGE, body.clone()).await,
        raw.send("PATCH", &there(""), STRATEGIC, body.clone()).await,
        raw.send("PATCH", &there(""), JSON_PATCH, add).await,
        raw.send("PATCH", &there("&fieldManager=x"), APPLY, body.clone()).await,
    ];
    for answer in changed {
        assert_eq!(answer.expect(200).body["data"]["a"], "b", "the answer shows the change");
    }
    let created = raw.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("new")).await.expect(201);
    assert!(created.body["metadata"]["uid"].is_string());
    let applied = format!("{CONFIG_MAPS}/new?dryRun=All&fieldManager=x");
    raw.send("PATCH", &applied, APPLY, config_map("new").to_string()).await.expect(201);
    raw.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("there")).await.expect(409);
    let generated = json!({ "metadata": { "generateName": "x-" } });
    raw.post(&format!("{CONFIG_MAPS}?dryRun=All"), &generated).await.expect(201);

    raw.delete(&there("")).await.expect(200);
    raw.send("DELETE", &there(""), JSON, r#"{"propagationPolicy":"Foreground"}"#).await.expect(200);
    let options = r#"{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}"#;
    raw.send("DELETE", &format!("{CONFIG_MAPS}/there"), JSON, options).await.expect(200);
    raw.send("DELETE", CONFIG_MAPS, JSON, options).await.expect(200);
    raw.delete(&format!("{CONFIG_MAPS}?dryRun=All")).await.expect(200);
    raw.delete("/api/v1/namespaces/kube-node-lease?dryRun=All").await.expect(200);

    let rigs = definition("rigs", "Rig", "try.example.com");
    raw.post(&format!("{DEFINITIONS}?dryRun=All"), &rigs).await.expect(201);
    raw.get("/apis/try.example.com/v1").await.expect(404);
    let longhorn = format!("{DEFINITIONS}/volumes.longhorn.io?dryRun=All");
    raw.delete(&longhorn).await.expect(200);
    raw.get("/apis/longhorn.io/v1beta2/volumes").await.expect(200);

    assert_eq!(state(&raw).await, before);
}
