//! One evaluation: an expression, its variables, and the outcome in the words of Kubernetes.
//!
//! Owns the boundary to the CEL library. Must never let a panic of the library through.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Value};

use super::functions::CONTEXT;
use super::{CelRule, budget};

/// What the rules of one node can see.
pub struct Variables {
    pub this: Value,
    pub old: Option<Value>,
}

pub enum Failure {
    /// The budget of the whole object is gone.
    Exhausted,
    Overload,
    Other(String),
}

impl Variables {
    /// The scope of a rule. With `optionalOldSelf` the old value is an optional.
    pub fn scope(&self, rule: &CelRule) -> Context<'_> {
        let mut scope = CONTEXT.new_inner_scope();
        scope.add_variable_from_value("self", self.this.clone());
        if rule.optional_old_self {
            let old = self.old.clone().map_or_else(OptionalValue::none, OptionalValue::of);
            scope.add_variable_from_value("oldSelf", Value::Opaque(Arc::new(old)));
        } else if let Some(old) = &self.old {
            scope.add_variable_from_value("oldSelf", old.clone());
        }
        scope
    }
}

/// Evaluates within `left` units and takes what was used from it.
pub fn evaluate(expr: &IdedExpr, scope: &Context<'_>, left: &mut u64) -> Result<Value, Failure> {
    budget::begin(*left);
    let outcome = catch_unwind(AssertUnwindSafe(|| Value::resolve(expr, scope)));
    match budget::end() {
        Some(rest) => *left = rest,
        None => {
            *left = 0;
            return Err(Failure::Exhausted);
        }
    }
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(explain(&error)),
        Err(_) => Err(Failure::Other("internal error: the expression cannot be evaluated".into())),
    }
}

fn explain(error: &ExecutionError) -> Failure {
    Failure::Other(match error {
        ExecutionError::NoSuchOverload
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..) => return Failure::Overload,
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::UndeclaredReference(name) => format!("undeclared reference to '{name}'"),
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::DivisionByZero(_) => "division by zero".into(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".into(),
        ExecutionError::Overflow(..) => "integer overflow".into(),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    })
}
