//! The finalizer that keeps an object until what belongs to it is gone.

use granary_api::constants::longhorn::FINALIZER;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

/// Takes ours away and leaves those of others. An object that is gone already is fine.
pub async fn remove<K>(api: &Api<K>, object: &K) -> kube::Result<()>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let rest: Vec<&String> = object.finalizers().iter().filter(|name| *name != FINALIZER).collect();
    if rest.len() == object.finalizers().len() {
        return Ok(());
    }
    let patch = json!({
        "metadata": { "finalizers": rest, "resourceVersion": object.resource_version() },
    });
    match api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}
