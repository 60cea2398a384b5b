//! The `x-kubernetes-validations` of a schema: rules in CEL, compiled once and run under a budget.
//!
//! Owns what a rule is and how it is compiled. Rules and objects are both hostile input: neither may crash
//! the server, overflow its stack or keep it busy for long.

mod budget;
mod check;
mod convert;
mod functions;
mod run;
mod syntax;
#[cfg(test)]
mod tests;
mod typing;
mod walk;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::IdedExpr;
use kube_cel::cel::parser::Parser;
use serde_json::Value;

use super::Schema;
use crate::error::FieldReason;

pub use check::check;
pub use walk::validate;

/// One rule of one schema node.
#[derive(Debug)]
pub struct CelRule {
    source: Box<str>,
    program: Result<IdedExpr, String>,
    uses_old_self: bool,
    optional_old_self: bool,
    message: Box<str>,
    message_program: Option<Result<IdedExpr, String>>,
    reason: FieldReason,
    /// Where the error is shown, below the node that has the rule.
    field: Option<Box<str>>,
}

/// The longest expression that is compiled; Kubernetes' own cost limits allow nothing near it.
const MAX_SOURCE: usize = 16 * 1024;

/// Brackets within brackets; the parser looks ahead over all of them and gets slow.
const MAX_NESTING: usize = 64;

/// Compiling recurses over the source, and debug builds take several kilobytes a level. Pages that are not
/// touched cost nothing.
const COMPILER_STACK: usize = 256 << 20;

impl CelRule {
    /// Reads and compiles the rules of one node. What does not compile is kept and reported when it runs.
    pub fn compile_all(rules: &[Value], schema: &Schema) -> Vec<Self> {
        let compile = || rules.iter().map(|rule| Self::compile(rule, schema)).collect();
        on_deep_stack(compile).unwrap_or_default()
    }

    fn compile(rule: &Value, schema: &Schema) -> Self {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
        let source = text("rule");
        let optional_old_self = rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
        let parsed = parse(source);
        let uses_old_self = parsed.as_ref().is_ok_and(|expr| expr.references().has_variable("oldSelf"));
        let message_program = Some(text("messageExpression")).filter(|text| !text.trim().is_empty());
        Self {
            source: source.into(),
            program: parsed.and_then(syntax::prepare),
            uses_old_self,
            optional_old_self,
            message: text("message").trim().into(),
            message_program: message_program.map(|text| parse(text).and_then(syntax::prepare)),
            reason: match text("reason") {
                "FieldValueForbidden" => FieldReason::Forbidden,
                "FieldValueRequired" => FieldReason::Required,
                "FieldValueDuplicate" => FieldReason::Duplicate,
                _ => FieldReason::Invalid,
            },
            field: Some(text("fieldPath"))
                .filter(|p| !p.is_empty())
                .and_then(|p| check::field_path(p, schema).ok()),
        }
    }

    /// How an error names the rule: by its message, or by itself.
    fn name(&self) -> &str {
        if self.message.is_empty() { self.source.trim() } else { &self.message }
    }
}

/// Runs where a hostile expression cannot overflow the stack. `None` if the machine has no thread to spare.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("cel-compile".into()).stack_size(COMPILER_STACK);
        thread.spawn_scoped(scope, work).ok().and_then(|handle| handle.join().ok())
    })
}

/// The expression, or what is wrong with it on one line.
fn parse(source: &str) -> Result<IdedExpr, String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("expression is longer than {MAX_SOURCE} bytes"));
    }
    if nesting(source) > MAX_NESTING {
        return Err(format!("expression is nested deeper than {MAX_NESTING} levels"));
    }
    // The parser is a generated one with assertions of its own.
    let parsed = catch_unwind(AssertUnwindSafe(|| Parser::new().enable_optional_syntax(true).parse(source)));
    match parsed {
        Ok(Ok(expr)) => Ok(expr),
        Ok(Err(errors)) => Err(errors.to_string()),
        Err(_) => Err("the expression cannot be parsed".into()),
    }
}

/// Text in quotes counts as well: no string that a person writes opens this many brackets.
fn nesting(source: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
