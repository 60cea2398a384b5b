//! Which resources the server knows, built in and custom, at this moment.
//!
//! Owns the table that requests, discovery and OpenAPI look resources up in. Must never touch the store.

mod builtins;
mod crd;
mod resource;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

pub use crd::{CrdNames, accepted_conditions, name_conflicts};
pub use resource::{Custom, CustomColumn, Resource, Scale, Source, Unwritten};

use crate::error::FieldError;
use crate::meta;

/// All resources; readers see one consistent table.
pub struct Registry {
    table: ArcSwap<Table>,
    /// Serialises changes; readers never wait. Holds the newest revision of each definition that was seen.
    change: Mutex<BTreeMap<String, u64>>,
    /// Tells the generation of the table to whoever must know that a resource is no longer what it was.
    news: watch::Sender<u64>,
}

const BUILTIN_GROUPS: &[&str] = &[
    "",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "coordination.k8s.io",
];

/// group → version → plural → resource
type Groups = BTreeMap<String, BTreeMap<String, BTreeMap<String, Arc<Resource>>>>;

#[derive(Default, Clone)]
pub struct Table {
    groups: Groups,
    /// Grows with every change, so that derived documents know when they are stale.
    pub generation: u64,
}

impl Registry {
    /// A registry of the built-in kinds.
    pub fn new() -> Self {
        let mut table = Table::default();
        for resource in builtins::resources() {
            table.insert(resource);
        }
        Self { table: ArcSwap::from_pointee(table), change: Mutex::default(), news: watch::Sender::new(0) }
    }

    /// Tells when the table changes.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Whether this very description is still the one that is served.
    pub fn serves(&self, resource: &Arc<Resource>) -> bool {
        let current = self.get(&resource.group, &resource.version, &resource.plural);
        current.is_some_and(|current| Arc::ptr_eq(&current, resource))
    }

    pub fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.table.load().groups.get(group)?.get(version)?.get(plural).cloned()
    }

    /// The resource of a kind, as owner references name it.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let table = self.table.load();
        table.groups.get(group)?.get(version)?.values().find(|r| r.kind == kind).cloned()
    }

    /// Serves what an accepted CustomResourceDefinition describes, replacing what an earlier state of it did.
    pub fn put_crd(&self, crd: &Value) -> Result<(), Vec<FieldError>> {
        let resources = crd::resources(crd)?;
        self.update(crd, |table| {
            table.remove_storage(&CrdNames::of(crd).storage());
            resources.into_iter().for_each(|resource| table.insert(resource));
        });
        Ok(())
    }

    pub fn remove_crd(&self, crd: &Value) {
        self.update(crd, |table| table.remove_storage(&CrdNames::of(crd).storage()));
    }

    /// Follows a definition, unless a later state of it came in first: writers tell of what they have written
    /// in any order, and one that was overtaken must not bring back what is gone.
    fn update(&self, crd: &Value, change: impl FnOnce(&mut Table)) {
        let mut seen = self.change.lock();
        let revision = meta::text(crd, "resourceVersion").parse().unwrap_or(0);
        let newest = seen.entry(meta::name(crd).to_string()).or_default();
        if revision < *newest {
            return;
        }
        *newest = revision;
        let mut table = Table::clone(&self.table.load());
        change(&mut table);
        table.generation += 1;
        let generation = table.generation;
        self.table.store(Arc::new(table));
        self.news.send_replace(generation);
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    fn insert(&mut self, resource: Resource) {
        let version = self
            .groups
            .entry(resource.group.clone())
            .or_default()
            .entry(resource.version.clone())
            .or_default();
        version.insert(resource.plural.clone(), Arc::new(resource));
    }

    fn remove_storage(&mut self, storage: &str) {
        for versions in self.groups.values_mut() {
            for resources in versions.values_mut() {
                resources.retain(|_, r| !(r.is_custom() && r.storage == storage));
            }
            versions.retain(|_, resources| !resources.is_empty());
        }
        self.groups.retain(|_, versions| !versions.is_empty());
    }

    /// Group names: the core group, Kubernetes' own in its order, then all others. Clients that meet a short
    /// name twice take the first.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = self.groups.keys().map(String::as_str).collect();
        groups.sort_by_key(|group| BUILTIN_GROUPS.iter().position(|g| g == group).unwrap_or(usize::MAX));
        groups
    }

    /// The versions of a group, the preferred one first.
    pub fn versions(&self, group: &str) -> Vec<&str> {
        let mut versions: Vec<&str> =
            self.groups.get(group).into_iter().flat_map(|v| v.keys()).map(String::as_str).collect();
        versions.sort_by_key(|v| std::cmp::Reverse(crd::version_rank(v)));
        versions
    }

    pub fn resources(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.get(group).and_then(|v| v.get(version)).into_iter().flat_map(BTreeMap::values)
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.values().flat_map(|versions| versions.values().flat_map(BTreeMap::values))
    }

    /// One resource for each kind of stored object.
    pub fn stored(&self) -> Vec<Arc<Resource>> {
        let mut by_storage: BTreeMap<&str, &Arc<Resource>> = BTreeMap::new();
        for resource in self.all().filter(|r| !r.storage.is_empty()) {
            let better = resource.served_as_stored();
            by_storage
                .entry(&resource.storage)
                .and_modify(|e| {
                    if better {
                        *e = resource;
                    }
                })
                .or_insert(resource);
        }
        by_storage.into_values().cloned().collect()
    }

    /// Any version of a custom resource.
    pub fn by_storage(&self, storage: &str) -> Option<Arc<Resource>> {
        self.all().find(|r| r.storage == storage).cloned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Registry;

    fn definition(revision: u64) -> Value {
        json!({
            "metadata": { "name": "rigs.try.example.com", "resourceVersion": revision.to_string() },
            "spec": {
                "group": "try.example.com", "scope": "Namespaced",
                "names": { "plural": "rigs", "kind": "Rig" },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object" } } }],
            },
        })
    }

    #[test]
    fn a_writer_that_was_overtaken_does_not_bring_back_a_deleted_definition() {
        let registry = Registry::new();
        let is_served = || registry.get("try.example.com", "v1", "rigs").is_some();
        registry.put_crd(&definition(3)).unwrap();
        assert!(is_served());
        registry.remove_crd(&definition(7));
        registry.put_crd(&definition(5)).unwrap();
        assert!(!is_served());
        registry.put_crd(&definition(9)).unwrap();
        assert!(is_served());
        registry.remove_crd(&definition(8));
        assert!(is_served());
    }
}
