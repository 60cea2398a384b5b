//! Paths into an object, as `--sort-by` and `wait --for` take them: the useful corner of JSONPath.
//! It reads values; it never changes them.

use serde_json::Value;

/// A path such as `.status.phase`, `{.spec.ports[0].port}`,
/// `status.conditions[?(@.type=="Ready")].status` or `metadata.labels['app.kubernetes.io/name']`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    steps: Vec<Step>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    Every,
    /// Elements in which this path has this value.
    Where(Vec<Step>, String),
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let inner = text.trim();
        let inner = match inner.strip_prefix('{') {
            Some(rest) => {
                rest.strip_suffix('}').ok_or_else(|| format!("{text:?} lacks its closing brace"))?
            }
            None => inner,
        };
        let steps = parse_steps(inner.strip_prefix('$').unwrap_or(inner))
            .map_err(|reason| format!("{text:?} is no field path: {reason}; example: .status.phase"))?;
        Ok(Self { steps, text: inner.trim_start_matches('.').to_owned() })
    }
}

impl FieldPath {
    /// Every value the path leads to; none if a step is missing.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        walk(&self.steps, object)
    }

    /// The first value, for uses where there is at most one.
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.find(object).into_iter().next()
    }
}

fn walk<'a>(steps: &[Step], object: &'a Value) -> Vec<&'a Value> {
    steps.iter().fold(vec![object], |values, step| {
        values
            .into_iter()
            .flat_map(|value| match step {
                Step::Field(name) => value.get(name).into_iter().collect::<Vec<_>>(),
                Step::Index(index) => value.get(index).into_iter().collect(),
                Step::Every => elements(value),
                Step::Where(path, wanted) => elements(value)
                    .into_iter()
                    .filter(|element| walk(path, element).iter().any(|found| plain(found) == *wanted))
                    .collect(),
            })
            .collect()
    })
}

fn elements(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => vec![],
    }
}

/// A value as a person would write it on a command line: strings without quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn parse_steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = closing_bracket(inside).ok_or("a bracket is not closed")?;
            steps.push(parse_bracket(inside[..end].trim())?);
            rest = &inside[end + 1..];
        } else {
            let (name, after) = take_name(rest.strip_prefix('.').unwrap_or(rest));
            match name.as_str() {
                "" => return Err("a name is empty".into()),
                "*" => steps.push(Step::Every),
                _ => steps.push(Step::Field(name)),
            }
            rest = after;
        }
    }
    if steps.is_empty() { Err("it is empty".into()) } else { Ok(steps) }
}

/// Reads up to the next unescaped `.` or `[`; a backslash takes the next character as it is.
fn take_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (name, &text[at..]),
            other => name.push(other),
        }
    }
    (name, "")
}

/// The closing bracket that is not inside quotes.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, ']') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

fn parse_bracket(text: &str) -> Result<Step, String> {
    if text == "*" {
        return Ok(Step::Every);
    }
    if let Ok(index) = text.parse::<usize>() {
        return Ok(Step::Index(index));
    }
    if let Some(name) = unquote(text) {
        return Ok(Step::Field(name.into()));
    }
    let condition = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')'));
    let (path, wanted) = condition
        .and_then(|condition| condition.split_once("=="))
        .ok_or_else(|| format!("[{text}] is neither a number, a quoted name, * nor ?(@.field==\"value\")"))?;
    let path = path.trim().strip_prefix('@').ok_or("a condition starts with @")?;
    let wanted = wanted.trim();
    Ok(Step::Where(parse_steps(path)?, unquote(wanted).unwrap_or(wanted).into()))
}

fn unquote(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text.get(1..)?.strip_suffix(quote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn find(path: &str, object: &Value) -> Vec<String> {
        path.parse::<FieldPath>()
            .unwrap_or_else(|error| panic!("{error}"))
            .find(object)
            .into_iter()
            .map(plain)
            .collect()
    }

    #[test]
    fn all_spellings_of_a_path_lead_to_the_same_place() {
        let claim = json!({"status": {"phase": "Bound"}});
        for path in ["status.phase", ".status.phase", "{.status.phase}", "$.status.phase", "status['phase']"]
        {
            assert_eq!(find(path, &claim), ["Bound"], "{path}");
        }
        assert_eq!(find("status.size", &claim), [] as [&str; 0]);
        assert_eq!(find("status.phase.deeper", &claim), [] as [&str; 0]);
    }

    #[test]
    fn lists_and_odd_names_can_be_reached() {
        let object = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "web"}},
            "spec": {"ports": [{"port": 80}, {"port": 443}]},
            "status": {"conditions": [{"type": "A]", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        assert_eq!(find("metadata.labels['app.kubernetes.io/name']", &object), ["web"]);
        assert_eq!(find(r"metadata.labels.app\.kubernetes\.io/name", &object), ["web"]);
        assert_eq!(find("spec.ports[1].port", &object), ["443"]);
        assert_eq!(find("spec.ports[*].port", &object), ["80", "443"]);
        assert_eq!(find(r#"{.status.conditions[?(@.type=="Ready")].status}"#, &object), ["True"]);
        assert_eq!(find(r#"status.conditions[?(@.type=='A]')].status"#, &object), ["False"]);
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for wrong in ["", ".", "{.a", "a..b", "a[", "a[x]", "a[?(type==1)]", "{}"] {
            let error = wrong.parse::<FieldPath>().unwrap_err();
            assert!(error.contains("example") || error.contains("brace"), "{wrong:?} gave {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-z.\\[\\]{}'\"?@=()*\\\\0-9 é]{0,24}") {
            if let Ok(path) = text.parse::<FieldPath>() {
                path.find(&json!({"a": [{"b": 1}]}));
            }
        }
    }
}
