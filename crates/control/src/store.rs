//! Writes to the API. Each carries the version that was read: whoever decided on old knowledge is refused and asked
//! to look again.

use kube::api::PostParams;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub async fn status<K>(api: &Api<K>, object: &K) -> kube::Result<K>
where
    K: Resource + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    api.replace_status(&object.name_any(), &PostParams::default(), object).await
}

pub async fn spec<K>(api: &Api<K>, object: &K) -> kube::Result<K>
where
    K: Resource + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    api.replace(&object.name_any(), &PostParams::default(), object).await
}
