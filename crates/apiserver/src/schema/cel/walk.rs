//! Running the rules of a schema over an object.
//!
//! Owns which rules run on which values, and what their failures say. Must never run a rule on `null`: rules
//! about absent values belong to the node around them.

use serde_json::Value;

use super::super::Schema;
use super::super::path::Path;
use super::super::update::{OldItems, unchanged as is_unchanged};
use super::super::validate::type_name;
use super::convert::to_cel;
use super::run::{Failure, Variables, evaluate};
use super::{CelRule, budget};
use crate::error::{FieldError, FieldReason};

/// The longest message an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

/// Runs all rules of a schema; `old` is what an update replaces.
pub fn validate(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    validate_within(schema, new, old, budget::PER_OBJECT)
}

pub(super) fn validate_within(
    schema: &Schema,
    new: &Value,
    old: Option<&Value>,
    budget: u64,
) -> Vec<FieldError> {
    let mut walk = Walk { path: Path::default(), errors: Vec::new(), left: budget };
    if schema.has_cel {
        walk.node(Node { schema, root: true }, new, old, false);
    }
    walk.errors
}

#[derive(Clone, Copy)]
struct Node<'a> {
    schema: &'a Schema,
    /// Whether this is a whole resource.
    root: bool,
}

struct Walk {
    path: Path,
    errors: Vec<FieldError>,
    left: u64,
}

impl Walk {
    /// `unchanged`: the nearest value around this one that can be found in the old object is as it was.
    fn node(&mut self, node: Node<'_>, new: &Value, old: Option<&Value>, unchanged: bool) {
        if new.is_null() || !node.schema.has_cel || self.left == 0 {
            return;
        }
        // The object as a whole is never excused, only parts of it.
        let part = !self.path.as_str().is_empty();
        let unchanged = unchanged || (part && old.is_some_and(|old| is_unchanged(node.schema, new, old)));
        if let Some(rules) = &node.schema.rules {
            self.rules(&rules.cel, node, new, old, unchanged);
        }
        match new {
            Value::Object(object) => {
                for (name, child) in object {
                    let (schema, mark) = match (node.schema.properties.get(&**name), &node.schema.additional)
                    {
                        (Some(field), _) => (field, self.path.field(name)),
                        (None, Some(values)) => (values, self.path.key(name)),
                        (None, None) => continue,
                    };
                    let below = Node { schema, root: schema.embedded_resource };
                    self.node(below, child, old.and_then(|old| old.get(name)), unchanged);
                    self.path.back(mark);
                }
            }
            Value::Array(list) => {
                let Some(schema) = &node.schema.items else { return };
                let old = OldItems::new(node.schema, old);
                for (index, child) in list.iter().enumerate() {
                    let mark = self.path.index(index);
                    self.node(
                        Node { schema, root: schema.embedded_resource },
                        child,
                        old.matching(child),
                        unchanged,
                    );
                    self.path.back(mark);
                }
            }
            _ => {}
        }
    }

    fn rules(
        &mut self,
        rules: &[CelRule],
        node: Node<'_>,
        new: &Value,
        old: Option<&Value>,
        unchanged: bool,
    ) {
        if rules.is_empty() {
            return;
        }
        let needs_old = rules.iter().any(|rule| rule.uses_old_self);
        let variables = Variables {
            this: to_cel(node.schema, new, node.root),
            old: old.filter(|old| needs_old && !old.is_null()).map(|old| to_cel(node.schema, old, node.root)),
        };
        for rule in rules {
            let skip = rule.uses_old_self && variables.old.is_none() && !rule.optional_old_self;
            if skip || rule.source.trim().is_empty() {
                continue;
            }
            if let Some(error) = self.rule(rule, &variables, node, new)
                && (rule.uses_old_self || !unchanged)
            {
                self.errors.push(error);
            }
            if self.left == 0 {
                return;
            }
        }
    }

    fn rule(
        &mut self,
        rule: &CelRule,
        variables: &Variables,
        node: Node<'_>,
        new: &Value,
    ) -> Option<FieldError> {
        let kind = type_name(node.schema.kind);
        let refuse = |path: &str, why: String| Some(FieldError::invalid(path, kind, why));
        let program = match &rule.program {
            Ok(program) => program,
            Err(why) => {
                return refuse(self.path.shown(), format!("rule compile error: compilation failed: {why}"));
            }
        };
        let scope = variables.scope(rule);
        let passed = match evaluate(program, &scope, &mut self.left) {
            Ok(kube_cel::cel::Value::Bool(passed)) => passed,
            Ok(_) => return refuse(self.path.shown(), "cel expression must evaluate to a bool".into()),
            Err(Failure::Exhausted) => {
                let why = "validation failed due to running out of cost budget, no further validation rules will be run";
                return refuse(self.path.shown(), why.into());
            }
            Err(Failure::Overload) => {
                let why = format!(
                    "'no such overload': call arguments did not match a supported operator, function or macro \
                     signature for rule: {}",
                    rule.name()
                );
                return refuse(self.path.shown(), why);
            }
            Err(Failure::Other(why)) => {
                return refuse(self.path.shown(), format!("{why} evaluating rule: {}", rule.name()));
            }
        };
        if passed {
            return None;
        }
        let detail = self.message(rule, &scope);
        let path = match &rule.field {
            Some(field) if self.path.as_str().is_empty() => field.to_string(),
            Some(field) if field.starts_with('[') => format!("{}{field}", self.path.as_str()),
            Some(field) => format!("{}.{field}", self.path.as_str()),
            None => self.path.shown().to_string(),
        };
        let value = (!new.is_object() && !new.is_array()).then(|| new.clone());
        Some(match rule.reason {
            FieldReason::Forbidden => FieldError::forbidden(path, detail),
            FieldReason::Required => FieldError::required(path, detail),
            FieldReason::Duplicate => {
                FieldError { path, reason: FieldReason::Duplicate, value, detail: String::new() }
            }
            _ => FieldError { path, reason: FieldReason::Invalid, value, detail },
        })
    }

    /// What the rule says: its expression's text if that works out, its message, or the rule itself.
    fn message(&mut self, rule: &CelRule, scope: &kube_cel::cel::Context<'_>) -> String {
        if let Some(Ok(program)) = &rule.message_program
            && let Ok(kube_cel::cel::Value::String(text)) = evaluate(program, scope, &mut self.left)
        {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') {
                return text.to_string();
            }
        }
        if rule.message.is_empty() {
            format!("failed rule: {}", rule.source.trim())
        } else {
            rule.message.to_string()
        }
    }
}
