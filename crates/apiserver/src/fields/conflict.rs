//! What an applier hears when a field it sets belongs to somebody else.
//!
//! Owns the wording of conflicts, which tools match on. Must never decide what conflicts.

use super::entry::{Entry, Identity, Operation};
use super::set::Set;
use crate::error::Cause;

/// The fields of one manager that a refused configuration would have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub manager: String,
    pub operation: Operation,
    pub subresource: String,
    pub api_version: String,
    pub time: Option<String>,
    /// Such as `.spec.containers[name="web"].image`.
    pub fields: Vec<String>,
}

impl Conflict {
    pub(super) fn new(identity: &Identity, entry: &Entry, fields: &Set) -> Self {
        Self {
            manager: identity.manager.to_string(),
            operation: identity.operation,
            subresource: identity.subresource.to_string(),
            api_version: entry.api_version.to_string(),
            time: entry.time.as_ref().map(|time| time.text.to_string()),
            fields: fields.paths().iter().map(ToString::to_string).collect(),
        }
    }

    /// `"kubectl" with subresource "status" using apps/v1`; the version only for updaters.
    fn whom(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// The message of the `Status` that refuses the configuration.
pub fn conflict_message(conflicts: &[Conflict]) -> String {
    let count: usize = conflicts.iter().map(|conflict| conflict.fields.len()).sum();
    if let ([conflict], 1) = (conflicts, count) {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            conflict.whom(),
            conflict.fields[0]
        );
    }
    let mut lines = Vec::new();
    for conflict in conflicts {
        lines.push(format!("conflicts with {}:", conflict.whom()));
        lines.extend(conflict.fields.iter().map(|field| format!("- {field}")));
    }
    format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
}

/// One cause for each field in conflict.
pub fn conflict_causes(conflicts: &[Conflict]) -> Vec<Cause> {
    let causes = |conflict: &Conflict| {
        let message = format!("conflict with {}", conflict.whom());
        let cause = move |field: &String| Cause {
            reason: "FieldManagerConflict".into(),
            message: message.clone(),
            field: field.clone(),
        };
        conflict.fields.iter().map(cause).collect::<Vec<_>>()
    };
    conflicts.iter().flat_map(causes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(manager: &str, operation: Operation, subresource: &str, fields: &[&str]) -> Conflict {
        Conflict {
            manager: manager.into(),
            operation,
            subresource: subresource.into(),
            api_version: "apps/v1".into(),
            time: None,
            fields: fields.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn one_conflict_is_one_line() {
        let conflicts = [conflict("kubectl-client-side-apply", Operation::Update, "", &[".data.key"])];
        assert_eq!(
            conflict_message(&conflicts),
            r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .data.key"#
        );
        let causes = conflict_causes(&conflicts);
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].reason, "FieldManagerConflict");
        assert_eq!(causes[0].message, r#"conflict with "kubectl-client-side-apply" using apps/v1"#);
        assert_eq!(causes[0].field, ".data.key");
    }

    #[test]
    fn several_conflicts_are_listed_by_manager() {
        let conflicts = [
            conflict("hpa", Operation::Update, "scale", &[".spec.replicas"]),
            conflict("other", Operation::Apply, "", &[".spec.x", ".spec.y"]),
        ];
        assert_eq!(
            conflict_message(&conflicts),
            "Apply failed with 3 conflicts: conflicts with \"hpa\" with subresource \"scale\" using apps/v1:\n\
             - .spec.replicas\nconflicts with \"other\":\n- .spec.x\n- .spec.y"
        );
        assert_eq!(conflict_causes(&conflicts).len(), 3);
    }
}
