//! The server dies and comes back on the same address: watchers go on as if nothing had happened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;

use super::config_map;
use super::support::{Binary, eventually};

/// What a watcher has told, object by object.
#[derive(Default)]
struct Told {
    applied: BTreeMap<String, Vec<String>>,
    deleted: Vec<String>,
    lists: usize,
}

impl Told {
    fn note(&mut self, event: &Event<ConfigMap>) {
        match event {
            Event::Init => self.lists += 1,
            Event::InitDone => {}
            Event::Apply(object) | Event::InitApply(object) => {
                let versions = self.applied.entry(object.name_any()).or_default();
                versions.push(object.resource_version().unwrap());
            }
            Event::Delete(object) => self.deleted.push(object.name_any()),
        }
    }
}

async fn survive(config: watcher::Config) {
    let mut binary = Binary::start(Duration::from_secs(300)).await;
    let api: Api<ConfigMap> = Api::default_namespaced(binary.client().await);
    for n in 0..5 {
        api.create(&PostParams::default(), &config_map(&format!("before-{n}"), &[])).await.unwrap();
    }
    let told = Arc::new(Mutex::new(Told::default()));
    let (reader, writer) = reflector::store();
    let note = told.clone();
    let stream =
        reflector::reflector(writer, watcher(api.clone(), config)).default_backoff().for_each(move |event| {
            if let Ok(event) = event {
                note.lock().note(&event);
            }
            async {}
        });
    let task = tokio::spawn(stream);
    reader.wait_until_ready().await.unwrap();

    for round in 0..3 {
        api.create(&PostParams::default(), &config_map(&format!("made-{round}"), &[])).await.unwrap();
        api.delete(&format!("before-{round}"), &DeleteParams::default()).await.unwrap();
        binary.kill();
        binary.start_again().await;
        // Another client writes before the watcher has found its way back.
        let other: Api<ConfigMap> = Api::default_namespaced(binary.client().await);
        other.create(&PostParams::default(), &config_map(&format!("after-{round}"), &[])).await.unwrap();
        other.create(&PostParams::default(), &config_map(&format!("brief-{round}"), &[])).await.unwrap();
        other.delete(&format!("brief-{round}"), &DeleteParams::default()).await.unwrap();
    }
    let other: Api<ConfigMap> = Api::default_namespaced(binary.client().await);
    let truth: BTreeSet<(String, String)> = other
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .iter()
        .map(|o| (o.name_any(), o.resource_version().unwrap()))
        .collect();
    assert_eq!(truth.len(), 5 - 3 + 3 + 3);
    eventually("the reflector to hold what is there", || async {
        let held: BTreeSet<_> =
            reader.state().iter().map(|o| (o.name_any(), o.resource_version().unwrap())).collect();
        (held == truth).then_some(())
    })
    .await;
    task.abort();
    let told = told.lock();
    for (name, versions) in &told.applied {
        let numbers: Vec<u64> = versions.iter().map(|v| v.parse().unwrap()).collect();
        assert!(numbers.is_sorted(), "{name} went back in time: {numbers:?}");
    }
    let deleted: BTreeSet<_> = told.deleted.iter().collect();
    assert_eq!(deleted.len(), told.deleted.len(), "told twice of a deletion: {:?}", told.deleted);
    if told.lists == 1 {
        // Resumed from where it was, every time: then nothing at all may be missing.
        for round in 0..3 {
            assert!(told.applied.contains_key(&format!("brief-{round}")), "{:?}", told.applied.keys());
            assert!(told.deleted.contains(&format!("brief-{round}")), "{:?}", told.deleted);
            assert!(told.deleted.contains(&format!("before-{round}")), "{:?}", told.deleted);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_survives_restarts() {
    survive(watcher::Config::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streaming_watcher_survives_restarts() {
    survive(watcher::Config::default().streaming_lists()).await;
}
