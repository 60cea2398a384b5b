//! Label and field selectors: parsing, printing, matching.
//!
//! Must never read an object beyond what the selector names.

use std::collections::HashMap;

use granary_api::names;
use serde::Deserialize;

/// All requirements must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let parts = split_outside_parentheses(text)?;
        Ok(Self(parts.into_iter().map(|part| Requirement::parse(part.trim())).collect::<Result<_, _>>()?))
    }

    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|r| {
            let value = label(&r.key);
            match &r.test {
                Test::In(wanted) => value.is_some_and(|v| wanted.iter().any(|w| w == v)),
                Test::NotIn(refused) => value.is_none_or(|v| refused.iter().all(|w| w != v)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::Greater(bound) => value.and_then(|v| v.parse().ok()).is_some_and(|v: i64| v > *bound),
                Test::Less(bound) => value.and_then(|v| v.parse().ok()).is_some_and(|v: i64| v < *bound),
            }
        })
    }

    /// Matches the labels of an object that is still JSON; only its labels are read.
    pub fn matches_json(&self, json: &[u8]) -> bool {
        if self.is_empty() {
            return true;
        }
        let labels = labels_of(json);
        self.matches(|key| labels.get(key).map(String::as_str))
    }
}

fn split_outside_parentheses(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        if !(0..=1).contains(&depth) {
            return Err(format!("unbalanced parentheses in {text:?}"));
        }
    }
    if depth != 0 {
        return Err(format!("unbalanced parentheses in {text:?}"));
    }
    parts.push(&text[start..]);
    Ok(parts)
}

impl Requirement {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(key) = text.strip_prefix('!') {
            return Self::new(key, Test::Absent);
        }
        for (operator, negate) in [(" notin ", true), (" in ", false), (" notin(", true), (" in(", false)] {
            if let Some((key, values)) = text.split_once(operator) {
                let values = values.trim().trim_start_matches('(');
                let values = values
                    .strip_suffix(')')
                    .ok_or_else(|| format!("found {text:?}, expected: values in parentheses"))?;
                let values = values.split(',').map(|v| v.trim().to_string()).collect();
                return Self::new(key, if negate { Test::NotIn(values) } else { Test::In(values) });
            }
        }
        if let Some((key, value)) = text.split_once("!=") {
            return Self::new(key, Test::NotIn(vec![value.trim().into()]));
        }
        if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            return Self::new(key, Test::In(vec![value.trim().into()]));
        }
        for (operator, test) in [('>', Test::Greater as fn(i64) -> Test), ('<', Test::Less)] {
            if let Some((key, value)) = text.split_once(operator) {
                let bound = value.trim().parse().map_err(|_| {
                    format!("for 'Gt', 'Lt' operators, the value must be an integer, got {value:?}")
                })?;
                return Self::new(key, test(bound));
            }
        }
        Self::new(text, Test::Exists)
    }

    fn new(key: &str, test: Test) -> Result<Self, String> {
        let key = key.trim();
        if let Some(problem) = names::label_key(key).into_iter().next() {
            return Err(format!("<nil>: Invalid value: {key:?}: {problem}"));
        }
        if let Test::In(values) | Test::NotIn(values) = &test {
            for value in values {
                if let Some(problem) = names::label_value(value).into_iter().next() {
                    return Err(format!("values[0][{key}]: Invalid value: {value:?}: {problem}"));
                }
            }
        }
        Ok(Self { key: key.into(), test })
    }
}

#[derive(Deserialize, Default)]
struct OnlyLabels {
    #[serde(default)]
    metadata: MetadataLabels,
}

#[derive(Deserialize, Default)]
struct MetadataLabels {
    #[serde(default)]
    labels: Option<HashMap<String, String>>,
}

fn labels_of(json: &[u8]) -> HashMap<String, String> {
    serde_json::from_slice::<OnlyLabels>(json).ok().and_then(|o| o.metadata.labels).unwrap_or_default()
}

/// `metadata.name=x,status.phase!=Bound`: all terms must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    pub field: String,
    pub value: String,
    pub equal: bool,
}

impl FieldSelector {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn terms(&self) -> &[Term] {
        &self.0
    }

    /// A comma, an equals sign or a backslash in a value is written after a backslash.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split_unescaped(text).filter(|p| !p.is_empty()) {
            let (field, value, equal) = if let Some((field, value)) = part.split_once("!=") {
                (field, value, false)
            } else if let Some((field, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (field, value, true)
            } else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            let value = unescape(value).ok_or_else(|| {
                format!("invalid field selector: invalid escape sequence in the value of {field:?}")
            })?;
            terms.push(Term { field: field.trim().into(), value, equal });
        }
        Ok(Self(terms))
    }

    /// The name that this selector pins down, which turns a list into a look-up.
    pub fn exact_name(&self) -> Option<&str> {
        self.0.iter().find(|t| t.equal && t.field == "metadata.name").map(|t| t.value.as_str())
    }

    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|t| (field(&t.field).unwrap_or_default() == t.value) == t.equal)
    }
}

/// The parts between commas that no backslash escapes.
fn split_unescaped(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.trim().chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => plain.push(rest.next().filter(|e| matches!(e, '\\' | ',' | '='))?),
            c => plain.push(c),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::{FieldSelector, LabelSelector};

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let selector = LabelSelector::parse(selector).unwrap();
        selector.matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v))
    }

    #[test]
    fn every_operator_selects_as_kubernetes_does() {
        let web = &[("app", "web"), ("tier", "front"), ("rank", "7")];
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app=db", false),
            ("app!=db", true),
            ("missing!=x", true),
            ("app in (web, db)", true),
            ("app notin (web)", false),
            ("missing notin (web)", true),
            ("tier", true),
            ("!tier", false),
            ("!missing", true),
            ("rank>5", true),
            ("rank<5", false),
            ("app in (web),tier notin (back)", true),
        ] {
            assert_eq!(matches(selector, web), expected, "{selector}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["a in (b", "a in b", "a,,=b", "a b", "x>y", "a=b=c d", "in (a)", "a,,b", ",a", "-a=b"] {
            assert!(LabelSelector::parse(bad).is_err(), "{bad}");
        }
        assert!(FieldSelector::parse("metadata.name").is_err());
        assert!(FieldSelector::parse("metadata.name=a\\b").is_err());
    }

    #[test]
    fn a_field_value_can_hold_what_separates_fields() {
        let selector = FieldSelector::parse(r"spec.a=x\,y\=z\\,spec.b!=1").unwrap();
        let values: Vec<_> = selector.terms().iter().map(|t| t.value.as_str()).collect();
        assert_eq!(values, [r"x,y=z\", "1"]);
    }

    #[test]
    fn a_field_selector_can_pin_the_name() {
        let selector = FieldSelector::parse("metadata.name=a,status.phase!=Bound").unwrap();
        assert_eq!(selector.exact_name(), Some("a"));
        assert!(selector.matches(|f| match f {
            "metadata.name" => Some("a"),
            _ => None,
        }));
    }
}
