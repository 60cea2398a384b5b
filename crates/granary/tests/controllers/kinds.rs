//! Our own kinds through typed clients: made, read, reported on, and never robbed of a field.

use granary_api::cdi::DataVolume;
use granary_api::harvester::VirtualMachineImage;
use granary_api::longhorn::Volume;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::support::{Granary, Place};

crate::everywhere!(typed_clients_keep_what_they_do_not_know);

/// Makes an object with members that no type of ours knows, changes it through the type, and looks again.
///
/// `apart`: whether the status has an end point of its own.
async fn tell<K>(client: &kube::Client, apart: bool, mut object: Value, edit: impl Fn(&mut K), status: Value)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let kind = K::kind(&()).to_string();
    object["apiVersion"] = K::api_version(&()).as_ref().into();
    object["kind"] = kind.as_str().into();
    object["metadata"] = json!({ "name": "one", "annotations": { "of": "somebody" } });
    object["spec"]["fromTheFuture"] = json!({ "deep": [{ "a": 1 }], "empty": {} });
    let resource = kube::api::ApiResource::erase::<K>(&());
    let raw: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let sent: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    raw.create(&PostParams::default(), &sent).await.unwrap();

    let api: Api<K> = Api::default_namespaced(client.clone());
    let mut typed = api.get("one").await.unwrap();
    edit(&mut typed);
    let replaced = api.replace("one", &PostParams::default(), &typed).await.unwrap();
    assert_eq!(replaced.meta().generation, Some(2), "{kind}");
    let report = json!({ "status": status });
    let write = Patch::Merge(&report);
    let reported = match apart {
        true => api.patch_status("one", &PatchParams::default(), &write).await,
        false => api.patch("one", &PatchParams::default(), &write).await,
    };
    reported.unwrap();
    let after = raw.get("one").await.unwrap();
    assert_eq!(after.data["spec"]["fromTheFuture"], object["spec"]["fromTheFuture"], "{kind}");
    assert_eq!(after.annotations()["of"], "somebody");
    for (member, value) in status.as_object().unwrap() {
        assert_eq!(after.data["status"][member], *value, "{kind} {member}");
    }
    // A status that was read and written back by its type keeps what it does not know, too.
    let odd = json!({ "status": { "alsoFromTheFuture": "yes" } });
    let write = Patch::Merge(&odd);
    let patched = match apart {
        true => raw.patch_status("one", &PatchParams::default(), &write).await,
        false => raw.patch("one", &PatchParams::default(), &write).await,
    };
    patched.unwrap();
    let typed = api.get("one").await.unwrap();
    let replaced = match apart {
        true => api.replace_status("one", &PostParams::default(), &typed).await,
        false => api.replace("one", &PostParams::default(), &typed).await,
    };
    replaced.unwrap();
    assert_eq!(raw.get("one").await.unwrap().data["status"]["alsoFromTheFuture"], "yes", "{kind}");
}

async fn typed_clients_keep_what_they_do_not_know(place: Place) {
    let granary = Granary::start(place).await;
    let client = granary.client("typed").await;
    tell::<VirtualMachineImage>(
        &client,
        false,
        json!({ "spec": { "displayName": "d", "sourceType": "upload" } }),
        |image| image.spec.description = Some("better".into()),
        json!({ "progress": 50, "size": 1234 }),
    )
    .await;
    tell::<Volume>(
        &client,
        true,
        json!({ "spec": { "size": "1073741824", "numberOfReplicas": 2 } }),
        |volume| volume.spec.stale_replica_timeout = Some(20),
        json!({ "state": "attached", "currentNodeID": "n1" }),
    )
    .await;
    tell::<DataVolume>(
        &client,
        true,
        json!({ "spec": { "source": { "blank": {} }, "pvc": { "accessModes": ["ReadWriteOnce"] } } }),
        |volume| volume.spec.priority_class_name = Some("high".into()),
        json!({ "phase": "Succeeded", "progress": "100.0%" }),
    )
    .await;
}
