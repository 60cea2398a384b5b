//! A controller as ours will be: finalizer, owned objects, status by server-side apply.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use granary_api::cdi::DataVolume;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use super::support::{Granary, Place, eventually};

crate::everywhere!(a_controller_makes_mends_reports_and_cleans_up);

const FINALIZER: &str = "tests.granary.io/cleanup";

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Finalizer(#[from] Box<kube::runtime::finalizer::Error<kube::Error>>),
}

struct Context {
    client: Client,
}

/// Keeps one ConfigMap per volume, owned by it, and tells its progress.
async fn reconcile(volume: Arc<DataVolume>, context: Arc<Context>) -> Result<Action, Failed> {
    let volumes: Api<DataVolume> = Api::default_namespaced(context.client.clone());
    let client = context.client.clone();
    let done = finalizer(&volumes, FINALIZER, volume, |event| async move {
        match event {
            Event::Apply(volume) => keep(&client, &volume).await,
            Event::Cleanup(volume) => clean_up(&client, &volume).await,
        }
    });
    Ok(done.await.map_err(Box::new)?)
}

async fn keep(client: &Client, volume: &DataVolume) -> Result<Action, kube::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let owned = ConfigMap {
        metadata: ObjectMeta {
            name: Some(volume.name_any()),
            owner_references: Some(vec![volume.controller_owner_ref(&()).unwrap()]),
            ..ObjectMeta::default()
        },
        data: Some(
            [("class".to_string(), volume.spec.priority_class_name.clone().unwrap_or_default())].into(),
        ),
        ..ConfigMap::default()
    };
    let applying = PatchParams::apply("volume-controller").force();
    maps.patch(&volume.name_any(), &applying, &Patch::Apply(&owned)).await?;
    let volumes: Api<DataVolume> = Api::default_namespaced(client.clone());
    let status = json!({
        "apiVersion": DataVolume::api_version(&()),
        "kind": DataVolume::kind(&()),
        "status": { "phase": "Succeeded", "progress": "100.0%" },
    });
    volumes.patch_status(&volume.name_any(), &applying, &Patch::Apply(&status)).await?;
    Ok(Action::requeue(Duration::from_secs(3600)))
}

async fn clean_up(client: &Client, volume: &DataVolume) -> Result<Action, kube::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut last = super::config_map(&format!("{}-was-cleaned", volume.name_any()), &[]);
    last.data = Some(
        [("progress".to_string(), volume.status.clone().unwrap_or_default().progress.unwrap_or_default())]
            .into(),
    );
    match maps.create(&PostParams::default(), &last).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        other => {
            other?;
        }
    }
    Ok(Action::await_change())
}

async fn a_controller_makes_mends_reports_and_cleans_up(place: Place) {
    let granary = Granary::start(place).await;
    let client = granary.client("volume-controller").await;
    let volumes: Api<DataVolume> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let controller = Controller::new(volumes.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), Arc::new(Context { client }));
    let running = tokio::spawn(controller.for_each(|_| async {}));

    let volume: DataVolume = serde_json::from_value(json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
        "metadata": { "name": "debian" },
        "spec": { "source": { "blank": {} }, "priorityClassName": "low" },
    }))
    .unwrap();
    for name in ["debian", "alpine"] {
        let mut volume = volume.clone();
        volume.metadata.name = Some(name.into());
        volumes.create(&PostParams::default(), &volume).await.unwrap();
    }
    let ready = eventually("the volume to be ready", || async {
        let volume = volumes.get("debian").await.unwrap();
        volume.status.as_ref().is_some_and(|s| s.progress.as_deref() == Some("100.0%")).then_some(volume)
    })
    .await;
    assert_eq!(ready.finalizers(), [FINALIZER]);
    assert_eq!(ready.metadata.generation, Some(1), "neither status nor finalizer is a new generation");
    let owners: Vec<_> = ready.managed_fields().iter().filter(|m| m.subresource.is_some()).collect();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0].manager.as_deref(), Some("volume-controller"));

    // Somebody meddles with what the controller owns: it is put right.
    maps.delete("debian", &DeleteParams::default()).await.unwrap();
    let uid = ready.uid().unwrap();
    eventually("the owned object to come back", || async {
        let map = maps.get_opt("debian").await.unwrap()?;
        map.owner_references().iter().any(|o| o.uid == uid).then_some(())
    })
    .await;
    let rename = json!({ "spec": { "priorityClassName": "high" } });
    let renamed = volumes.patch("debian", &PatchParams::default(), &Patch::Merge(&rename)).await.unwrap();
    assert_eq!(renamed.metadata.generation, Some(2));
    eventually("the change to arrive", || async {
        let map = maps.get_opt("debian").await.unwrap()?;
        (map.data?.get("class")? == "high").then_some(())
    })
    .await;

    volumes.delete("debian", &DeleteParams::default()).await.unwrap();
    eventually("the volume to go", || async {
        volumes.get_opt("debian").await.unwrap().is_none().then_some(())
    })
    .await;
    let last = maps.get("debian-was-cleaned").await.unwrap();
    assert_eq!(last.data.unwrap()["progress"], "100.0%");
    eventually("what it owned to go", || async {
        maps.get_opt("debian").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(volumes.get("alpine").await.is_ok(), "the other one is not touched");
    running.abort();
}
