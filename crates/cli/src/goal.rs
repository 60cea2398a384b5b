//! What `wait --for` waits for, and whether an object is there yet.
//! Decides from one object at a time; it neither waits nor asks the API.

use serde_json::Value;

use crate::fieldpath::{FieldPath, plain};

/// The state that ends a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// The object is gone.
    Delete,
    /// The object exists.
    Create,
    /// A condition has this status.
    Condition { name: String, status: String },
    /// A field has this value, or with `None` any value at all.
    Field { path: FieldPath, value: Option<String> },
}

impl std::str::FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "delete" => return Ok(Self::Delete),
            "create" => return Ok(Self::Create),
            _ => {}
        }
        if let Some(condition) = text.strip_prefix("condition=") {
            let (name, status) = condition.split_once('=').unwrap_or((condition, "True"));
            if name.is_empty() || status.is_empty() {
                return Err(format!("{text:?} names no condition; example: condition=Ready"));
            }
            return Ok(Self::Condition { name: name.into(), status: status.into() });
        }
        let (path, value) = split_value(text.strip_prefix("jsonpath=").unwrap_or(text));
        if value.is_none() && !text.starts_with("jsonpath=") {
            return Err(format!(
                "cannot wait for {text:?}; examples: condition=Ready, delete, create, status.phase=Bound"
            ));
        }
        let value = value.map(|value| value.trim_matches(['"', '\'']).to_owned());
        Ok(Self::Field { path: path.parse()?, value })
    }
}

/// Splits at the first `=` that is not inside brackets.
fn split_value(text: &str) -> (&str, Option<&str>) {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => return (&text[..at], Some(&text[at + 1..])),
            _ => {}
        }
    }
    (text, None)
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Delete => f.write_str("deletion"),
            Self::Create => f.write_str("creation"),
            Self::Condition { name, status } => write!(f, "condition {name}={status}"),
            Self::Field { path, value: Some(value) } => write!(f, "{path}={value}"),
            Self::Field { path, value: None } => write!(f, "{path}"),
        }
    }
}

impl Goal {
    /// What to say of an object that is there.
    pub fn reached(&self) -> String {
        match self {
            Self::Delete => "is gone".into(),
            Self::Create => "exists".into(),
            other => format!("has {other}"),
        }
    }

    /// Whether this object (`None`: it does not exist) fulfils the goal.
    pub fn is_met(&self, object: Option<&Value>) -> bool {
        match (self, object) {
            (Self::Delete, object) => object.is_none(),
            (_, None) => false,
            (Self::Create, Some(_)) => true,
            (Self::Condition { name, status }, Some(object)) => condition(object, name)
                .filter(|condition| is_current(object, condition))
                .and_then(|condition| condition["status"].as_str())
                .is_some_and(|is| is.eq_ignore_ascii_case(status)),
            (Self::Field { path, value: Some(wanted) }, Some(object)) => {
                path.find(object).iter().any(|found| plain(found) == *wanted)
            }
            (Self::Field { path, value: None }, Some(object)) => path.first(object).is_some(),
        }
    }

    /// What stands in the way, for the message when time runs out.
    pub fn now(&self, object: Option<&Value>) -> String {
        let Some(object) = object else { return "it does not exist".into() };
        match self {
            Self::Delete => deletion_state(object),
            Self::Create => "it exists".into(),
            Self::Condition { name, .. } => match condition(object, name) {
                None => format!("it has no condition {name}"),
                Some(found) => {
                    let status = found["status"].as_str().unwrap_or("unset");
                    let reason =
                        found["reason"].as_str().map(|text| format!(" ({text})")).unwrap_or_default();
                    let message = found["message"].as_str().filter(|text| !text.is_empty());
                    let message = message.map(|text| format!(": {text}")).unwrap_or_default();
                    let old = if is_current(object, found) { "" } else { " for an older generation" };
                    format!("{name} is {status}{old}{reason}{message}")
                }
            },
            Self::Field { path, .. } => match path.first(object) {
                Some(value) => format!("{path} is {}", plain(value)),
                None => format!("{path} is not set"),
            },
        }
    }
}

/// Why an object that should be gone is still there.
pub fn deletion_state(object: &Value) -> String {
    let metadata = &object["metadata"];
    if metadata["deletionTimestamp"].is_null() {
        return "nobody has deleted it".into();
    }
    let finalizers: Vec<&str> =
        metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if finalizers.is_empty() {
        "it is being deleted".into()
    } else {
        format!("it is being deleted and waits for {}", finalizers.join(", "))
    }
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"].as_str().is_some_and(|is| is.eq_ignore_ascii_case(name)))
}

/// A condition that was computed before the last change of the spec says nothing about it.
fn is_current(object: &Value, condition: &Value) -> bool {
    let observed =
        condition["observedGeneration"].as_i64().or_else(|| object["status"]["observedGeneration"].as_i64());
    match (observed, object["metadata"]["generation"].as_i64()) {
        (Some(observed), Some(generation)) => observed >= generation,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn goal(text: &str) -> Goal {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_condition_is_met_by_its_status() {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert!(goal("condition=Ready").is_met(Some(&ready)));
        assert!(goal("condition=ready=true").is_met(Some(&ready)));
        assert!(!goal("condition=Ready=False").is_met(Some(&ready)));
        assert!(!goal("condition=Healthy").is_met(Some(&ready)));
        assert!(!goal("condition=Ready").is_met(None));
    }

    #[test]
    fn a_condition_about_an_older_spec_does_not_count() {
        let mut object = json!({
            "metadata": {"generation": 3},
            "status": {"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True"}]},
        });
        assert!(!goal("condition=Ready").is_met(Some(&object)));
        assert!(goal("condition=Ready").now(Some(&object)).contains("older generation"));
        object["status"]["observedGeneration"] = json!(3);
        assert!(goal("condition=Ready").is_met(Some(&object)));
        object["status"]["conditions"][0]["observedGeneration"] = json!(1);
        assert!(!goal("condition=Ready").is_met(Some(&object)));
    }

    #[test]
    fn fields_are_compared_as_people_write_them() {
        let claim =
            json!({"status": {"phase": "Bound", "n": 3, "conditions": [{"type": "A", "status": "True"}]}});
        for met in [
            "status.phase=Bound",
            "jsonpath={.status.phase}=Bound",
            "jsonpath='{.status.phase}'=Bound",
            "jsonpath={.status.n}=3",
            "jsonpath={.status.phase}",
            "jsonpath={.status.conditions[?(@.type==\"A\")].status}=True",
        ] {
            let met = met.replace('\'', "");
            assert!(goal(&met).is_met(Some(&claim)), "{met}");
        }
        assert!(!goal("status.phase=Lost").is_met(Some(&claim)));
        assert!(!goal("jsonpath={.status.size}").is_met(Some(&claim)));
    }

    #[test]
    fn deletion_and_creation_need_no_value() {
        assert!(goal("delete").is_met(None) && !goal("delete").is_met(Some(&json!({}))));
        assert!(!goal("create").is_met(None) && goal("create").is_met(Some(&json!({}))));
    }

    #[test]
    fn nonsense_is_refused_with_examples() {
        for wrong in ["", "Ready", "condition=", "condition==x", "condition=Ready="] {
            assert!(wrong.parse::<Goal>().unwrap_err().contains("example"), "{wrong:?}");
        }
    }

    #[test]
    fn running_out_of_time_says_what_is_missing() {
        let object = json!({
            "metadata": {"deletionTimestamp": "x", "finalizers": ["a/b", "c"]},
            "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NoSpace", "message": "disk full"}]},
        });
        assert_eq!(goal("condition=Ready").now(Some(&object)), "Ready is False (NoSpace): disk full");
        assert_eq!(goal("condition=Up").now(Some(&object)), "it has no condition Up");
        assert_eq!(goal("delete").now(Some(&object)), "it is being deleted and waits for a/b, c");
        assert_eq!(goal("status.phase=Bound").now(Some(&object)), "status.phase is not set");
        assert_eq!(goal("status.phase=Bound").now(None), "it does not exist");
    }
}
