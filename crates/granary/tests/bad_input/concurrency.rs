//! Many writers at once: every change lands, none is lost, nobody is given the same name.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::server;
use super::support::raw::{APPLY, CONFIG_MAPS, JSON_PATCH, MERGE, STRATEGIC, config_map};

const WRITERS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_patches_of_one_object_all_land() {
    let (_binary, raw) = server().await;
    let mut object = config_map("shared");
    object["data"] = json!({ "start": "0" });
    raw.make(CONFIG_MAPS, &object).await;
    let raw = Arc::new(raw);
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let raw = raw.clone();
            tokio::spawn(async move {
                let key = format!("key-{n}");
                let mut change = config_map("shared");
                change["data"] = json!({ key.as_str(): "x" });
                let change = change.to_string();
                let add = json!([{ "op": "add", "path": format!("/data/{key}"), "value": "x" }]).to_string();
                let path = format!("{CONFIG_MAPS}/shared?fieldManager=writer-{n}");
                match n % 4 {
                    0 => raw.send("PATCH", &path, MERGE, change).await,
                    1 => raw.send("PATCH", &path, STRATEGIC, change).await,
                    2 => raw.send("PATCH", &path, JSON_PATCH, add).await,
                    _ => raw.send("PATCH", &path, APPLY, change).await,
                }
                .expect(200);
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let shared = raw.get(&format!("{CONFIG_MAPS}/shared")).await.expect(200);
    let keys = shared.body["data"].as_object().unwrap();
    assert_eq!(keys.len(), WRITERS + 1, "{}", shared.text);
    let managers = shared.body["metadata"]["managedFields"].as_array().unwrap();
    let appliers = managers.iter().filter(|entry| entry["operation"] == "Apply").count();
    assert_eq!(appliers, WRITERS / 4, "every applier owns its field");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_with_versions_counts_every_increment_once() {
    let (_binary, raw) = server().await;
    let mut object = config_map("counter");
    object["data"] = json!({ "n": "0" });
    raw.make(CONFIG_MAPS, &object).await;
    let raw = Arc::new(raw);
    let writers: Vec<_> = (0..10)
        .map(|_| {
            let raw = raw.clone();
            tokio::spawn(async move {
                let path = format!("{CONFIG_MAPS}/counter");
                let mut conflicts = 0;
                for _ in 0..5 {
                    loop {
                        let mut seen = raw.get(&path).await.expect(200).body;
                        let n: u32 = seen["data"]["n"].as_str().unwrap().parse().unwrap();
                        seen["data"]["n"] = (n + 1).to_string().into();
                        let answer = raw.put(&path, &seen).await;
                        match answer.code {
                            200 => break,
                            409 => conflicts += 1,
                            _ => panic!("{}", answer.text),
                        }
                    }
                }
                conflicts
            })
        })
        .collect();
    let mut conflicts = 0;
    for writer in writers {
        conflicts += writer.await.unwrap();
    }
    let counter = raw.get(&format!("{CONFIG_MAPS}/counter")).await.expect(200);
    assert_eq!(counter.body["data"]["n"], "50", "{conflicts} conflicts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_names_are_all_different_and_a_name_is_given_once() {
    let (_binary, raw) = server().await;
    let raw = Arc::new(raw);
    let makers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let raw = raw.clone();
            tokio::spawn(async move {
                let made = raw.make(CONFIG_MAPS, &json!({ "metadata": { "generateName": "gen-" } })).await;
                let won = raw.post(CONFIG_MAPS, &config_map("only-one")).await;
                assert!(matches!(won.code, 201 | 409), "{}", won.text);
                (made["metadata"]["name"].as_str().unwrap().to_string(), won.code == 201)
            })
        })
        .collect();
    let (mut names, mut winners) = (BTreeSet::new(), 0);
    for maker in makers {
        let (name, won) = maker.await.unwrap();
        assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
        names.insert(name);
        winners += usize::from(won);
    }
    assert_eq!((names.len(), winners), (WRITERS, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_at_once_succeeds_once() {
    let (_binary, raw) = server().await;
    raw.make(CONFIG_MAPS, &config_map("victim")).await;
    let raw = Arc::new(raw);
    let killers: Vec<_> = (0..20)
        .map(|_| {
            let raw = raw.clone();
            tokio::spawn(async move { raw.delete(&format!("{CONFIG_MAPS}/victim")).await.code })
        })
        .collect();
    let mut codes = Vec::new();
    for killer in killers {
        codes.push(killer.await.unwrap());
    }
    codes.sort_unstable();
    assert_eq!((codes[0], &codes[1..]), (200, &[404; 19][..]));
}
