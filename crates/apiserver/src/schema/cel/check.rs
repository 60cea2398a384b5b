//! What can be known about a rule before it ever runs: names that do not exist, results that are no answer.
//!
//! Owns the check at admission of a definition. Types are followed as far as the schema tells them; from
//! there on everything is allowed, and mistakes show when the rule runs.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use serde_json::Value;

use super::super::Schema;
use super::typing::{Type, result_of};
use super::{functions, on_deep_stack, parse, syntax};

/// A fault of one rule, and the keyword of the rule it is in.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    pub keyword: &'static str,
    pub detail: String,
}

/// What is known about one rule before it runs.
#[derive(Debug, Default)]
pub struct Verdict {
    pub faults: Vec<Fault>,
    pub uses_old_self: bool,
}

/// Judges one rule of a node. `root`: the node is a whole resource.
pub fn check(rule: &Value, schema: &Schema, root: bool) -> Verdict {
    on_deep_stack(|| judge(rule, schema, root)).unwrap_or_else(|| {
        let detail = "the rule cannot be checked at the moment".into();
        Verdict { faults: vec![Fault { keyword: "rule", detail }], uses_old_self: false }
    })
}

fn judge(rule: &Value, schema: &Schema, root: bool) -> Verdict {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    let optional_old = rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
    let mut faults = Vec::new();
    let mut fault = |keyword, detail: String| faults.push(Fault { keyword, detail });
    match check_expression(text("rule"), schema, root, optional_old) {
        Err(why) => fault("rule", format!("compilation failed: {why}")),
        Ok(Type::Bool | Type::Dyn) => {}
        Ok(_) => fault("rule", "cel expression must evaluate to a bool".into()),
    }
    if !text("messageExpression").trim().is_empty() {
        match check_expression(text("messageExpression"), schema, root, optional_old) {
            Err(why) => fault("messageExpression", format!("messageExpression compilation failed: {why}")),
            Ok(Type::String | Type::Dyn) => {}
            Ok(_) => fault("messageExpression", "messageExpression must evaluate to a string".into()),
        }
    }
    if !text("fieldPath").is_empty() && field_path(text("fieldPath"), schema).is_err() {
        fault("fieldPath", "must be a valid path".into());
    }
    let uses_old_self = parse(text("rule")).is_ok_and(|expr| expr.references().has_variable("oldSelf"));
    Verdict { faults, uses_old_self }
}

fn check_expression<'a>(
    source: &str,
    schema: &'a Schema,
    root: bool,
    optional_old: bool,
) -> Result<Type<'a>, String> {
    let expr = parse(source)?;
    let this = Type::of(schema, root).ok_or("the schema here has no types that rules could be about")?;
    let old = if optional_old { Type::Dyn } else { this.clone() };
    let mut checker = Checker { scope: vec![("self".into(), this), ("oldSelf".into(), old)], depth: 0 };
    let kind = checker.infer(&expr)?;
    // The rewriting has limits of its own.
    syntax::prepare(expr)?;
    Ok(kind)
}

struct Checker<'a> {
    scope: Vec<(String, Type<'a>)>,
    depth: usize,
}

impl<'a> Checker<'a> {
    fn infer(&mut self, node: &IdedExpr) -> Result<Type<'a>, String> {
        const MAX_DEPTH: usize = 1000;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("expression is nested too deeply".into());
        }
        let kind = match &node.expr {
            Expr::Unspecified => return Err("the expression is empty".into()),
            Expr::Struct(_) => return Err("messages cannot be constructed".into()),
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::String(_) => Type::String,
                LiteralValue::Bytes(_) | LiteralValue::UInt(_) => Type::Special,
                LiteralValue::Null => Type::Dyn,
            },
            Expr::Ident(name) => self.variable(name)?,
            Expr::Select(select) => {
                let operand = self.infer(&select.operand)?;
                let field = operand.field(&select.field)?;
                if select.test { Type::Bool } else { field }
            }
            Expr::List(list) => {
                let mut elements =
                    list.elements.iter().map(|element| self.infer(element)).collect::<Result<Vec<_>, _>>()?;
                Type::List(Box::new(if elements.len() == 1 { elements.remove(0) } else { Type::Dyn }))
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(pair) = &entry.expr {
                        self.infer(&pair.key)?;
                        self.infer(&pair.value)?;
                    }
                }
                Type::Map(Box::new(Type::Dyn))
            }
            Expr::Call(call) => self.call(call)?,
            Expr::Comprehension(loops) => self.comprehension(loops)?,
        };
        self.depth -= 1;
        Ok(kind)
    }

    fn variable(&self, name: &str) -> Result<Type<'a>, String> {
        match self.scope.iter().rev().find(|(known, _)| known == name) {
            Some((_, kind)) => Ok(kind.clone()),
            None if functions::is_type(name) => Ok(Type::Dyn),
            None => Err(undeclared(name)),
        }
    }

    fn with<T>(
        &mut self,
        name: &str,
        kind: Type<'a>,
        then: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        self.scope.push((name.into(), kind));
        let outcome = then(self);
        self.scope.pop();
        outcome
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Result<Type<'a>, String> {
        let element = self.infer(&loops.iter_range)?.element();
        let result = self.infer(&loops.accu_init)?;
        // An empty list says nothing about what the loop puts in.
        let result = if let Type::List(_) = result { Type::Dyn } else { result };
        self.with(&loops.iter_var, element, |this| {
            this.with(&loops.accu_var, result, |this| {
                this.infer(&loops.loop_cond)?;
                let step = this.infer(&loops.loop_step)?;
                let result = this.infer(&loops.result)?;
                Ok(if let Type::Dyn = result { step } else { result })
            })
        })
    }

    fn call(&mut self, call: &CallExpr) -> Result<Type<'a>, String> {
        let name = call.func_name.as_str();
        if let Some(kind) = self.macro_call(call)? {
            return Ok(kind);
        }
        let mut known = is_known(name);
        let mut target = None;
        match call.target.as_deref() {
            Some(IdedExpr { expr: Expr::Ident(prefix), .. }) if self.variable(prefix).is_err() => {
                known = functions::is_function(&format!("{prefix}.{name}"));
                if !known {
                    return Err(undeclared(prefix));
                }
            }
            Some(node) => target = Some(self.infer(node)?),
            None => {}
        }
        if !known {
            return Err(undeclared(name));
        }
        let args = call.args.iter().map(|arg| self.infer(arg)).collect::<Result<Vec<_>, _>>()?;
        if let (operators::OPT_SELECT, Some(operand), Some(Expr::Literal(LiteralValue::String(field)))) =
            (name, args.first(), call.args.get(1).map(|arg| &arg.expr))
        {
            operand.field(field.inner())?;
        }
        Ok(result_of(name, target.as_ref(), &args))
    }

    /// Macros that the parser leaves as calls: their variables are not in scope outside.
    fn macro_call(&mut self, call: &CallExpr) -> Result<Option<Type<'a>>, String> {
        let Some(target) = call.target.as_deref() else { return Ok(None) };
        let name_of =
            |node: &IdedExpr| if let Expr::Ident(name) = &node.expr { Some(name.clone()) } else { None };
        let names: Vec<Option<String>> = call.args.iter().map(name_of).collect();
        match (call.func_name.as_str(), names.as_slice(), call.args.as_slice()) {
            ("bind", [Some(name), ..], [_, value, body]) if name_of(target).as_deref() == Some("cel") => {
                let kind = self.infer(value)?;
                self.with(name, kind, |this| this.infer(body)).map(Some)
            }
            ("sortBy", [Some(name), _], [_, key]) => {
                let list = self.infer(target)?;
                self.with(name, list.element(), |this| this.infer(key))?;
                Ok(Some(list))
            }
            (
                "all" | "exists" | "existsOne" | "exists_one" | "transformList",
                [Some(key), Some(value), ..],
                [_, _, bodies @ ..],
            ) if !bodies.is_empty() => {
                let range = self.infer(target)?;
                let (key_type, value_type) = match &range {
                    Type::List(inner) => (Type::Int, (**inner).clone()),
                    Type::Map(inner) => (Type::String, (**inner).clone()),
                    _ => (Type::Dyn, Type::Dyn),
                };
                self.with(key, key_type, |this| {
                    this.with(value, value_type, |this| {
                        bodies.iter().try_for_each(|body| this.infer(body).map(drop))
                    })
                })?;
                let list = call.func_name == "transformList";
                Ok(Some(if list { Type::List(Box::new(Type::Dyn)) } else { Type::Bool }))
            }
            _ => Ok(None),
        }
    }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn is_known(name: &str) -> bool {
    name.starts_with(['_', '!', '-', '@']) || functions::is_function(name)
}

/// A `fieldPath` as errors show it: `.a.b` and `['c']` become `a.b.c` or `a[b]`, as the schema has fields or keys.
///
/// # Errors
/// Why it is no path within this schema.
pub fn field_path(path: &str, schema: &Schema) -> Result<Box<str>, String> {
    let mut shown = super::super::path::Path::default();
    let mut node = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(after) = rest.strip_prefix("['") {
            let end = after.find("']").ok_or("unexpected end of JSON path")?;
            (&after[..end], &after[end + 2..])
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            (&after[..end], &after[end..])
        } else {
            return Err(format!("expected [ or . but got: {rest}"));
        };
        let next = match (node.properties.get(name), &node.additional) {
            (Some(field), _) => {
                let _mark = shown.field(name);
                field
            }
            (None, Some(values)) => {
                let _mark = shown.key(name);
                values
            }
            (None, None) => return Err("does not refer to a valid field".into()),
        };
        node = next;
        rest = after;
    }
    Ok(shown.as_str().into())
}
