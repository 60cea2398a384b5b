//! What a definition of a custom kind must say about names, versions, columns and conversion.
//!
//! Owns everything about it but the schemas inside; `crate::schema` judges those. Must never register a kind.

use std::collections::BTreeSet;

use granary_api::names;
use serde_json::Value;

use super::super::field::Field;
use super::columns::{check_columns, check_scale};
use super::conversion::check_conversion;
use crate::error::FieldError;

const APPROVAL: &str = "api-approved.kubernetes.io";

pub fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = Field::root(new);
    let spec = root.at("spec");
    if old.is_none() {
        check_name(&root, errors);
    }
    check_group(&spec.at("group"), errors);
    spec.at("scope").need_one_of(&["Cluster", "Namespaced"], errors);
    check_versions(&spec, errors);
    for name in ["plural", "singular", "kind", "listKind"] {
        spec.at("names").at(name).need(errors);
    }
    check_names(&spec.at("names"), errors);
    check_columns(&spec, errors);
    check_scale(&spec, errors);
    check_conversion(&spec, errors);
    check_names(&root.at("status.acceptedNames"), errors);
    check_stored_versions(&root, errors);
    check_approval(&root, old.map(Field::root).as_ref(), errors);
    let preserve = spec.at("preserveUnknownFields");
    let preserved = old.is_some_and(|old| Field::root(old).at("spec.preserveUnknownFields").is_true());
    if preserve.is_true() && !preserved {
        errors.push(preserve.invalid(
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
             instead",
        ));
    }
    if let Some(old) = old {
        check_update(&spec, &Field::root(old), errors);
    }
}

fn check_name(root: &Field, errors: &mut Vec<FieldError>) {
    let name = root.at("metadata.name");
    let wanted = format!("{}.{}", root.at("spec.names.plural").text(), root.at("spec.group").text());
    // A name that is still to be generated can never match, but that is refused once it is there.
    if name.is_set() && name.text() != wanted {
        errors.push(name.invalid("must be spec.names.plural+\".\"+spec.group"));
    }
}

fn check_group(group: &Field, errors: &mut Vec<FieldError>) {
    if !group.need(errors) {
        return;
    }
    let complaints = names::dns1123_subdomain(group.text());
    if !complaints.is_empty() {
        errors.push(group.invalid(complaints.join(",")));
    } else if !group.text().contains('.') {
        errors.push(group.invalid("should be a domain with at least one dot"));
    }
}

fn check_versions(spec: &Field, errors: &mut Vec<FieldError>) {
    let versions = spec.at("versions");
    let mut seen = BTreeSet::new();
    let mut unique = true;
    let mut stored = 0;
    for version in versions.items() {
        let schema = version.at("schema.openAPIV3Schema");
        if !schema.is_set() {
            errors.push(schema.required(""));
        }
        stored += usize::from(version.at("storage").is_true());
        unique &= seen.insert(version.at("name").text());
        check_word(&version.at("name"), str::to_string, "", errors);
        check_deprecation(&version, errors);
    }
    // The first version was once the only one, in a field of its own, and is still reported there too.
    if let Some(first) = versions.items().next() {
        let name = first.at("name").known_as(format!("{}.version", spec.path));
        if !name.is_empty() {
            check_word(&name, str::to_string, "", errors);
        }
    }
    // Whole versions carry their schemas; their names are enough to see what is wrong.
    let listed: Value = versions.items().map(|version| Value::from(version.at("name").text())).collect();
    let mut refuse =
        |detail: &str| errors.push(FieldError::invalid(versions.path.as_str(), listed.clone(), detail));
    if !unique {
        refuse("must contain unique version names");
    }
    if stored != 1 {
        refuse("must have exactly one version marked as storage version");
    }
}

fn check_deprecation(version: &Field, errors: &mut Vec<FieldError>) {
    let warning = version.at("deprecationWarning");
    if !warning.is_set() {
        return;
    }
    if !version.at("deprecated").is_true() {
        errors.push(warning.invalid("can only be set for deprecated versions"));
        return;
    }
    if warning.text().len() > 256 {
        errors.push(warning.invalid("must be <= 256 characters long"));
    }
    if warning.text().is_empty() {
        errors.push(warning.invalid("must not be an empty string"));
    }
    if let Some((i, _)) = warning.text().char_indices().find(|(_, c)| c.is_control()) {
        let detail = "must only contain printable UTF-8 characters; non-printable character found at index";
        errors.push(warning.invalid(format!("{detail} {i}")));
    }
}

fn check_names(given: &Field, errors: &mut Vec<FieldError>) {
    let mixed = "may have mixed case, but should otherwise match: ";
    for (name, lowered, prefix) in
        [("plural", false, ""), ("singular", false, ""), ("kind", true, mixed), ("listKind", true, mixed)]
    {
        let name = given.at(name);
        if !name.is_empty() {
            let prepare = if lowered { |text: &str| text.to_lowercase() } else { str::to_string };
            check_word(&name, prepare, prefix, errors);
        }
    }
    for name in given.at("shortNames").items().chain(given.at("categories").items()) {
        check_word(&name, str::to_string, "", errors);
    }
    let list_kind = given.at("listKind");
    if !list_kind.is_empty() && list_kind.text() == given.at("kind").text() {
        errors.push(list_kind.invalid("kind and listKind may not be the same"));
    }
}

/// One RFC 1035 label, with all complaints in one refusal.
fn check_word(word: &Field, prepare: fn(&str) -> String, prefix: &str, errors: &mut Vec<FieldError>) {
    let complaints = names::dns1035_label(&prepare(word.text()));
    if !complaints.is_empty() {
        let detail = format!("{prefix}{}", complaints.join(","));
        errors.push(FieldError::invalid(word.path.as_str(), word.text(), detail));
    }
}

/// Versions that objects may still be stored in stay in the list.
fn check_stored_versions(root: &Field, errors: &mut Vec<FieldError>) {
    let stored = root.at("status.storedVersions");
    if stored.count() == 0 {
        errors.push(FieldError::invalid(
            stored.path.as_str(),
            stored.value.clone(),
            "must have at least one stored version",
        ));
        return;
    }
    let versions = root.at("spec.versions");
    for version in versions.items().filter(|version| version.at("storage").is_true()) {
        let name = version.at("name").text();
        if !stored.items().any(|s| s.text() == name) {
            errors.push(stored.invalid(format!("must have the storage version {name}")));
        }
    }
    for version in stored.items() {
        let name = version.text();
        if !versions.items().any(|v| v.at("name").text() == name) {
            errors.push(version.invalid(format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                 {name} from status.storedVersions"
            )));
        }
    }
}

#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn approval(root: &Field) -> Approval {
    match root.at("metadata.annotations").entry(APPROVAL).text() {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text => match text.split_once("://") {
            Some((scheme, rest)) if !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/') => {
                Approval::Approved
            }
            _ => Approval::Invalid,
        },
    }
}

/// Groups of the Kubernetes community are only for kinds that it approved.
fn check_approval(root: &Field, old: Option<&Field>, errors: &mut Vec<FieldError>) {
    let group = root.at("spec.group").text();
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let state = approval(root);
    if !protected || old.is_some_and(|old| approval(old) == state) {
        return;
    }
    let annotation = root.at("metadata.annotations").entry(APPROVAL);
    let must = format!("protected groups must have approval annotation {APPROVAL:?}");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state {
        Approval::Missing => errors.push(annotation.required(&format!("{must}, {see}"))),
        Approval::Invalid => errors
            .push(annotation.invalid(format!(
                "{must} with either a URL or a reason starting with \"unapproved\", {see}"
            ))),
        Approval::Bypassed | Approval::Approved => {}
    }
}

fn check_update(spec: &Field, old: &Field, errors: &mut Vec<FieldError>) {
    let stored = old.at("spec");
    let established = old
        .at("status.conditions")
        .items()
        .any(|c| c.at("type").text() == "Established" && c.at("status").text() == "True");
    let fixed: &[&str] = if established {
        &["scope", "names.kind", "group", "names.plural"]
    } else {
        &["group", "names.plural"]
    };
    for field in fixed {
        spec.at(field).unchanged(&stored.at(field), errors);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::crd;
    use super::super::{CUSTOM_RESOURCE_DEFINITION as CRD, CUSTOM_RESOURCE_DEFINITION};
    use crate::builtin::testing::{defaulted, refusals, update_refusals, with};
    use serde_json::{Value, json};

    const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                         alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
                         'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

    #[test]
    fn a_good_definition_passes() {
        assert_eq!(refusals(&CRD, &crd()), [""; 0]);
    }

    #[test]
    fn names_and_versions_are_checked() {
        for (pointer, value, refusal) in [
            (
                "/metadata/name",
                json!("volumes.example.com"),
                "metadata.name: Invalid value: \"volumes.example.com\": must be spec.names.plural+\".\"+spec.group"
                    .to_string(),
            ),
            (
                "/spec/scope",
                json!("Global"),
                "spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\"".into(),
            ),
            (
                "/spec/names/shortNames",
                json!(["Vol"]),
                format!("spec.names.shortNames[0]: Invalid value: \"Vol\": {LABEL}"),
            ),
            (
                "/spec/names/kind",
                json!("Big_Volume"),
                format!(
                    "spec.names.kind: Invalid value: \"Big_Volume\": may have mixed case, but should otherwise \
                     match: {LABEL}"
                ),
            ),
            (
                "/spec/names/listKind",
                json!("Volume"),
                "spec.names.listKind: Invalid value: \"Volume\": kind and listKind may not be the same".into(),
            ),
            (
                "/spec/versions/0/storage",
                json!(false),
                "spec.versions: Invalid value: [\"v1beta2\"]: must have exactly one version marked as storage version"
                    .into(),
            ),
            (
                "/spec/versions/0/schema",
                Value::Null,
                "spec.versions[0].schema.openAPIV3Schema: Required value".into(),
            ),
            (
                "/spec/versions/0/deprecationWarning",
                json!("old"),
                "spec.versions[0].deprecationWarning: Invalid value: \"old\": can only be set for deprecated versions"
                    .into(),
            ),
            (
                "/spec/preserveUnknownFields",
                json!(true),
                "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
                 x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
                    .into(),
            ),
        ] {
            assert_eq!(refusals(&CRD, &with(crd(), pointer, value)), [refusal]);
        }
        let version = crd()["spec"]["versions"][0].clone();
        let twice = with(crd(), "/spec/versions", json!([version, version]));
        assert_eq!(
            refusals(&CRD, &twice),
            [
                "spec.versions: Invalid value: [\"v1beta2\",\"v1beta2\"]: must contain unique version names",
                "spec.versions: Invalid value: [\"v1beta2\",\"v1beta2\"]: must have exactly one version marked as \
                 storage version",
            ]
        );
        let empty = refusals(&CRD, &json!({ "spec": {} }));
        assert!(empty.contains(&"spec.group: Required value".to_string()), "{empty:?}");
        assert!(empty.contains(&"spec.names.plural: Required value".to_string()), "{empty:?}");
    }

    #[test]
    fn community_groups_need_approval() {
        let mut snapshots = crd();
        snapshots["spec"]["group"] = json!("snapshot.storage.k8s.io");
        snapshots["metadata"]["name"] = json!("volumes.snapshot.storage.k8s.io");
        assert_eq!(
            refusals(&CRD, &snapshots),
            ["metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have \
                 approval annotation \"api-approved.kubernetes.io\", see \
                 https://github.com/kubernetes/enhancements/pull/1111"]
        );
        assert_eq!(update_refusals(&CRD, &snapshots, &snapshots), [""; 0]);
        let annotations =
            json!({ "api-approved.kubernetes.io": "https://github.com/kubernetes-csi/x/pull/814" });
        assert_eq!(refusals(&CRD, &with(snapshots, "/metadata/annotations", annotations)), [""; 0]);
    }

    #[test]
    fn what_stored_objects_hang_on_never_changes() {
        let renamed = with(crd(), "/spec/names/kind", json!("Disk"));
        assert_eq!(update_refusals(&CRD, &crd(), &renamed), [""; 0]);
        let mut established = crd();
        established["status"]["conditions"] = json!([{ "type": "Established", "status": "True" }]);
        let new = with(renamed, "/spec/scope", json!("Cluster"));
        assert_eq!(
            update_refusals(&CRD, &established, &new),
            [
                "spec.scope: Invalid value: \"Cluster\": field is immutable",
                "spec.names.kind: Invalid value: \"Disk\": field is immutable",
            ]
        );
        let gone = with(crd(), "/spec/versions/0/name", json!("v1"));
        assert_eq!(
            update_refusals(&CUSTOM_RESOURCE_DEFINITION, &crd(), &defaulted(&CRD, gone)),
            [
                "status.storedVersions: Invalid value: [\"v1beta2\"]: must have the storage version v1",
                "status.storedVersions[0]: Invalid value: \"v1beta2\": missing from spec.versions; v1beta2 was \
                 previously a storage version, and must remain in spec.versions until a storage migration ensures \
                 no data remains persisted in v1beta2 and removes v1beta2 from status.storedVersions",
            ]
        );
    }
}
