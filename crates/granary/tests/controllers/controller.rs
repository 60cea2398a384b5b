//! A controller as ours will be: finalizer, owned objects, status by server-side apply.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use granary_api::harvester::VirtualMachineImage;
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

/// Keeps one ConfigMap per image, owned by it, and tells the image's progress.
async fn reconcile(image: Arc<VirtualMachineImage>, context: Arc<Context>) -> Result<Action, Failed> {
    let images: Api<VirtualMachineImage> = Api::default_namespaced(context.client.clone());
    let client = context.client.clone();
    let done = finalizer(&images, FINALIZER, image, |event| async move {
        match event {
            Event::Apply(image) => keep(&client, &image).await,
            Event::Cleanup(image) => clean_up(&client, &image).await,
        }
    });
    Ok(done.await.map_err(Box::new)?)
}

async fn keep(client: &Client, image: &VirtualMachineImage) -> Result<Action, kube::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let owned = ConfigMap {
        metadata: ObjectMeta {
            name: Some(image.name_any()),
            owner_references: Some(vec![image.controller_owner_ref(&()).unwrap()]),
            ..ObjectMeta::default()
        },
        data: Some([("display".to_string(), image.spec.display_name.clone())].into()),
        ..ConfigMap::default()
    };
    let applying = PatchParams::apply("image-controller").force();
    maps.patch(&image.name_any(), &applying, &Patch::Apply(&owned)).await?;
    let images: Api<VirtualMachineImage> = Api::default_namespaced(client.clone());
    let status = json!({
        "apiVersion": VirtualMachineImage::api_version(&()),
        "kind": VirtualMachineImage::kind(&()),
        "status": { "progress": 100, "appliedUrl": image.spec.url },
    });
    images.patch_status(&image.name_any(), &applying, &Patch::Apply(&status)).await?;
    Ok(Action::requeue(Duration::from_secs(3600)))
}

async fn clean_up(client: &Client, image: &VirtualMachineImage) -> Result<Action, kube::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut last = super::config_map(&format!("{}-was-cleaned", image.name_any()), &[]);
    last.data =
        Some([("progress".to_string(), format!("{:?}", image.status.as_ref().unwrap().progress))].into());
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
    let client = granary.client("image-controller").await;
    let images: Api<VirtualMachineImage> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let controller = Controller::new(images.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), Arc::new(Context { client }));
    let running = tokio::spawn(controller.for_each(|_| async {}));

    let image: VirtualMachineImage = serde_json::from_value(json!({
        "apiVersion": "harvesterhci.io/v1beta1", "kind": "VirtualMachineImage",
        "metadata": { "name": "debian" },
        "spec": { "displayName": "Debian", "sourceType": "download", "url": "http://x/debian.img" },
    }))
    .unwrap();
    for name in ["debian", "alpine"] {
        let mut image = image.clone();
        image.metadata.name = Some(name.into());
        images.create(&PostParams::default(), &image).await.unwrap();
    }
    let ready = eventually("the image to be ready", || async {
        let image = images.get("debian").await.unwrap();
        image.status.as_ref().is_some_and(|s| s.progress == Some(100)).then_some(image)
    })
    .await;
    assert_eq!(ready.finalizers(), [FINALIZER]);
    assert_eq!(ready.status.as_ref().unwrap().applied_url.as_deref(), Some("http://x/debian.img"));
    assert_eq!(ready.metadata.generation, Some(1), "neither status nor finalizer is a new generation");
    let owners: Vec<_> = ready.managed_fields().iter().filter(|m| m.subresource.is_some()).collect();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0].manager.as_deref(), Some("image-controller"));

    // Somebody meddles with what the controller owns: it is put right.
    maps.delete("debian", &DeleteParams::default()).await.unwrap();
    let uid = ready.uid().unwrap();
    eventually("the owned object to come back", || async {
        let map = maps.get_opt("debian").await.unwrap()?;
        map.owner_references().iter().any(|o| o.uid == uid).then_some(())
    })
    .await;
    let rename = json!({ "spec": { "displayName": "Debian 12" } });
    let renamed = images.patch("debian", &PatchParams::default(), &Patch::Merge(&rename)).await.unwrap();
    assert_eq!(renamed.metadata.generation, Some(2));
    eventually("the change to arrive", || async {
        let map = maps.get_opt("debian").await.unwrap()?;
        (map.data?.get("display")? == "Debian 12").then_some(())
    })
    .await;

    images.delete("debian", &DeleteParams::default()).await.unwrap();
    eventually("the image to go", || async {
        images.get_opt("debian").await.unwrap().is_none().then_some(())
    })
    .await;
    let last = maps.get("debian-was-cleaned").await.unwrap();
    assert_eq!(last.data.unwrap()["progress"], "Some(100)");
    eventually("what it owned to go", || async {
        maps.get_opt("debian").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(images.get("alpine").await.is_ok(), "the other one is not touched");
    running.abort();
}
