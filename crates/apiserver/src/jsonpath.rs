//! The JSONPath of printed columns: fields, list positions, filters by equality and wildcards.
//!
//! Must never panic on a path or an object; what cannot be found gives nothing.

use serde_json::Value;

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// `[?(@.type=="Ready")]`
    Where {
        path: Vec<Step>,
        equals: String,
        negate: bool,
    },
    Descend(String),
}

/// A parsed path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// Parses `.spec.x`, `.status.conditions[?(@.type=="Ready")].status`, `.metadata.labels['a\.b']`, …
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let text = text.strip_prefix('$').unwrap_or(text);
        steps(text).map(Self)
    }

    /// Everything the path leads to.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        find(&self.0, object)
    }
}

fn steps(mut rest: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            let (name, after) = field_name(after);
            steps.push(Step::Descend(name));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            if after.is_empty() {
                return Some(steps);
            }
            if after.starts_with('[') {
                rest = after;
                continue;
            }
            let (name, after) = field_name(after);
            if name.is_empty() {
                return None;
            }
            steps.push(if name == "*" { Step::All } else { Step::Field(name) });
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let end = closing(after)?;
            steps.push(bracket(&after[..end])?);
            rest = &after[end + 1..];
        } else if steps.is_empty() {
            let (name, after) = field_name(rest);
            steps.push(Step::Field(name));
            rest = after;
        } else {
            return None;
        }
    }
    Some(steps)
}

/// A name up to the next `.` or `[`; a backslash keeps the dot after it.
fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                if let Some((_, escaped)) = chars.next() {
                    name.push(escaped);
                }
            }
            '.' | '[' => return (name, &text[at..]),
            _ => name.push(c),
        }
    }
    (name, "")
}

/// The position of the bracket that closes, outside quotes and inner brackets.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    let inner = inner.trim();
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(condition) = inner.strip_prefix("?(").and_then(|i| i.strip_suffix(')')) {
        let (left, right, negate) = match condition.split_once("!=") {
            Some((left, right)) => (left, right, true),
            None => {
                let (left, right) = condition.split_once("==")?;
                (left, right, false)
            }
        };
        let path = steps(left.trim().strip_prefix('@')?)?;
        let equals = right.trim().trim_matches(['"', '\'']).to_string();
        return Some(Step::Where { path, equals, negate });
    }
    if let Some(name) = inner.strip_prefix(['\'', '"']) {
        return Some(Step::Field(name.trim_end_matches(['\'', '"']).replace("\\.", ".")));
    }
    inner.parse().ok().map(Step::Index)
}

fn find<'a>(steps: &[Step], value: &'a Value) -> Vec<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return vec![value] };
    let next: Vec<&'a Value> = match step {
        Step::Field(name) => value.get(name.as_str()).into_iter().collect(),
        Step::Index(at) => {
            let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let at = if *at < 0 { list.len() as i64 + at } else { *at };
            usize::try_from(at).ok().and_then(|at| list.get(at)).into_iter().collect()
        }
        Step::All => children(value),
        Step::Where { path, equals, negate } => children(value)
            .into_iter()
            .filter(|item| find(path, item).iter().any(|found| plain(found) == *equals) != *negate)
            .collect(),
        Step::Descend(name) => {
            let mut found = Vec::new();
            descend(name, value, &mut found);
            found
        }
    };
    next.into_iter().flat_map(|value| find(rest, value)).collect()
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

fn descend<'a>(name: &str, value: &'a Value, found: &mut Vec<&'a Value>) {
    found.extend(value.get(name));
    for child in children(value) {
        descend(name, child, found);
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::JsonPath;

    #[test]
    fn columns_of_real_definitions_are_found() {
        let object = json!({
            "metadata": {"labels": {"app.io/x": "y"}},
            "spec": {"size": 3, "list": [{"n": "a"}, {"n": "b"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Bound", "status": "False"}]},
        });
        for (path, expected) in [
            (".spec.size", json!([3])),
            ("{.spec.size}", json!([3])),
            (".status.conditions[?(@.type=='Bound')].status", json!(["False"])),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
            (".spec.list[*].n", json!(["a", "b"])),
            (".spec.list[-1].n", json!(["b"])),
            (".metadata.labels.app\\.io/x", json!(["y"])),
            (".metadata.labels['app\\.io/x']", json!(["y"])),
            (".spec.none.deeper", json!([])),
            ("..n", json!(["a", "b"])),
        ] {
            let found = JsonPath::parse(path).unwrap();
            assert_eq!(json!(found.find(&object)), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_makes_it_panic(path in ".{0,40}") {
            if let Some(path) = JsonPath::parse(&path) {
                path.find(&json!({"a": [1, {"b": null}]}));
            }
        }
    }
}
