//! One step from a container to something in it, and paths made of such steps.
//!
//! Owns the order of path elements, which decides how sets are stored, and their text in messages. Must
//! never look at a schema.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

/// How a child is found in its container.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A field of an object.
    Field(Box<str>),
    /// The list item whose key fields have these values, sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// The item of a set that has this value.
    Value(Box<Value>),
    /// The item at this position.
    Index(i64),
}

impl PathElement {
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// A key of a map list; the order in which the fields are given does not matter.
    pub fn key<N: Into<Box<str>>>(fields: impl IntoIterator<Item = (N, Value)>) -> Self {
        let mut fields: Vec<(Box<str>, Value)> = fields.into_iter().map(|(n, v)| (n.into(), v)).collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields.into())
    }

    pub fn value(value: Value) -> Self {
        Self::Value(Box::new(value))
    }

    /// Fields come before keys, keys before values, values before positions.
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

fn compare_keys(a: &[(Box<str>, Value)], b: &[(Box<str>, Value)]) -> Ordering {
    for ((name_a, value_a), (name_b, value_b)) in a.iter().zip(b) {
        let order = name_a.cmp(name_b).then_with(|| compare_values(value_a, value_b));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// A total order over JSON values in which `1` and `1.0` are the same number.
pub(super) fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let differing = a.iter().zip(b).map(|(a, b)| compare_values(a, b)).find(|o| o.is_ne());
            differing.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let pairs =
                a.iter().zip(b).map(|((ka, va), (kb, vb))| ka.cmp(kb).then_with(|| compare_values(va, vb)));
            pairs.into_iter().find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => kind_rank(a).cmp(&kind_rank(b)),
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    if let (Some(a), Some(b)) = (a.as_u64(), b.as_u64()) {
        return a.cmp(&b);
    }
    let float = |n: &Number| n.as_f64().unwrap_or(f64::NAN);
    float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal)
}

fn kind_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// A JSON value as a key of an ordered map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ordered<'a>(pub &'a Value);

impl Ord for Ordered<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(self.0, other.0)
    }
}

impl PartialOrd for Ordered<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ordered<'_> {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", Scalar(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", Scalar(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A value as it stands in the text of a path.
struct Scalar<'a>(&'a Value);

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) => write!(f, "{text:?}"),
            other => write!(f, "{other}"),
        }
    }
}

/// The way from the root of an object to one of its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Path(pub Vec<PathElement>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

impl<'a> FromIterator<&'a str> for Path {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        Self(names.into_iter().map(PathElement::field).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_reads_as_in_conflict_messages() {
        let path = Path(vec![
            PathElement::field("spec"),
            PathElement::field("containers"),
            PathElement::key([("name", json!("web"))]),
            PathElement::field("image"),
        ]);
        assert_eq!(path.to_string(), r#".spec.containers[name="web"].image"#);
        let port = PathElement::key([("protocol", json!("TCP")), ("containerPort", json!(80))]);
        assert_eq!(port.to_string(), r#"[containerPort=80,protocol="TCP"]"#);
        assert_eq!(PathElement::value(json!("kubernetes.io/pv")).to_string(), r#"[="kubernetes.io/pv"]"#);
        assert_eq!(PathElement::Index(3).to_string(), "[3]");
    }

    #[test]
    fn elements_order_by_kind_and_numbers_by_value() {
        let mut elements = [
            PathElement::Index(0),
            PathElement::value(json!(10)),
            PathElement::value(json!(9)),
            PathElement::key([("a", json!("x"))]),
            PathElement::field("z"),
        ];
        elements.sort();
        let text: Vec<_> = elements.iter().map(ToString::to_string).collect();
        assert_eq!(text, [".z", r#"[a="x"]"#, "[=9]", "[=10]", "[0]"]);
        assert_eq!(PathElement::value(json!(1)), PathElement::value(json!(1.0)));
    }
}
