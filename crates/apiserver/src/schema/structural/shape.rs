//! Structurality: every value has a type, and what stands under `allOf` and its like only restricts what the
//! rest of the schema describes.
//!
//! Owns these invariants. Must never look at the values of defaults or rules.

use super::Node;
use crate::error::FieldError;

/// All violations, sorted as Kubernetes sorts them.
pub fn check(node: &Node<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(node, Level::Root, path, &mut errors);
    completeness(node, node, path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

const BRANCHES: [&str; 3] = ["anyOf", "allOf", "oneOf"];

fn invariants(node: &Node<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let at = |name: &str| format!("{path}.{name}");
    let kind = node.text("type");
    if kind == "array" && node.json("items").is_none() {
        errors.push(FieldError::required(at("items"), "must be specified"));
    }
    if let Some(items) = node.child("items") {
        invariants(&items, Level::Item, &at("items"), errors);
    }
    for (name, field) in node.properties() {
        invariants(&field, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    if let Some(values) = node.json("additionalProperties") {
        if level == Level::Root {
            errors.push(FieldError::forbidden(at("additionalProperties"), "must not be used at the root"));
        }
        if let Some(values) = Node::of(values) {
            invariants(&values, Level::Field, &at("additionalProperties"), errors);
        }
    }
    let int_or_string = node.flag("x-kubernetes-int-or-string");
    for mark in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if int_or_string && node.flag(mark) {
            errors.push(FieldError::invalid(
                at(mark),
                true,
                "must be false if x-kubernetes-int-or-string is true",
            ));
        }
    }
    values(node, is_int_or_string(node.list("anyOf")), level, path, errors);
    type_keyword(node, level, path, errors);
    resource_fields(node, level, path, errors);
}

fn type_keyword(node: &Node<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = node.text("type");
    let at = format!("{path}.type");
    let embedded = node.flag("x-kubernetes-embedded-resource");
    let free = node.flag("x-kubernetes-int-or-string") || node.flag("x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        let error =
            if kind.is_empty() { FieldError::required(at, why) } else { FieldError::invalid(at, kind, why) };
        errors.push(error);
    } else if kind.is_empty() && !free {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at, why));
    } else if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at, kind, "must be object at the root"));
    }
}

/// `apiVersion`, `kind` and `metadata` belong to Kubernetes.
fn resource_fields(node: &Node<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let embedded = node.flag("x-kubernetes-embedded-resource");
    let is_resource = level == Level::Root || embedded;
    if embedded && node.json("additionalProperties").is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), why));
    }
    for name in ["kind", "apiVersion"] {
        if let Some(field) = node.property(name).filter(|field| is_resource && field.text("type") != "string")
        {
            let at = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(at, field.text("type"), "must be string"));
        }
    }
    if let Some(metadata) = node.property("metadata") {
        let at = format!("{path}.properties[metadata]");
        if is_resource && metadata.text("type") != "object" {
            errors.push(FieldError::invalid(format!("{at}.type"), metadata.text("type"), "must be object"));
        }
        let only_names = metadata.properties().all(|(name, _)| matches!(name, "name" | "generateName"));
        let only_known =
            metadata.0.keys().all(|key| matches!(key.as_str(), "type" | "properties" | "default"));
        if level == Level::Root && !(only_names && only_known) {
            let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(FieldError::forbidden(at, why));
        }
    }
    if embedded && !node.flag("x-kubernetes-preserve-unknown-fields") && !node.has("properties") {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), why));
    }
}

/// `[{type: integer}, {type: string}]`, the one place where branches may have types.
fn is_int_or_string(branches: &[serde_json::Value]) -> bool {
    let only_type = |json: &serde_json::Value, kind: &str| {
        json.as_object().is_some_and(|o| o.len() == 1 && o.get("type").and_then(|t| t.as_str()) == Some(kind))
    };
    matches!(branches, [first, second] if only_type(first, "integer") && only_type(second, "string"))
}

/// The constraints on values at one node, branches included.
fn values(node: &Node<'_>, skip_any_of: bool, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    for word in BRANCHES {
        if word == "anyOf" && skip_any_of {
            continue;
        }
        for (index, branch) in node.list(word).iter().filter_map(Node::of).enumerate() {
            let skip = word == "allOf" && index == 0 && is_int_or_string(branch.list("anyOf"));
            nested(&branch, skip, level, &format!("{path}.{word}[{index}]"), errors);
        }
    }
    if let Some(not) = node.child("not") {
        nested(&not, false, level, &format!("{path}.not"), errors);
    }
    let pattern = node.text("pattern");
    if !pattern.is_empty()
        && let Err(why) = super::super::Pattern::new(pattern).regex()
    {
        let why = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(format!("{path}.pattern"), pattern, why));
    }
}

fn nested(node: &Node<'_>, skip_any_of: bool, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    values(node, skip_any_of, level, path, errors);
    if let Some(items) = node.child("items") {
        nested(&items, false, level, &format!("{path}.items"), errors);
    }
    for (name, field) in node.properties() {
        nested(&field, false, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    let mut forbid = |name: &str, state: &str| {
        if node.has(name) {
            errors.push(FieldError::forbidden(
                format!("{path}.{name}"),
                format!("must be {state} to be structural"),
            ));
        }
    };
    for name in ["type", "title", "description", "x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        forbid(name, "empty");
    }
    for name in ["additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        forbid(name, "undefined");
    }
    for name in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        forbid(name, "false");
    }
    if node.property("metadata").is_some() {
        let why = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(format!("{path}.properties[metadata]"), why));
    }
}

/// What a branch restricts must be described outside of branches. Kubernetes asks this of the branches at the
/// root only.
fn completeness(
    branches: &Node<'_>,
    described: &Node<'_>,
    path: &str,
    branch_path: &str,
    errors: &mut Vec<FieldError>,
) {
    for word in BRANCHES {
        for (index, branch) in branches.list(word).iter().filter_map(Node::of).enumerate() {
            restriction(&branch, described, path, &format!("{branch_path}.{word}[{index}]"), errors);
        }
    }
    if let Some(not) = branches.child("not") {
        restriction(&not, described, path, &format!("{branch_path}.not"), errors);
    }
}

fn restriction(
    branch: &Node<'_>,
    described: &Node<'_>,
    path: &str,
    branch_path: &str,
    errors: &mut Vec<FieldError>,
) {
    completeness(branch, described, path, branch_path, errors);
    let missing = |at: String, branch_at: &str| {
        FieldError::required(at, format!("because it is defined in {branch_at}"))
    };
    if let Some(items) = branch.child("items") {
        let (at, branch_at) = (format!("{path}.items"), format!("{branch_path}.items"));
        match described.child("items") {
            Some(described) => restriction(&items, &described, &at, &branch_at, errors),
            None => errors.push(missing(at, &branch_at)),
        }
    }
    for (name, field) in branch.properties() {
        let (at, branch_at) =
            (format!("{path}.properties[{name}]"), format!("{branch_path}.properties[{name}]"));
        match described.property(name) {
            Some(described) => restriction(&field, &described, &at, &branch_at, errors),
            None => errors.push(missing(at, &branch_at)),
        }
    }
}
