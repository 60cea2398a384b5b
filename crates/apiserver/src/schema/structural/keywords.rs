//! Keywords one by one: those that are not supported, those that need another beside them, and rules.
//!
//! Owns these checks. Must never compile a rule of a schema that is not structural: it would only confuse.

use serde_json::Value;

use super::Node;
use crate::error::FieldError;
use crate::schema::{Schema, cel};

/// All violations. `judge_rules`: the shape is right, so rules can be compiled.
pub fn check(node: &Node<'_>, parsed: &Schema, path: &str, judge_rules: bool) -> Vec<FieldError> {
    let mut walk = Walk { errors: Vec::new(), faults: Vec::new(), judge_rules };
    walk.node(node, Some(parsed), path, &Place { root: true, ..Place::default() });
    walk.errors.extend(walk.faults);
    walk.errors
}

/// What is true of a node because of where it stands.
#[derive(Clone, Default)]
struct Place {
    root: bool,
    inside_metadata: bool,
    /// Why there may be no default here.
    no_default: Option<String>,
    /// The list around here whose elements cannot be told apart in an update.
    no_old_self: Option<String>,
}

struct Walk {
    errors: Vec<FieldError>,
    /// Of rules; they come after all else.
    faults: Vec<FieldError>,
    judge_rules: bool,
}

impl Walk {
    /// `parsed` is the same node with types, where rules can stand; branches have none.
    fn node(&mut self, node: &Node<'_>, parsed: Option<&Schema>, path: &str, place: &Place) {
        let before = self.errors.len();
        self.supported(node, path, place);
        self.children(node, parsed, path, place);
        self.marks(node, path);
        self.map_list(node, path);
        self.rules(node, path);
        let clean = self.errors.len() == before && self.judge_rules;
        if let Some(parsed) = parsed.filter(|_| clean) {
            self.compile(node, parsed, path, place);
        }
    }

    fn forbid(&mut self, path: &str, name: &str, why: impl Into<String>) {
        self.errors.push(FieldError::forbidden(format!("{path}.{name}"), why));
    }

    fn supported(&mut self, node: &Node<'_>, path: &str, place: &Place) {
        let kind = node.text("type");
        const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(format!("{path}.type"), kind, TYPES));
        }
        if let (Some(_), Some(why)) = (node.json("default"), &place.no_default) {
            self.forbid(path, "default", format!("must not be set {why}"));
        }
        for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            if node.has(name) {
                self.forbid(path, name, format!("{name} is not supported"));
            }
        }
        if kind == "null" {
            self.forbid(path, "type", "type cannot be set to null, use nullable as an alternative");
        }
        if node.json("items").is_some_and(Value::is_array) {
            self.forbid(path, "items", "items must be a schema object and not an array");
        }
        if place.inside_metadata && node.flag("x-kubernetes-embedded-resource") {
            self.forbid(path, "x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
        if node.flag("uniqueItems") {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(path, "uniqueItems", why);
        }
        if node.has("properties")
            && node.json("additionalProperties").is_some_and(|v| v != &Value::Bool(true))
        {
            self.forbid(
                path,
                "additionalProperties",
                "additionalProperties and properties are mutual exclusive",
            );
        }
    }

    fn children(&mut self, node: &Node<'_>, parsed: Option<&Schema>, path: &str, place: &Place) {
        let root = place.root;
        let inner = Place { root: false, ..place.clone() };
        if let Some(values) = node.child("additionalProperties") {
            let mut place = inner.clone();
            if place.inside_metadata {
                place.no_default = Some("inside additionalProperties applying to object metadata".into());
            }
            let parsed = parsed.and_then(|p| p.additional.as_deref());
            self.node(&values, parsed, &format!("{path}.additionalProperties"), &place);
        }
        let resource = root || node.flag("x-kubernetes-embedded-resource");
        for (name, field) in node.properties() {
            let mut place = inner.clone();
            if resource && matches!(name, "apiVersion" | "kind" | "metadata") {
                place.inside_metadata = true;
                if root {
                    place.no_default = Some(format!("in top-level {name}"));
                }
            }
            let parsed = parsed.and_then(|p| p.properties.get(name)).map(AsRef::as_ref);
            self.node(&field, parsed, &format!("{path}.properties[{name}]"), &place);
        }
        if let Some(not) = node.child("not") {
            self.node(&not, None, &format!("{path}.not"), &inner);
        }
        for word in ["allOf", "oneOf", "anyOf"] {
            for (index, branch) in node.list(word).iter().filter_map(Node::of).enumerate() {
                self.node(&branch, None, &format!("{path}.{word}[{index}]"), &inner);
            }
        }
        if let Some(items) = node.child("items") {
            let mut place = inner;
            if node.text("x-kubernetes-list-type") != "map" {
                place.no_old_self.get_or_insert_with(|| path.to_string());
            }
            self.node(&items, parsed.and_then(|p| p.items.as_deref()), &format!("{path}.items"), &place);
        }
    }

    /// The `x-kubernetes-` marks need the right type beside them.
    fn marks(&mut self, node: &Node<'_>, path: &str) {
        if node.json("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let at = format!("{path}.x-kubernetes-preserve-unknown-fields");
            self.errors.push(FieldError::invalid(at, false, "must be true or undefined"));
        }
        for (mark, kind, choices) in [
            ("x-kubernetes-map-type", "object", ["atomic", "granular"].as_slice()),
            ("x-kubernetes-list-type", "array", ["atomic", "set", "map"].as_slice()),
        ] {
            if node.json(mark).is_none() {
                continue;
            }
            let (found, at) = (node.text("type"), format!("{path}.type"));
            let why = format!("must be {kind} if {mark} is specified");
            if found.is_empty() {
                self.errors.push(FieldError::required(at, why));
            } else if found != kind {
                self.errors.push(FieldError::invalid(at, found, why));
            }
            if !choices.contains(&node.text(mark)) {
                self.errors.push(FieldError::not_supported(
                    format!("{path}.{mark}"),
                    node.text(mark),
                    choices,
                ));
            }
        }
        self.set_items(node, path);
    }

    /// Members of a set are compared as a whole, and so they must be owned.
    fn set_items(&mut self, node: &Node<'_>, path: &str) {
        let Some(items) = node.child("items").filter(|_| node.text("x-kubernetes-list-type") == "set") else {
            return;
        };
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let (mark, ok) = match items.text("type") {
            "array" => {
                ("x-kubernetes-list-type", matches!(items.text("x-kubernetes-list-type"), "" | "atomic"))
            }
            "object" => ("x-kubernetes-map-type", items.text("x-kubernetes-map-type") == "atomic"),
            _ => return,
        };
        if !ok {
            let value = items.json(mark).cloned().unwrap_or(Value::Null);
            self.errors.push(FieldError::invalid(format!("{path}.items.{mark}"), value, why));
        }
    }

    fn map_list(&mut self, node: &Node<'_>, path: &str) {
        const KEYS: &str = "x-kubernetes-list-map-keys";
        let keys = node.names(KEYS);
        let list = node.text("x-kubernetes-list-type");
        if !keys.is_empty() && list != "map" {
            let (at, why) =
                (format!("{path}.x-kubernetes-list-type"), format!("must be map if {KEYS} is non-empty"));
            let absent = node.json("x-kubernetes-list-type").is_none();
            self.errors.push(if absent {
                FieldError::required(at, why)
            } else {
                FieldError::invalid(at, list, why)
            });
        }
        let items = node.child("items");
        if matches!(list, "map" | "set") && items.as_ref().is_some_and(|items| items.flag("nullable")) {
            self.forbid(
                path,
                "items.nullable",
                format!("cannot be nullable when x-kubernetes-list-type is {list}"),
            );
        }
        if list != "map" {
            return;
        }
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(format!("{path}.{KEYS}"), why));
        }
        let Some(items) = items else {
            let why = "must have a schema if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(format!("{path}.items"), why));
            return;
        };
        if items.text("type") != "object" {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            self.errors.push(FieldError::invalid(format!("{path}.items.type"), items.text("type"), why));
            return;
        }
        for (index, key) in keys.iter().enumerate() {
            self.map_key(&items, &keys, key, path);
            if keys[..index].contains(key) {
                let why = "must not contain duplicate entries";
                self.errors.push(FieldError::invalid(
                    format!("{path}.{KEYS}"),
                    Value::from(keys.clone()),
                    why,
                ));
            }
        }
    }

    fn map_key(&mut self, items: &Node<'_>, keys: &[&str], key: &str, path: &str) {
        let Some(field) = items.property(key) else {
            let at = format!("{path}.x-kubernetes-list-map-keys");
            let why = "entries must all be names of item properties";
            self.errors.push(FieldError::invalid(at, Value::from(keys.to_vec()), why));
            return;
        };
        let at = format!("{path}.items.properties[{key}]");
        if matches!(field.text("type"), "array" | "object") {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            self.errors.push(FieldError::invalid(format!("{at}.type"), items.text("type"), why));
        }
        if !items.names("required").contains(&key) && field.json("default").is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            self.errors.push(FieldError::required(format!("{at}.default"), why));
        }
        if field.flag("nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            self.forbid(&at, "nullable", why);
        }
    }

    /// What can be said about rules without compiling them.
    fn rules(&mut self, node: &Node<'_>, path: &str) {
        const REASONS: &[&str] =
            &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        for (index, rule) in node.list("x-kubernetes-validations").iter().enumerate() {
            let at = |name: &str| format!("{path}.x-kubernetes-validations[{index}].{name}");
            let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
            let (source, message) = (text("rule").trim(), text("message"));
            if source.is_empty() {
                self.errors.push(FieldError::required(at("rule"), "rule is not specified"));
            } else if !message.is_empty() && message.trim().is_empty() {
                self.errors.push(FieldError::invalid(
                    at("message"),
                    message,
                    "must be non-empty if specified",
                ));
            } else if message.trim().contains('\n') {
                self.errors.push(FieldError::invalid(at("message"), message, "must not contain line breaks"));
            } else if source.contains('\n') && message.is_empty() {
                let why = "message must be specified if rule contains line breaks";
                self.errors.push(FieldError::required(at("message"), why));
            }
            if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
                let why = "messageExpression must be non-empty if specified";
                self.errors.push(FieldError::required(at("messageExpression"), why));
            }
            if let Some(reason) = rule.get("reason").and_then(Value::as_str).filter(|r| !REASONS.contains(r))
            {
                self.errors.push(FieldError::not_supported(at("reason"), reason, REASONS));
            }
        }
    }

    fn compile(&mut self, node: &Node<'_>, parsed: &Schema, path: &str, place: &Place) {
        for (index, rule) in node.list("x-kubernetes-validations").iter().enumerate() {
            let at = |name: &str| format!("{path}.x-kubernetes-validations[{index}].{name}");
            let verdict = cel::check(rule, parsed, place.root || parsed.embedded_resource);
            for fault in verdict.faults {
                let value = rule.get(fault.keyword).cloned().unwrap_or(Value::Null);
                self.faults.push(FieldError::invalid(at(fault.keyword), value, fault.detail));
            }
            match (&place.no_old_self, rule.get("optionalOldSelf").filter(|v| !v.is_null())) {
                (Some(list), _) if verdict.uses_old_self => {
                    let value = rule.get("rule").cloned().unwrap_or(Value::Null);
                    let why = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                    );
                    self.faults.push(FieldError::invalid(at("rule"), value, why));
                }
                (_, Some(flag)) if !verdict.uses_old_self => {
                    let why = "may not be set if oldSelf is not used in rule";
                    self.faults.push(FieldError::invalid(at("optionalOldSelf"), flag.clone(), why));
                }
                _ => {}
            }
        }
    }
}
