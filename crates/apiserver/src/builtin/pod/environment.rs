//! Environment variables of a container, and what they may be taken from.
//!
//! Owns the rules for names and references. Must never read what is referred to.

use granary_api::names;

use super::super::field::Field;
use crate::error::FieldError;

const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// All fields that could be meant; not every place takes every one.
const KNOWN_FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
const NOT_TWO: &str = "may not have more than one field specified at a time";

pub fn check(container: &Field, errors: &mut Vec<FieldError>) {
    for variable in container.at("env").items() {
        variable.at("name").need_name(variable_name, errors);
        let source = variable.at("valueFrom");
        if source.is_set() {
            check_source(&source, variable.at("value").is_empty(), errors);
        }
    }
    let all = container.at("envFrom");
    for source in all.items() {
        source.at("prefix").follow_if_set(variable_name, errors);
        let given: Vec<Field> =
            ["configMapRef", "secretRef"].iter().map(|name| source.at(name)).filter(Field::is_set).collect();
        for reference in &given {
            reference.at("name").need_name(names::dns1123_subdomain, errors);
        }
        let mut refuse = |detail: &str| errors.push(FieldError::invalid(all.path.as_str(), "", detail));
        match given.len() {
            0 => refuse("must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => refuse(NOT_TWO),
        }
    }
}

/// Anything printable but the equals sign.
fn variable_name(name: &str) -> Vec<String> {
    if name.chars().all(|c| (' '..='~').contains(&c) && c != '=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .into(),
    ]
}

fn check_source(source: &Field, no_value: bool, errors: &mut Vec<FieldError>) {
    let given = SOURCES.iter().filter(|name| source.at(name).is_set()).count();
    check_field(&source.at("fieldRef"), &VARIABLE_FIELDS, errors);
    check_resource(&source.at("resourceFieldRef"), errors);
    for reference in ["configMapKeyRef", "secretKeyRef"].iter().map(|name| source.at(name)) {
        if reference.is_set() {
            reference.at("name").follow(names::dns1123_subdomain, errors);
            reference.at("key").need_name(names::config_key, errors);
        }
    }
    let file = source.at("fileKeyRef");
    if file.is_set() {
        file.at("key").need_name(variable_name, errors);
        file.at("volumeName").need_name(names::dns1123_label, errors);
        if file.at("path").need(errors) {
            file.at("path").no_backsteps(errors);
        }
    }
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(source.path.as_str(), "", detail));
    match given {
        0 => refuse(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        _ if !no_value => refuse("may not be specified when `value` is not empty"),
        1 => {}
        _ => refuse(NOT_TWO),
    }
}

/// A reference to a field of the pod itself; labels and annotations may be named one by one.
pub fn check_field(reference: &Field, allowed: &[&str], errors: &mut Vec<FieldError>) {
    if !reference.is_set() || !reference.at("apiVersion").need(errors) {
        return;
    }
    let path = reference.at("fieldPath");
    if !path.need(errors) {
        return;
    }
    let subscript = path.text().strip_suffix("']").and_then(|text| text.split_once("['"));
    match subscript {
        None if !KNOWN_FIELDS.contains(&path.text()) => {
            let detail = format!("error converting fieldPath: field label not supported: {}", path.text());
            errors.push(path.invalid(detail));
        }
        None => path.one_of(allowed, errors),
        Some(("metadata.annotations" | "metadata.labels", key)) => {
            for complaint in names::annotation_key(key) {
                errors.push(FieldError::invalid(reference.path.as_str(), key, complaint));
            }
        }
        Some(_) => {
            let detail = format!(
                "error converting fieldPath: field label does not support subscript: {}",
                path.text()
            );
            errors.push(path.invalid(detail));
        }
    }
}

/// A reference to a request or limit of a container.
pub fn check_resource(reference: &Field, errors: &mut Vec<FieldError>) {
    let resource = reference.at("resource");
    if !reference.is_set() || !resource.need(errors) {
        return;
    }
    let huge = ["limits.hugepages-", "requests.hugepages-"].iter().any(|p| resource.text().starts_with(p));
    if !huge {
        resource.one_of(&RESOURCES, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use crate::builtin::testing::{defaulted, refusals, with};
    use serde_json::{Value, json};

    fn with_variable(variable: &Value) -> Vec<String> {
        refusals(&POD, &defaulted(&POD, with(pod(), "/spec/containers/0/env", json!([variable]))))
    }

    #[test]
    fn a_variable_has_a_name_and_one_source() {
        let label = json!({ "fieldRef": { "fieldPath": "metadata.labels['app']" } });
        assert_eq!(with_variable(&json!({ "name": "APP", "valueFrom": label })), [""; 0]);
        assert_eq!(
            with_variable(&json!({ "name": "a=b" })),
            [
                "spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name must \
                 consist only of printable ASCII characters other than '='"
            ]
        );
        assert_eq!(
            with_variable(&json!({ "name": "A", "valueFrom": {} })),
            ["spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, \
                 `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"]
        );
        let both = json!({ "secretKeyRef": { "name": "s" }, "configMapKeyRef": { "name": "c", "key": "k" } });
        assert_eq!(
            with_variable(&json!({ "name": "A", "valueFrom": both })),
            [
                "spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value",
                "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not have more than one field specified \
                 at a time",
            ]
        );
        let unknown = json!({ "fieldRef": { "fieldPath": "spec.volumes" } });
        assert_eq!(
            with_variable(&json!({ "name": "A", "valueFrom": unknown })),
            [
                "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.volumes\": error \
                 converting fieldPath: field label not supported: spec.volumes"
            ]
        );
        let odd = json!({ "fieldRef": { "fieldPath": "status.phase" } });
        assert!(with_variable(&json!({ "name": "A", "valueFrom": odd }))[0].starts_with(
            "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": \
                 supported values: \"metadata.name\""
        ));
    }
}
