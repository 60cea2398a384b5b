//! Discovery: which groups, versions and resources there are, in the old form and the aggregated one.

use serde_json::{Value, json};

use crate::http::media::apiversion;
use crate::registry::{Resource, Table};

const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// `/api`.
pub fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }],
    })
}

/// `/apis`.
pub fn groups(table: &Table) -> Value {
    let groups: Vec<Value> = table
        .groups()
        .into_iter()
        .filter(|g| !g.is_empty())
        .map(|group| group_versions(table, group))
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/<group>`.
pub fn group(table: &Table, group: &str) -> Option<Value> {
    if group.is_empty() || table.versions(group).is_empty() {
        return None;
    }
    let mut found = group_versions(table, group);
    found["kind"] = "APIGroup".into();
    found["apiVersion"] = "v1".into();
    Some(found)
}

fn group_versions(table: &Table, group: &str) -> Value {
    let versions: Vec<Value> = table
        .versions(group)
        .iter()
        .map(|version| json!({ "groupVersion": apiversion(group, version), "version": version }))
        .collect();
    json!({ "name": group, "preferredVersion": versions.first(), "versions": versions })
}

/// `/api/v1` and `/apis/<group>/<version>`.
pub fn resources(table: &Table, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for resource in table.resources(group, version) {
        list.push(entry(resource));
        list.extend(subresources(resource));
    }
    if list.is_empty() {
        return None;
    }
    let mut answer =
        json!({ "kind": "APIResourceList", "groupVersion": apiversion(group, version), "resources": list });
    if !group.is_empty() {
        answer["apiVersion"] = "v1".into();
    }
    Some(answer)
}

fn verbs(resource: &Resource) -> &'static [&'static str] {
    if resource.storage.is_empty() {
        &["create"]
    } else if resource.is_custom() {
        &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    } else if resource.deletes_collections() {
        ALL_VERBS
    } else {
        &["create", "delete", "get", "list", "patch", "update", "watch"]
    }
}

fn entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if !resource.storage.is_empty() {
        entry["storageVersionHash"] = storage_hash(resource).into();
    }
    entry
}

/// Changes when objects are stored in another form; opaque to clients.
fn storage_hash(resource: &Resource) -> String {
    use base64::Engine;
    use sha2::{Digest, Sha256};
    let id = format!("{}/{}/{}", resource.group, resource.stored_version, resource.kind);
    base64::engine::general_purpose::STANDARD.encode(&Sha256::digest(id.as_bytes())[..8])
}

/// Name, kind with group and version where it differs, verbs.
fn subresource_parts(resource: &Resource) -> Vec<(&'static str, Value)> {
    let mut parts = Vec::new();
    if resource.is_core("namespaces") {
        parts.push(("finalize", json!({ "kind": resource.kind, "verbs": ["update"] })));
    }
    if resource.scale.is_some() {
        parts.push((
            "scale",
            json!({
                "group": "autoscaling", "version": "v1", "kind": "Scale",
                "verbs": ["get", "patch", "update"],
            }),
        ));
    }
    if resource.has_status {
        parts.push(("status", json!({ "kind": resource.kind, "verbs": ["get", "patch", "update"] })));
    }
    parts
}

fn subresources(resource: &Resource) -> Vec<Value> {
    subresource_parts(resource)
        .into_iter()
        .map(|(name, mut entry)| {
            entry["name"] = format!("{}/{name}", resource.plural).into();
            entry["singularName"] = "".into();
            entry["namespaced"] = resource.namespaced.into();
            entry
        })
        .collect()
}

/// The aggregated form of `/api` or `/apis`.
pub fn aggregated(table: &Table, core: bool) -> Value {
    let items: Vec<Value> = table
        .groups()
        .into_iter()
        .filter(|group| group.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = table
                .versions(group)
                .iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        table.resources(group, version).map(|r| aggregated_entry(r)).collect();
                    json!({ "version": version, "resources": resources, "freshness": "Current" })
                })
                .collect();
            let mut item = json!({ "metadata": { "creationTimestamp": null }, "versions": versions });
            if !group.is_empty() {
                item["metadata"]["name"] = group.into();
            }
            item
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_entry(resource: &Resource) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({ "group": group, "version": version, "kind": kind });
    let own = kind(&resource.group, &resource.version, &resource.kind);
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": own,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let parts: Vec<Value> = subresource_parts(resource)
        .into_iter()
        .map(|(name, part)| {
            let response = if name == "scale" { kind("autoscaling", "v1", "Scale") } else { own.clone() };
            json!({ "subresource": name, "responseKind": response, "verbs": part["verbs"] })
        })
        .collect();
    if !parts.is_empty() {
        entry["subresources"] = parts.into();
    }
    entry
}
