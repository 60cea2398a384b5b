//! Namespaces and definitions that are being deleted: empties them, then lets them go.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Janitor, Progress, internal_call, is_gone};
use crate::error::{ApiError, Result};
use crate::meta;
use crate::registry::{CrdNames, Resource};
use crate::store::{Key, Prefix};
use crate::verbs::{CLEANUP, DeleteOptions, Sent, is_established};

impl Janitor {
    pub(super) async fn empty_namespace(&mut self, name: &str) -> Result<Progress> {
        let Some(resource) = self.api.registry.get("", "v1", "namespaces") else { return Ok(Progress::Done) };
        let mut call = internal_call(&resource, "", name);
        let Some(live) = self.api.live(&call)? else { return Ok(Progress::Done) };
        if !meta::is_deleting(&live.object) {
            return Ok(Progress::Done);
        }
        let mut remaining = Remaining::default();
        for kind in self.api.registry.table().stored().into_iter().filter(|r| r.namespaced) {
            self.delete_all(&kind, &Prefix::namespace(&kind.storage, name), &mut remaining).await?;
        }
        if !remaining.is_empty() {
            self.report(&mut call, &live.object, &remaining).await?;
            return Ok(Progress::Waiting);
        }
        let mut object = live.object;
        object["spec"]["finalizers"] = json!([]);
        call.subresource = "finalize".into();
        let sent = crate::http::media::Decoded { value: object, duplicates: Vec::new() };
        match self.api.update(&mut call, sent).await {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(Progress::Done),
        }
    }

    /// Says in the namespace's conditions what keeps it.
    async fn report(
        &self,
        call: &mut crate::verbs::Call,
        namespace: &Value,
        remaining: &Remaining,
    ) -> Result<()> {
        let now = meta::time_text(jiff::Timestamp::now());
        let known = namespace.pointer("/status/conditions").and_then(Value::as_array);
        let condition = |kind: &str, status: &str, reason: &str, message: String| {
            let same =
                known.into_iter().flatten().find(|c| c["type"] == kind && c["message"] == message.as_str());
            same.cloned().unwrap_or_else(|| {
                json!({
                    "type": kind, "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": now,
                })
            })
        };
        let fine = [
            (
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
        ];
        let mut conditions: Vec<Value> = fine
            .into_iter()
            .map(|(kind, reason, message)| condition(kind, "False", reason, message.into()))
            .collect();
        conditions.push(condition(
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            format!("Some resources are remaining: {}", remaining.kinds_text()),
        ));
        if !remaining.finalizers.is_empty() {
            conditions.push(condition(
                "NamespaceFinalizersRemaining",
                "True",
                "SomeFinalizersRemain",
                format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    remaining.finalizers_text()
                ),
            ));
        }
        if !remaining.refusals.is_empty() {
            conditions.retain(|c| c["type"] != "NamespaceDeletionContentFailure");
            conditions.push(condition(
                "NamespaceDeletionContentFailure",
                "True",
                "ContentDeletionFailed",
                format!("Failed to delete all resource types, {}", remaining.refusals_text()),
            ));
        }
        call.subresource = "status".into();
        let sent = Sent::MergePatch(json!({ "status": { "conditions": conditions } }));
        match self.api.patch(call, sent).await {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Empties a definition that is being deleted; serves one that could not be served before.
    pub(super) async fn tend_definition(&mut self, name: &str) -> Result<Progress> {
        let found = self.api.registry.get("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let Some(resource) = found else { return Ok(Progress::Done) };
        let mut call = internal_call(&resource, "", name);
        let Some(live) = self.api.live(&call)? else { return Ok(Progress::Done) };
        let crd = live.object;
        if !meta::is_deleting(&crd) && !is_established(&crd) {
            // Writing it again is what looks at its names again.
            return match self.api.patch(&mut call, Sent::MergePatch(json!({}))).await {
                Err(error) if !is_gone(&error) => Err(error),
                _ => Ok(Progress::Done),
            };
        }
        let finalizers = meta::finalizers(&crd);
        if !meta::is_deleting(&crd) || !finalizers.contains(&CLEANUP) {
            return Ok(Progress::Done);
        }
        let storage = CrdNames::of(&crd).storage();
        if let Some(kind) = self.api.registry.table().by_storage(&storage) {
            let mut remaining = Remaining::default();
            self.delete_all(&kind, &Prefix::resource(&storage), &mut remaining).await?;
            if !remaining.is_empty() {
                return Ok(Progress::Waiting);
            }
        }
        let left: Vec<&str> = finalizers.into_iter().filter(|f| *f != CLEANUP).collect();
        match self.api.patch(&mut call, Sent::MergePatch(json!({ "metadata": { "finalizers": left } }))).await
        {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(Progress::Done),
        }
    }

    /// Deletes what is under the prefix and notes what does not go at once.
    async fn delete_all(
        &self,
        resource: &Arc<Resource>,
        prefix: &Prefix,
        remaining: &mut Remaining,
    ) -> Result<()> {
        let internal = |e: crate::store::StoreError| ApiError::internal(e.to_string());
        let snapshot = self.api.store.snapshot(None).map_err(internal)?;
        let mut start: Option<String> = None;
        loop {
            let page = snapshot.page(prefix, start.as_deref(), 256, |_, _| true).map_err(internal)?;
            for stored in page.items {
                self.delete_one(resource, &stored.key, remaining).await?;
            }
            match page.next {
                Some(next) => start = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// A refusal is noted with the object, so that one that cannot go does not keep the others.
    async fn delete_one(&self, resource: &Arc<Resource>, key: &Key, remaining: &mut Remaining) -> Result<()> {
        if let Err(error) = self.delete(resource, key, &DeleteOptions::default()).await {
            remaining.refusals.push(error.message);
        }
        let call = internal_call(resource, key.namespace(), key.name());
        if let Some(live) = self.api.live(&call)? {
            remaining.note(resource, &live.object);
        }
        Ok(())
    }
}

/// Objects that did not go at once, by kind, and the finalizers that hold them.
#[derive(Default)]
struct Remaining {
    kinds: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    /// Why deletions were refused.
    refusals: Vec<String>,
}

impl Remaining {
    fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    fn note(&mut self, resource: &Resource, object: &Value) {
        *self.kinds.entry(format!("{}.{}", resource.plural, resource.group)).or_default() += 1;
        for finalizer in meta::finalizers(object) {
            *self.finalizers.entry(finalizer.into()).or_default() += 1;
        }
    }

    fn kinds_text(&self) -> String {
        let parts = self.kinds.iter().map(|(kind, count)| format!("{kind} has {count} resource instances"));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// As many as a condition has room for.
    fn refusals_text(&self) -> String {
        let shown = self.refusals.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("; ");
        format!("{} remaining: {shown}", self.refusals.len())
    }

    fn finalizers_text(&self) -> String {
        let parts =
            self.finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances"));
        parts.collect::<Vec<_>>().join(", ")
    }
}
