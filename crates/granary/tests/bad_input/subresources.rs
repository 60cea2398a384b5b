//! `status` and `scale` write their own part of an object and nothing else.

use serde_json::{Value, json};

use super::server;
use super::support::raw::{APPLY, DEFINITIONS, JSON_PATCH, MERGE, Raw, definition};

const RIG: &str = "/apis/try.example.com/v1/namespaces/default/rigs/one";

async fn with_rig() -> (super::Binary, Raw) {
    let (binary, raw) = server().await;
    raw.make(DEFINITIONS, &definition("rigs", "Rig", "try.example.com")).await;
    let rig = json!({
        "apiVersion": "try.example.com/v1", "kind": "Rig", "metadata": { "name": "one" },
        "spec": { "replicas": 1 }, "status": { "replicas": 9 },
    });
    let made = raw.make(RIG.trim_end_matches("/one"), &rig).await;
    assert!(made.get("status").is_none(), "a status is not made with the object");
    (binary, raw)
}

#[tokio::test]
async fn status_and_the_rest_are_written_apart() {
    let (_binary, raw) = with_rig().await;
    let status = format!("{RIG}/status");
    let both = json!({
        "metadata": { "labels": { "a": "b" }, "finalizers": ["x.io/y"] },
        "spec": { "replicas": 5 },
        "status": { "replicas": 2 },
    });
    let after = raw.merge(&status, &both).await.expect(200).body;
    assert_eq!((&after["spec"]["replicas"], &after["status"]["replicas"]), (&json!(1), &json!(2)));
    assert!(after["metadata"].get("labels").is_none() && after["metadata"].get("finalizers").is_none());
    assert_eq!(after["metadata"]["generation"], 1, "a status does not make a new generation");

    let mut spec = both.clone();
    spec["status"]["replicas"] = 7.into();
    let after = raw.merge(RIG, &spec).await.expect(200).body;
    assert_eq!((&after["spec"]["replicas"], &after["status"]["replicas"]), (&json!(5), &json!(2)));
    assert_eq!(after["metadata"]["generation"], 2);

    let mut stale = after.clone();
    stale["metadata"]["resourceVersion"] = "1".into();
    raw.put(&status, &stale).await.expect(409);
    let apply = json!({ "apiVersion": "try.example.com/v1", "kind": "Rig", "metadata": { "name": "one" },
        "spec": { "replicas": 8 }, "status": { "selector": "a=b" } });
    let path = format!("{status}?fieldManager=me&force=true");
    let after = raw.send("PATCH", &path, APPLY, apply.to_string()).await.expect(200).body;
    assert_eq!((&after["spec"]["replicas"], &after["status"]["selector"]), (&json!(5), &json!("a=b")));
    let mine: Vec<&Value> = after["metadata"]["managedFields"].as_array().unwrap().iter().collect();
    let mine = mine.iter().find(|entry| entry["manager"] == "me").unwrap();
    assert_eq!(mine["subresource"], "status");
    assert!(mine["fieldsV1"].get("f:spec").is_none(), "what was not written is not owned: {mine}");
    raw.send("PATCH", &format!("{RIG}x/status?fieldManager=me"), APPLY, apply.to_string()).await.expect(400);
}

#[tokio::test]
async fn a_controller_applies_a_status_without_repeating_the_name() {
    let (_binary, raw) = with_rig().await;
    let apply = |status: u8| {
        json!({ "apiVersion": "try.example.com/v1", "kind": "Rig", "status": { "replicas": status } })
            .to_string()
    };
    let path = format!("{RIG}/status?fieldManager=controller");
    for round in 1..3 {
        let after = raw.send("PATCH", &path, APPLY, apply(round)).await.expect(200).body;
        assert_eq!(after["metadata"]["name"], "one");
        assert_eq!((&after["spec"]["replicas"], &after["status"]["replicas"]), (&json!(1), &json!(round)));
    }
    let missing = format!("{RIG}x/status?fieldManager=controller");
    raw.send("PATCH", &missing, APPLY, apply(1)).await.expect(404);
    // What does not exist yet has to say what it is called.
    let made =
        raw.send("PATCH", &format!("{RIG}x?fieldManager=controller"), APPLY, apply(1)).await.expect(400);
    assert!(made.message().contains("name must be provided"), "{}", made.message());
}

#[tokio::test]
async fn a_scale_is_read_replaced_and_patched() {
    let (_binary, raw) = with_rig().await;
    let scale = format!("{RIG}/scale");
    let read = raw.get(&scale).await.expect(200).body;
    assert_eq!(
        (&read["kind"], &read["apiVersion"], &read["spec"]["replicas"]),
        (&json!("Scale"), &json!("autoscaling/v1"), &json!(1))
    );

    let mut wanted = read.clone();
    wanted["spec"]["replicas"] = 3.into();
    let after = raw.put(&scale, &wanted).await.expect(200).body;
    assert_eq!((&after["kind"], &after["spec"]["replicas"]), (&json!("Scale"), &json!(3)));
    raw.put(&scale, &wanted).await.expect(409);
    wanted["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    raw.put(&scale, &wanted).await.expect(200);

    wanted["spec"]["replicas"] = (-3).into();
    assert_eq!(raw.put(&scale, &wanted).await.expect(422).fields(), ["spec.replicas"]);
    wanted["spec"]["replicas"] = "x".into();
    raw.put(&scale, &wanted).await.expect(422);
    let rig = raw.get(RIG).await.expect(200).body;
    raw.put(&scale, &rig).await.expect(400);
    assert_eq!(rig["metadata"]["generation"], 2);

    let add = json!([{ "op": "replace", "path": "/spec/replicas", "value": 4 }]).to_string();
    assert_eq!(raw.send("PATCH", &scale, JSON_PATCH, add).await.expect(200).body["spec"]["replicas"], 4);
    let change = json!({ "spec": { "replicas": 5 }, "metadata": { "labels": { "a": "b" } } });
    assert_eq!(raw.merge(&scale, &change).await.expect(200).body["spec"]["replicas"], 5);
    raw.send("PATCH", &scale, MERGE, r#"{"spec":{"replicas":"x"}}"#).await.expect(422);
    raw.send("PATCH", &scale, MERGE, r#"{"metadata":{"resourceVersion":"1"}}"#).await.expect(409);
    let rig = raw.get(RIG).await.expect(200).body;
    assert_eq!(rig["spec"]["replicas"], 5);
    assert!(rig["metadata"].get("labels").is_none(), "a scale changes the count and nothing else");
    let scaled: Vec<&Value> = rig["metadata"]["managedFields"].as_array().unwrap().iter().collect();
    let scaled = scaled.iter().find(|entry| entry["subresource"] == "scale").unwrap();
    assert_eq!(scaled["fieldsV1"], json!({ "f:spec": { "f:replicas": {} } }));
    assert!(scaled.get("time").is_none(), "a real server notes none, which decides the order: {scaled}");
    raw.get(&format!("{RIG}x/scale")).await.expect(404);
}
