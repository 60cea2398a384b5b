//! Settings on a running API: the defaults that are made, and the changes that are refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use granary_api::cni::NetworkAttachmentDefinition;
use granary_api::constants::longhorn::SYSTEM_NAMESPACE;
use granary_api::longhorn::{Setting, Volume};
use granary_apiserver::{ApiServer, store};
use granary_control::setting;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

struct House {
    server: Arc<ApiServer>,
    client: Client,
    _dir: tempfile::TempDir,
}

impl House {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let definitions: Vec<_> =
            granary_api::crds::all().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
        let options = store::Options::new(dir.path().join("granary.redb"));
        let server = ApiServer::start(options, &definitions).await.unwrap();
        let client = server.client("tests");
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(SYSTEM_NAMESPACE.into());
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        server.api.admission.register(setting::hook(client.clone()));
        setting::ensure(&Api::namespaced(client.clone(), SYSTEM_NAMESPACE)).await.unwrap();
        Self { server, client, _dir: dir }
    }

    fn settings(&self) -> Api<Setting> {
        Api::namespaced(self.client.clone(), SYSTEM_NAMESPACE)
    }

    async fn set(&self, name: &str, value: &str) -> Result<(), String> {
        let patch = Patch::Merge(json!({ "value": value }));
        match self.settings().patch(name, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) => Err(status.message),
            Err(error) => panic!("{error}"),
        }
    }

    async fn make<K>(&self, namespace: &str, object: serde_json::Value)
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + serde::de::DeserializeOwned
            + serde::Serialize
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        Api::namespaced(self.client.clone(), namespace)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    async fn network(&self, name: &str, config: &str) {
        let object = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": name }, "spec": { "config": config },
        });
        self.make::<NetworkAttachmentDefinition>("default", object).await;
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.server.stop();
    }
}

#[tokio::test]
async fn every_setting_is_there_and_a_chosen_value_survives_the_next_start() {
    let house = House::new().await;
    let listed = house.settings().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(listed.len(), setting::catalogue::ALL.len());
    house.set("default-replica-count", "2").await.unwrap();
    setting::ensure(&house.settings()).await.unwrap();
    let values = house.settings().list(&ListParams::default()).await.unwrap().items;
    let values = setting::Values::of(&values);
    assert_eq!(values.number("default-replica-count"), 2);
    assert_eq!(values.number("storage-minimal-available-percentage"), 25);
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_refused_with_the_limits() {
    let house = House::new().await;
    let refused = house.set("engine-replica-timeout", "99").await.unwrap_err();
    assert!(refused.contains("a number from 8 to 30, not \"99\""), "{refused}");
    house.set("engine-replica-timeout", "9").await.unwrap();
    let deleted = house.settings().delete("auto-salvage", &DeleteParams::default()).await.unwrap_err();
    assert!(deleted.to_string().contains("cannot be deleted; set it to \"true\""), "{deleted}");
}

#[tokio::test]
async fn a_setting_of_somebody_else_is_left_alone() {
    let house = House::new().await;
    let other: Setting = serde_json::from_value(json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Setting",
        "metadata": { "name": "log-level" }, "value": "whatever",
    }))
    .unwrap();
    house.settings().create(&PostParams::default(), &other).await.unwrap();
    house.settings().delete("log-level", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn the_storage_network_must_exist_and_mean_something() {
    let house = House::new().await;
    let refused = house.set("storage-network", "storage").await.unwrap_err();
    assert!(refused.contains("<namespace>/<name>"), "{refused}");
    let refused = house.set("storage-network", "default/storage").await.unwrap_err();
    assert!(refused.contains("default/storage does not exist; create it first"), "{refused}");
    house.network("broken", "{}").await;
    let refused = house.set("storage-network", "default/broken").await.unwrap_err();
    assert!(refused.contains("names no type of plugin"), "{refused}");
    house.network("storage", r#"{"type":"bridge"}"#).await;
    house.set("storage-network", "default/storage").await.unwrap();
    house.set("storage-network", "").await.unwrap();
}

#[tokio::test]
async fn the_storage_network_stays_while_volumes_are_attached() {
    let house = House::new().await;
    house.network("storage", r#"{"type":"bridge"}"#).await;
    for (name, node) in [("in-use", "n1"), ("at-rest", "")] {
        let volume = json!({
            "apiVersion": "longhorn.io/v1beta2", "kind": "Volume",
            "metadata": { "name": name }, "spec": { "size": "1073741824", "nodeID": node },
        });
        house.make::<Volume>(SYSTEM_NAMESPACE, volume).await;
    }
    let refused = house.set("storage-network", "default/storage").await.unwrap_err();
    assert!(refused.ends_with("while volumes are attached; detach in-use"), "{refused}");
    // The same value again is no change, and nothing else is held up.
    house.set("storage-network", "").await.unwrap();
    house.set("default-replica-count", "1").await.unwrap();

    let volumes: Api<Volume> = Api::namespaced(house.client.clone(), SYSTEM_NAMESPACE);
    let patch = Patch::Merge(json!({ "spec": { "nodeID": "" } }));
    let volume = volumes.patch("in-use", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(volume.name_any(), "in-use");
    let patch = Patch::Merge(json!({ "status": { "state": "detaching" } }));
    volumes.patch_status("in-use", &PatchParams::default(), &patch).await.unwrap();
    assert!(house.set("storage-network", "default/storage").await.is_err(), "its processes still run");
    let patch = Patch::Merge(json!({ "status": { "state": "detached" } }));
    volumes.patch_status("in-use", &PatchParams::default(), &patch).await.unwrap();
    house.set("storage-network", "default/storage").await.unwrap();
}
