//! Reading the API's description of itself: the aggregated documents of newer servers, or group by
//! group from older ones. The result is the list of kinds; finding one in it is `kinds`' work.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::{CliError, Result},
    kinds::{Kind, Kinds},
    request::Address,
    session::Session,
};

/// Asks for all groups in one document; servers without it send the list of groups.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// Asks the API what it serves, in the fewest requests it understands.
pub async fn discover(session: &Session) -> Result<Kinds> {
    let core = Address::path("/api").get_as(AGGREGATED)?;
    let groups = Address::path("/apis").get_as(AGGREGATED)?;
    let (core, groups) = futures::try_join!(session.send(core), session.send(groups))?;
    let legacy = groups.body.clone();
    match (from_aggregated(core.body)?, from_aggregated(groups.body)?) {
        (Some(mut kinds), Some(others)) => {
            kinds.extend(others);
            Ok(Kinds::new(kinds))
        }
        _ => one_by_one(session, &legacy).await,
    }
}

/// The older way, one request for each group and version.
async fn one_by_one(session: &Session, group_list: &Value) -> Result<Kinds> {
    let mut versions = vec!["v1".to_owned()];
    for group in group_list["groups"].as_array().into_iter().flatten() {
        let preferred = group["preferredVersion"]["groupVersion"].as_str();
        let others = group["versions"].as_array().into_iter().flatten();
        let others = others.filter_map(|version| version["groupVersion"].as_str());
        versions.extend(preferred.map(str::to_owned));
        versions.extend(others.filter(|version| Some(*version) != preferred).map(str::to_owned));
    }
    let lists = versions.iter().map(|version| async move {
        let root = if version.contains('/') { "/apis" } else { "/api" };
        match session.get(&Address::path(&format!("{root}/{version}"))).await {
            Ok(list) => from_resource_list(version, list),
            // One extension server that is down must not take the rest with it.
            Err(CliError::Api { status, .. }) if status.code >= 500 || status.code == 404 => Ok(vec![]),
            Err(error) => Err(error),
        }
    });
    let lists = futures::future::try_join_all(lists).await?;
    Ok(Kinds::new(lists.into_iter().flatten().collect()))
}

/// Reads one aggregated discovery document (`/api` or `/apis`); `None` if it is not one.
fn from_aggregated(document: Value) -> Result<Option<Vec<Kind>>> {
    #[derive(Deserialize)]
    struct Document {
        items: Vec<Group>,
    }
    #[derive(Deserialize)]
    struct Group {
        #[serde(default)]
        metadata: Named,
        #[serde(default)]
        versions: Vec<Version>,
    }
    #[derive(Deserialize, Default)]
    struct Named {
        #[serde(default)]
        name: String,
    }
    #[derive(Deserialize)]
    struct Version {
        version: String,
        #[serde(default)]
        resources: Vec<Resource>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Resource {
        resource: String,
        #[serde(default)]
        response_kind: Option<ResponseKind>,
        #[serde(default)]
        scope: String,
        #[serde(default)]
        singular_resource: String,
        #[serde(default)]
        verbs: Vec<String>,
        #[serde(default)]
        short_names: Vec<String>,
        #[serde(default)]
        categories: Vec<String>,
    }
    #[derive(Deserialize)]
    struct ResponseKind {
        kind: String,
    }

    if document["kind"] != "APIGroupDiscoveryList" {
        return Ok(None);
    }
    let document: Document = serde_json::from_value(document).map_err(|error| unreadable(&error))?;
    let mut kinds = Vec::new();
    for group in document.items {
        for version in group.versions {
            for resource in version.resources {
                // A resource that only carries subresources has no kind of its own.
                let Some(response) = resource.response_kind.filter(|response| !response.kind.is_empty())
                else {
                    continue;
                };
                kinds.push(Kind {
                    group: group.metadata.name.clone(),
                    version: version.version.clone(),
                    kind: response.kind,
                    plural: resource.resource,
                    singular: resource.singular_resource,
                    short_names: resource.short_names,
                    categories: resource.categories,
                    verbs: resource.verbs,
                    namespaced: resource.scope == "Namespaced",
                });
            }
        }
    }
    Ok(Some(kinds))
}

fn unreadable(error: &serde_json::Error) -> CliError {
    CliError::Answer { reason: format!("discovery: {error}") }
}

/// Reads one `APIResourceList`, the older form of discovery.
fn from_resource_list(group_version: &str, document: Value) -> Result<Vec<Kind>> {
    #[derive(Deserialize)]
    struct Document {
        #[serde(default)]
        resources: Vec<Resource>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Resource {
        name: String,
        #[serde(default)]
        singular_name: String,
        namespaced: bool,
        kind: String,
        #[serde(default)]
        verbs: Vec<String>,
        #[serde(default)]
        short_names: Vec<String>,
        #[serde(default)]
        categories: Vec<String>,
    }

    let document: Document = serde_json::from_value(document).map_err(|error| unreadable(&error))?;
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let resources = document.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    Ok(resources
        .map(|resource| Kind {
            group: group.into(),
            version: version.into(),
            kind: resource.kind,
            plural: resource.name,
            singular: resource.singular_name,
            short_names: resource.short_names,
            categories: resource.categories,
            verbs: resource.verbs,
            namespaced: resource.namespaced,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::testing::{scene, scripted};
    use serde_json::json;

    #[test]
    fn both_forms_of_discovery_say_the_same() {
        let aggregated = json!({"kind": "APIGroupDiscoveryList", "items": [{
            "metadata": {"name": "longhorn.io"},
            "versions": [{"version": "v1beta2", "resources": [
                {"resource": "volumes", "responseKind": {"group": "", "version": "", "kind": "Volume"},
                 "scope": "Namespaced", "singularResource": "volume", "verbs": ["get", "list"],
                 "shortNames": ["lhv"], "subresources": [{"subresource": "status", "verbs": ["get"]}]},
                {"resource": "hollow", "scope": "Namespaced", "singularResource": "", "verbs": []},
            ]}],
        }]});
        let legacy = json!({"kind": "APIResourceList", "groupVersion": "longhorn.io/v1beta2", "resources": [
            {"name": "volumes", "singularName": "volume", "namespaced": true, "kind": "Volume",
             "verbs": ["get", "list"], "shortNames": ["lhv"]},
            {"name": "volumes/status", "singularName": "", "namespaced": true, "kind": "Volume", "verbs": ["get"]},
        ]});
        let from_new = from_aggregated(aggregated).unwrap().unwrap();
        assert_eq!(from_new, from_resource_list("longhorn.io/v1beta2", legacy).unwrap());
        assert_eq!(from_new.len(), 1);
        assert_eq!(from_aggregated(json!({"kind": "APIGroupList", "groups": []})).unwrap(), None);
    }

    #[tokio::test]
    async fn a_server_with_only_the_old_discovery_is_understood() {
        let groups = json!({"kind": "APIGroupList", "groups": [
            {"name": "a.io", "versions": [{"groupVersion": "a.io/v1"}, {"groupVersion": "a.io/v2"}],
             "preferredVersion": {"groupVersion": "a.io/v2"}},
            {"name": "down.io", "versions": [{"groupVersion": "down.io/v1"}]},
        ]});
        let list = |name: &str| {
            json!({"kind": "APIResourceList", "resources": [
                {"name": name, "singularName": "", "namespaced": true, "kind": "X", "verbs": ["list"]}]})
        };
        let session = scripted(vec![
            scene("/api", 200, json!({"kind": "APIVersions", "versions": ["v1"]}).to_string()),
            scene("/apis", 200, groups.to_string()),
            scene("/api/v1", 200, list("pods").to_string()),
            scene("/apis/a.io/v2", 200, list("things").to_string()),
            scene("/apis/a.io/v1", 200, list("things").to_string()),
            scene("/apis/down.io/v1", 503, "no endpoints"),
        ]);
        let kinds = session.kinds().await.unwrap();
        let found: Vec<String> =
            kinds.preferred().map(|kind| format!("{} {}", kind.full_plural(), kind.version)).collect();
        assert_eq!(
            found,
            ["pods v1", "things.a.io v2"],
            "the preferred version, and no failure for one group"
        );
    }
}
