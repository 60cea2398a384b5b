//! From a CustomResourceDefinition to the resources it describes, and the state it reports about itself.
//!
//! Must never validate the definition; admission has done that.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::builtins::unwritten;
use super::{Custom, CustomColumn, Resource, Scale, Source, Table};
use crate::error::FieldError;
use crate::schema;

/// The names a definition claims in its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrdNames {
    pub group: String,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
}

impl CrdNames {
    pub fn of(crd: &Value) -> Self {
        let names = &crd["spec"]["names"];
        let text = |key: &str| names[key].as_str().unwrap_or_default().to_string();
        let texts = |key: &str| {
            let list = names[key].as_array().map(Vec::as_slice).unwrap_or_default();
            list.iter().filter_map(Value::as_str).map(str::to_string).collect()
        };
        let kind = text("kind");
        let or = |given: String, other: String| if given.is_empty() { other } else { given };
        Self {
            group: crd["spec"]["group"].as_str().unwrap_or_default().into(),
            plural: text("plural"),
            singular: or(text("singular"), kind.to_lowercase()),
            list_kind: or(text("listKind"), format!("{kind}List")),
            kind,
            short_names: texts("shortNames"),
            categories: texts("categories"),
        }
    }

    pub fn storage(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

/// The resources of all served versions.
pub(super) fn resources(crd: &Value) -> Result<Vec<Resource>, Vec<FieldError>> {
    let versions = crd["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stored = versions.iter().find(|v| v["storage"] == true).and_then(|v| v["name"].as_str());
    let stored = stored.unwrap_or_default().to_string();
    let kept = crd.pointer("/status/storedVersions").and_then(Value::as_array).map_or(1, Vec::len);
    let served = versions.iter().filter(|v| v["served"] == true);
    // Objects that are older than a default in the schema are shown with it.
    let changed = crd["metadata"]["generation"].as_i64().is_some_and(|g| g > 1);
    let as_stored = |v: &Value| versions.len() == 1 && kept <= 1 && !(changed && has_defaults(&v["schema"]));
    served.map(|version| resource(crd, version, &stored, as_stored(version))).collect()
}

/// May also find a field of that name, which costs time and nothing else.
fn has_defaults(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key("default") || members.values().any(has_defaults),
        Value::Array(list) => list.iter().any(has_defaults),
        _ => false,
    }
}

fn resource(
    crd: &Value,
    version: &Value,
    stored: &str,
    as_stored: bool,
) -> Result<Resource, Vec<FieldError>> {
    let names = CrdNames::of(crd);
    let open_api = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or(Value::Null);
    let schema = Arc::new(schema::from_crd(&open_api)?);
    let subresources = &version["subresources"];
    let has_status = subresources.get("status").is_some();
    let name = version["name"].as_str().unwrap_or_default().to_string();
    Ok(Resource {
        version: name,
        storage: names.storage(),
        group: names.group,
        kind: names.kind,
        list_kind: names.list_kind,
        plural: names.plural,
        singular: names.singular,
        short_names: names.short_names,
        categories: names.categories,
        namespaced: crd["spec"]["scope"] == "Namespaced",
        stored_version: stored.into(),
        schema: schema.clone(),
        has_status,
        has_generation: true,
        scale: scale(&subresources["scale"]),
        source: Source::Custom(Custom {
            columns: columns(&version["additionalPrinterColumns"]),
            selectable: selectable(&version["selectableFields"]),
            deprecation: deprecation(crd, version),
            as_stored,
            open_api: Arc::new(open_api),
        }),
        unwritten: unwritten(has_status),
    })
}

fn scale(paths: &Value) -> Option<Scale> {
    let pointer = |key: &str| paths[key].as_str().map(|path| path.replace('.', "/"));
    Some(Scale {
        spec_replicas: pointer("specReplicasPath")?,
        status_replicas: pointer("statusReplicasPath")?,
        label_selector: pointer("labelSelectorPath"),
    })
}

fn columns(list: &Value) -> Vec<CustomColumn> {
    let text = |column: &Value, key: &str| column[key].as_str().unwrap_or_default().to_string();
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .map(|column| CustomColumn {
            name: text(column, "name"),
            kind: text(column, "type"),
            format: text(column, "format"),
            description: text(column, "description"),
            priority: column["priority"].as_i64().unwrap_or(0),
            path: text(column, "jsonPath"),
        })
        .collect()
}

fn selectable(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(|field| field["jsonPath"].as_str())
        .map(|path| path.trim_start_matches('.').to_string())
        .collect()
}

fn deprecation(crd: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    let text = version["deprecationWarning"].as_str().map(str::to_string);
    Some(text.unwrap_or_else(|| {
        let names = CrdNames::of(crd);
        let name = version["name"].as_str().unwrap_or_default();
        format!("{}/{name} {} is deprecated", names.group, names.kind)
    }))
}

/// A name that another definition of the group holds already, with the reason for `NamesAccepted`.
pub fn name_conflicts(table: &Table, crd: &Value) -> Option<(&'static str, String)> {
    let names = CrdNames::of(crd);
    let storage = names.storage();
    let versions = table.versions(&names.group);
    let others: Vec<_> = versions
        .iter()
        .flat_map(|version| table.resources(&names.group, version))
        .filter(|r| r.storage != storage)
        .collect();
    let taken = |name: &str| {
        others
            .iter()
            .any(|r| r.plural == name || r.singular == name || r.short_names.iter().any(|s| s == name))
    };
    let kind_taken = |kind: &str| others.iter().any(|r| r.kind == kind || r.list_kind == kind);
    let short = names.short_names.iter().find(|s| taken(s));
    let checks = [
        ("PluralConflict", Some(&names.plural).filter(|n| taken(n))),
        ("SingularConflict", Some(&names.singular).filter(|n| taken(n))),
        ("ShortNamesConflict", short),
        ("KindConflict", Some(&names.kind).filter(|k| kind_taken(k))),
        ("ListKindConflict", Some(&names.list_kind).filter(|k| kind_taken(k))),
    ];
    // Kubernetes reports the last conflict it meets.
    checks
        .into_iter()
        .rev()
        .find_map(|(reason, name)| name.map(|n| (reason, format!("{n:?} is already in use"))))
}

/// The conditions a definition gets when it is written; transition times move only with the status.
pub fn accepted_conditions(crd: &Value, conflict: Option<&(&'static str, String)>, now: Timestamp) -> Value {
    let accepted = match conflict {
        None => ("True", "NoConflicts", "no conflicts found".to_string()),
        Some((reason, message)) => ("False", *reason, message.clone()),
    };
    let established = match conflict {
        None => ("True", "InitialNamesAccepted", "the initial names have been accepted".to_string()),
        Some(_) => ("False", "NotAccepted", "not all names are accepted".to_string()),
    };
    let mut conditions: Vec<Value> = crd
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .map(|list| {
            let ours = |c: &&Value| c["type"] != "NamesAccepted" && c["type"] != "Established";
            list.iter().filter(ours).cloned().collect()
        })
        .unwrap_or_default();
    for (kind, (status, reason, message)) in [("NamesAccepted", accepted), ("Established", established)] {
        let before = crd
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .and_then(|list| list.iter().find(|c| c["type"] == kind && c["status"] == status))
            .cloned();
        conditions.push(before.unwrap_or_else(|| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": crate::meta::time_text(now),
            })
        }));
    }
    Value::Array(conditions)
}

/// Orders versions as Kubernetes prefers them: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then anything else.
pub(super) fn version_rank(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let stage = &rest[digits..];
        for (name, level) in [("beta", 2), ("alpha", 1)] {
            if let Some(minor) = stage.strip_prefix(name) {
                return Some((level, major, minor.parse().ok()?));
            }
        }
        stage.is_empty().then_some((3, major, 0))
    };
    let (level, major, minor) = parse().unwrap_or((0, 0, 0));
    let tie = if level == 0 { version.to_string() } else { String::new() };
    (level, major, minor, std::cmp::Reverse(tie))
}

#[cfg(test)]
mod tests {
    use super::version_rank;

    #[test]
    fn stable_versions_come_before_beta_and_alpha() {
        let mut versions = vec!["foo", "v1alpha1", "v10", "v1beta2", "v1", "v2", "v1beta1", "bar"];
        versions.sort_by_key(|v| std::cmp::Reverse(version_rank(v)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]);
    }
}
