//! Owner references: deleting what nobody owns any more, and finishing owners that wait for their dependents.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Janitor, Progress, Task, internal_call, is_gone};
use crate::error::Result;
use crate::http::query::Propagation;
use crate::meta;
use crate::registry::Resource;
use crate::store::Key;
use crate::verbs::{Api, Call, DeleteOptions, FOREGROUND, ORPHAN, Sent};

/// What has become of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Alive,
    /// It is being deleted and waits for its dependents to go first.
    Waiting,
    Gone,
    /// Its kind is not served, so nothing can be said: the dependent stays.
    Unknown,
}

/// The keys of the owners that an object names.
pub(super) fn owners(api: &Api, object: &Value) -> Vec<Key> {
    references(object).iter().filter_map(|r| owner_key(api, object, r)).collect()
}

fn references(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn owner_key(api: &Api, dependent: &Value, reference: &Value) -> Option<Key> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let resource = api.registry.by_kind(text("apiVersion"), text("kind"))?;
    let namespace = if resource.namespaced { meta::text(dependent, "namespace") } else { "" };
    if resource.namespaced && namespace.is_empty() {
        return None;
    }
    Some(Key::new(&resource.storage, namespace, text("name")))
}

fn fate(api: &Api, dependent: &Value, reference: &Value) -> Result<Fate> {
    let Some(key) = owner_key(api, dependent, reference) else { return Ok(Fate::Unknown) };
    let stored = api.store.get(&key).map_err(|e| crate::error::ApiError::internal(e.to_string()))?;
    let Some(stored) = stored else { return Ok(Fate::Gone) };
    let owner: Value = serde_json::from_slice(&stored.json).unwrap_or_default();
    if meta::uid(&owner) != reference["uid"].as_str().unwrap_or_default() {
        return Ok(Fate::Gone);
    }
    let waiting = meta::is_deleting(&owner) && meta::finalizers(&owner).contains(&FOREGROUND);
    Ok(if waiting { Fate::Waiting } else { Fate::Alive })
}

impl Janitor {
    /// Deletes a dependent without living owners; frees it from dead ones when others live.
    pub(super) async fn check_dependent(&mut self, key: &Key) -> Result<Progress> {
        let Some(resource) = self.resource(key) else { return Ok(Progress::Done) };
        let call = internal_call(&resource, key.namespace(), key.name());
        let Some(live) = self.api.live(&call)? else { return Ok(Progress::Done) };
        let object = live.object;
        let mut fates = Vec::new();
        for reference in references(&object) {
            fates.push(fate(&self.api, &object, reference)?);
            if fates.last() == Some(&Fate::Waiting)
                && let Some(owner) = owner_key(&self.api, &object, reference)
            {
                self.push(Task::Owner(owner));
            }
        }
        let any = |wanted: Fate| fates.contains(&wanted);
        if fates.is_empty() || any(Fate::Unknown) || !(any(Fate::Gone) || any(Fate::Waiting)) {
            return Ok(Progress::Done);
        }
        if any(Fate::Alive) {
            return self.drop_references(&resource, key, &object, &fates).await;
        }
        if meta::is_deleting(&object) {
            return Ok(Progress::Done);
        }
        let propagation = if any(Fate::Waiting) && !self.owned_by(&object)?.is_empty() {
            Propagation::Foreground
        } else if meta::finalizers(&object).contains(&ORPHAN) {
            Propagation::Orphan
        } else if meta::finalizers(&object).contains(&FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        let options = DeleteOptions {
            propagation: Some(propagation),
            uid: Some(meta::uid(&object).into()),
            ..DeleteOptions::default()
        };
        tracing::debug!(%key, "deleting a dependent without owners");
        self.delete(&resource, key, &options).await?;
        Ok(Progress::Done)
    }

    fn owned_by(&self, object: &Value) -> Result<Vec<Key>> {
        let found = self.api.store.owned_by(meta::uid(object));
        found.map_err(|e| crate::error::ApiError::internal(e.to_string()))
    }

    async fn drop_references(
        &self,
        resource: &Arc<Resource>,
        key: &Key,
        object: &Value,
        fates: &[Fate],
    ) -> Result<Progress> {
        let kept: Vec<&Value> = references(object)
            .iter()
            .zip(fates)
            .filter(|(_, fate)| **fate == Fate::Alive)
            .map(|(reference, _)| reference)
            .collect();
        self.patch_meta(resource, key, object, json!({ "ownerReferences": kept })).await
    }

    /// Patches metadata of the very object that was looked at.
    async fn patch_meta(
        &self,
        resource: &Arc<Resource>,
        key: &Key,
        object: &Value,
        mut change: Value,
    ) -> Result<Progress> {
        let mut call: Call = internal_call(resource, key.namespace(), key.name());
        change["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
        let sent = Sent::MergePatch(json!({ "metadata": change }));
        match self.api.patch(&mut call, sent).await {
            Ok(_) => Ok(Progress::Done),
            Err(error) if is_gone(&error) => Ok(Progress::Done),
            Err(error) if error.code == ::http::StatusCode::CONFLICT => Ok(Progress::Waiting),
            Err(error) => Err(error),
        }
    }

    /// Moves an owner that is being deleted towards its end.
    pub(super) async fn finish_owner(&mut self, key: &Key) -> Result<Progress> {
        let Some(resource) = self.resource(key) else { return Ok(Progress::Done) };
        let call = internal_call(&resource, key.namespace(), key.name());
        let Some(live) = self.api.live(&call)? else { return Ok(Progress::Done) };
        let owner = live.object;
        let finalizers: Vec<&str> = meta::finalizers(&owner);
        if !meta::is_deleting(&owner) {
            return Ok(Progress::Done);
        }
        let finalizer = if finalizers.contains(&ORPHAN) {
            self.orphan_all(&owner).await?;
            ORPHAN
        } else if finalizers.contains(&FOREGROUND) {
            if self.blocked_by_dependents(&owner)? {
                // The deletion of the last dependent brings this owner back here.
                return Ok(Progress::Done);
            }
            FOREGROUND
        } else {
            return Ok(Progress::Done);
        };
        let left: Vec<&str> = finalizers.into_iter().filter(|f| *f != finalizer).collect();
        self.patch_meta(&resource, key, &owner, json!({ "finalizers": left })).await
    }

    async fn orphan_all(&self, owner: &Value) -> Result<()> {
        for key in self.owned_by(owner)? {
            let Some(resource) = self.resource(&key) else { continue };
            let call = internal_call(&resource, key.namespace(), key.name());
            let Some(live) = self.api.live(&call)? else { continue };
            let others: Vec<&Value> = references(&live.object)
                .iter()
                .filter(|r| r["uid"].as_str() != Some(meta::uid(owner)))
                .collect();
            let change = json!({ "ownerReferences": others });
            if self.patch_meta(&resource, &key, &live.object, change).await? == Progress::Waiting {
                return Err(crate::error::ApiError::internal(format!("{key} is changing")));
            }
        }
        Ok(())
    }

    /// Sends all dependents on their way; tells whether any that blocks is still there.
    fn blocked_by_dependents(&mut self, owner: &Value) -> Result<bool> {
        let mut blocked = false;
        for key in self.owned_by(owner)? {
            let Some(stored) =
                self.api.store.get(&key).map_err(|e| crate::error::ApiError::internal(e.to_string()))?
            else {
                continue;
            };
            let dependent: Value = serde_json::from_slice(&stored.json).unwrap_or_default();
            blocked |= references(&dependent)
                .iter()
                .any(|r| r["uid"].as_str() == Some(meta::uid(owner)) && r["blockOwnerDeletion"] == true);
            if !meta::is_deleting(&dependent) {
                self.push(Task::Dependent(key));
            }
        }
        Ok(blocked)
    }
}
