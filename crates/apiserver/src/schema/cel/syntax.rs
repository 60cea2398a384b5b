//! From a parsed expression to one that may be run: macros the library does not expand, operators it gets
//! wrong, and a meter at every place where values are copied or loops turn.
//!
//! Owns the rewriting. Must never change what a correct expression means.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapEntryExpr, operators,
};

/// Evaluation recurses; this many levels fit into the stack of any thread of the server.
const MAX_DEPTH: usize = 64;

/// Makes an expression ready to run.
///
/// # Errors
/// What cannot be run, said on one line.
pub fn prepare(expr: IdedExpr) -> Result<IdedExpr, String> {
    let mut writer = Writer { variables: vec!["self".into(), "oldSelf".into()], depth: 0 };
    writer.rewrite(expr)
}

struct Writer {
    /// Names that stand for values here; all others before a dot are names of libraries.
    variables: Vec<String>,
    depth: usize,
}

impl Writer {
    fn rewrite(&mut self, node: IdedExpr) -> Result<IdedExpr, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("expression is nested deeper than {MAX_DEPTH} levels"));
        }
        let id = node.id;
        let expr = match node.expr {
            Expr::Call(call) => self.call(call)?,
            Expr::Comprehension(loops) => self.comprehension(*loops)?,
            Expr::Select(mut select) => {
                select.operand = Box::new(self.rewrite(*select.operand)?);
                let test = select.test;
                let select = Expr::Select(select);
                if test { select } else { metered(node_of(select), 1) }
            }
            Expr::List(mut list) => {
                list.elements = self.all(list.elements)?;
                Expr::List(list)
            }
            Expr::Map(mut map) => {
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(pair) = &mut entry.expr else {
                        return Err("messages cannot be constructed".into());
                    };
                    let MapEntryExpr { key, value, .. } = pair;
                    *key = self.rewrite(std::mem::take(key))?;
                    *value = self.rewrite(std::mem::take(value))?;
                }
                Expr::Map(map)
            }
            Expr::Struct(_) => return Err("messages cannot be constructed".into()),
            Expr::Unspecified => return Err("the expression is empty".into()),
            simple @ (Expr::Ident(_) | Expr::Literal(_)) => simple,
        };
        self.depth -= 1;
        Ok(IdedExpr { id, expr })
    }

    fn all(&mut self, nodes: Vec<IdedExpr>) -> Result<Vec<IdedExpr>, String> {
        nodes.into_iter().map(|node| self.rewrite(node)).collect()
    }

    fn call(&mut self, call: CallExpr) -> Result<Expr, String> {
        let call = match self.expand_macro(call)? {
            Expanded::Done(expr) => return Ok(expr),
            Expanded::Not(call) => call,
        };
        let CallExpr { func_name, target, args } = call;
        match func_name.as_str() {
            operators::OPT_SELECT => Ok(function("@optional", self.all(args)?)),
            operators::INDEX | operators::OPT_INDEX | operators::ADD => {
                let call = CallExpr { func_name, target: None, args: self.all(args)? };
                Ok(metered(node_of(Expr::Call(call)), 1))
            }
            name if is_operator(name) => {
                Ok(Expr::Call(CallExpr { func_name, target: None, args: self.all(args)? }))
            }
            name => {
                let target = match target {
                    None => None,
                    Some(target) => {
                        let target = self.value(*target)?;
                        let guarded =
                            if name == "format" { function_node("@precision", vec![target]) } else { target };
                        Some(Box::new(guarded))
                    }
                };
                let args = args.into_iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>, _>>()?;
                Ok(metered(node_of(Expr::Call(CallExpr { func_name, target, args })), 4))
            }
        }
    }

    /// An argument of a function is copied, so a plain variable is paid for as well.
    fn value(&mut self, node: IdedExpr) -> Result<IdedExpr, String> {
        match &node.expr {
            Expr::Ident(name) if self.variables.contains(name) => Ok(node_of(metered(node, 1))),
            _ => self.rewrite(node),
        }
    }

    fn comprehension(&mut self, loops: ComprehensionExpr) -> Result<Expr, String> {
        let iter_range = self.rewrite(loops.iter_range)?;
        let accu_init = self.rewrite(loops.accu_init)?;
        let outer = self.variables.len();
        self.variables.extend([loops.iter_var.clone(), loops.accu_var.clone()]);
        let loop_cond = self.rewrite(loops.loop_cond)?;
        let steps = nodes(&loops.loop_step);
        let loop_step = self.rewrite(loops.loop_step)?;
        let result = self.rewrite(loops.result)?;
        self.variables.truncate(outer);
        Ok(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: node_of(metered(iter_range, 1)),
            accu_init,
            loop_cond,
            loop_step: node_of(metered(loop_step, steps)),
            result,
            ..loops
        })))
    }

    /// `cel.bind`, `sortBy` and the loops with two variables.
    fn expand_macro(&mut self, mut call: CallExpr) -> Result<Expanded, String> {
        let Some(target) = call.target.take() else { return Ok(Expanded::Not(call)) };
        let library = matches!(&target.expr, Expr::Ident(name) if name == "cel");
        let names: Vec<Option<String>> = call.args.iter().map(name_of).collect();
        let expr = match (call.func_name.as_str(), names.as_slice(), call.args.as_mut_slice()) {
            ("bind", [Some(name), _, _], [_, value, body]) if library => {
                bind(name.clone(), std::mem::take(value), std::mem::take(body))
            }
            ("sortBy", [Some(name), _], [_, key]) => {
                let keys = map_loop(ident(LIST), name.clone(), None, std::mem::take(key));
                bind(LIST.into(), *target, function_node("@sortBy", vec![ident(LIST), keys]))
            }
            ("all" | "exists" | "existsOne" | "exists_one", [Some(key), Some(value), _], [_, _, body]) => {
                let body = node_of(bind(value.clone(), index(ident(LIST), ident(key)), std::mem::take(body)));
                let keys = function_node("@keys", vec![ident(LIST)]);
                bind(LIST.into(), *target, test_loop(&call.func_name, keys, key.clone(), body))
            }
            ("transformList", [Some(key), Some(value), ..], [_, _, rest @ ..])
                if matches!(rest.len(), 1 | 2) =>
            {
                let with_value =
                    |body: IdedExpr| node_of(bind(value.clone(), index(ident(LIST), ident(key)), body));
                let mut rest = rest.iter_mut().map(|body| with_value(std::mem::take(body)));
                let (first, second) = (rest.next().unwrap_or_default(), rest.next());
                let (filter, body) = match second {
                    Some(body) => (Some(first), body),
                    None => (None, first),
                };
                let keys = function_node("@keys", vec![ident(LIST)]);
                bind(LIST.into(), *target, map_loop(keys, key.clone(), filter, body))
            }
            _ => {
                call.target = Some(target);
                return Ok(Expanded::Not(call));
            }
        };
        Ok(Expanded::Done(self.rewrite(node_of(expr))?.expr))
    }
}

enum Expanded {
    Done(Expr),
    Not(CallExpr),
}

/// The variable that holds what a loop of ours runs over; no rule can name it.
const LIST: &str = "@list";
const RESULT: &str = "@result";

fn is_operator(name: &str) -> bool {
    name.starts_with(['_', '!', '-', '@'])
}

fn nodes(node: &IdedExpr) -> i64 {
    1 + match &node.expr {
        Expr::Call(call) => {
            call.target.iter().map(|t| nodes(t)).sum::<i64>() + call.args.iter().map(nodes).sum::<i64>()
        }
        Expr::Select(select) => nodes(&select.operand),
        Expr::List(list) => list.elements.iter().map(nodes).sum(),
        _ => 0,
    }
}

fn name_of(node: &IdedExpr) -> Option<String> {
    if let Expr::Ident(name) = &node.expr { Some(name.clone()) } else { None }
}

fn node_of(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn ident(name: &str) -> IdedExpr {
    node_of(Expr::Ident(name.into()))
}

fn literal(value: LiteralValue) -> IdedExpr {
    node_of(Expr::Literal(value))
}

fn function(name: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr { func_name: name.into(), target: None, args })
}

fn function_node(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node_of(function(name, args))
}

fn metered(node: IdedExpr, steps: i64) -> Expr {
    function("@spend", vec![node, literal(LiteralValue::Int(steps.into()))])
}

fn index(list: IdedExpr, key: IdedExpr) -> IdedExpr {
    function_node(operators::INDEX, vec![list, key])
}

/// A loop that never turns: its result sees the value under a name.
fn bind(name: String, value: IdedExpr, body: IdedExpr) -> Expr {
    Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: node_of(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "@unused".into(),
        iter_var2: None,
        loop_step: ident(&name),
        accu_var: name,
        accu_init: value,
        loop_cond: literal(LiteralValue::Boolean(false.into())),
        result: body,
    }))
}

fn map_loop(range: IdedExpr, name: String, filter: Option<IdedExpr>, body: IdedExpr) -> IdedExpr {
    let longer =
        function_node(operators::ADD, vec![ident(RESULT), node_of(Expr::List(ListExpr::new(vec![body])))]);
    let step = match filter {
        Some(filter) => function_node(operators::CONDITIONAL, vec![filter, longer, ident(RESULT)]),
        None => longer,
    };
    node_of(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: range,
        iter_var: name,
        iter_var2: None,
        accu_var: RESULT.into(),
        accu_init: node_of(Expr::List(ListExpr::new(Vec::new()))),
        loop_cond: literal(LiteralValue::Boolean(true.into())),
        loop_step: step,
        result: ident(RESULT),
    })))
}

fn test_loop(kind: &str, range: IdedExpr, name: String, body: IdedExpr) -> IdedExpr {
    let not_false = |node| function_node(operators::NOT_STRICTLY_FALSE, vec![node]);
    let (accu_init, loop_cond, loop_step, result) = match kind {
        "all" => (
            literal(LiteralValue::Boolean(true.into())),
            not_false(ident(RESULT)),
            function_node(operators::LOGICAL_AND, vec![ident(RESULT), body]),
            ident(RESULT),
        ),
        "exists" => (
            literal(LiteralValue::Boolean(false.into())),
            not_false(function_node(operators::LOGICAL_NOT, vec![ident(RESULT)])),
            function_node(operators::LOGICAL_OR, vec![ident(RESULT), body]),
            ident(RESULT),
        ),
        _ => {
            let one = || literal(LiteralValue::Int(1.into()));
            let more = function_node(operators::ADD, vec![ident(RESULT), one()]);
            (
                literal(LiteralValue::Int(0.into())),
                literal(LiteralValue::Boolean(true.into())),
                function_node(operators::CONDITIONAL, vec![body, more, ident(RESULT)]),
                function_node(operators::EQUALS, vec![ident(RESULT), one()]),
            )
        }
    };
    node_of(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: range,
        iter_var: name,
        iter_var2: None,
        accu_var: RESULT.into(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    })))
}
