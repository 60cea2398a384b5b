//! The entries of `metadata.managedFields`: decoding, encoding, their order and their number.
//!
//! Owns the form in which ownership is stored. Must never decide who owns a field.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::set::Set;
use super::typed::collapse_atomic;
use super::{FieldsError, Problem};
use crate::schema::Schema;

/// More entries of updaters than this are merged into one, oldest first. Appliers are never merged: they
/// could not take back what they no longer know to be theirs.
const MAX_UPDATERS: usize = 10;

/// The manager that stands for updaters whose entries were merged.
const MERGED_UPDATERS: &str = "ancient-changes";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What makes an entry one of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub manager: Box<str>,
    pub operation: Operation,
    /// Empty for appliers: an applier that moves to another version of a kind stays the same one.
    version: Box<str>,
    pub subresource: Box<str>,
}

impl Identity {
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let version = if operation == Operation::Apply { "" } else { api_version };
        Self { manager: manager.into(), operation, version: version.into(), subresource: subresource.into() }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub api_version: Box<str>,
    pub time: Option<Time>,
    pub set: Set,
}

/// The time of an entry, with the text it was stored as.
#[derive(Debug, Clone)]
pub(super) struct Time {
    second: i64,
    pub text: Box<str>,
}

impl Time {
    pub fn of(now: Timestamp) -> Self {
        let second = now.as_second();
        let whole = Timestamp::from_second(second).unwrap_or(now);
        Self { second, text: whole.to_string().into() }
    }
}

/// All managers of one object.
#[derive(Debug, Clone, Default)]
pub(super) struct Managers(BTreeMap<Identity, Entry>);

impl Managers {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, identity: &Identity) -> Option<&Entry> {
        self.0.get(identity)
    }

    pub fn insert(&mut self, identity: Identity, entry: Entry) {
        self.0.insert(identity, entry);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Identity, &Entry)> {
        self.0.iter()
    }

    /// Adds to what an updater owns, as of `time`.
    pub fn credit(&mut self, identity: Identity, entry: Entry) {
        match self.0.get_mut(&identity) {
            Some(own) => {
                own.set.absorb(entry.set);
                own.time = entry.time;
                own.api_version = entry.api_version;
            }
            None => self.insert(identity, entry),
        }
    }

    /// Takes `fields` away from everybody but `except`.
    pub fn take_away(&mut self, fields: &Set, except: Option<&Identity>) {
        for (_, entry) in self.0.iter_mut().filter(|(identity, _)| Some(*identity) != except) {
            entry.set.subtract(fields);
        }
    }

    pub fn drop_empty(&mut self) {
        self.0.retain(|_, entry| !entry.set.is_empty());
    }

    /// Follows containers that have become atomic since the sets were stored.
    pub fn follow_schema(&mut self, schema: &Schema) {
        for entry in self.0.values_mut() {
            collapse_atomic(schema, &mut entry.set);
        }
    }

    /// Merges the oldest updaters of each version until few enough are left.
    pub fn cap_updaters(&mut self) {
        let mut updaters: Vec<(i64, Identity)> = self
            .0
            .iter()
            .filter(|(identity, _)| identity.operation == Operation::Update)
            .map(|(identity, entry)| (entry.time.as_ref().map_or(0, |time| time.second), identity.clone()))
            .collect();
        let mut surplus = updaters.len().saturating_sub(MAX_UPDATERS);
        if surplus == 0 {
            return;
        }
        updaters.sort();
        let mut oldest: BTreeMap<Box<str>, Vec<Identity>> = BTreeMap::new();
        for (_, updater) in updaters {
            if surplus == 0 {
                break;
            }
            let same_version = oldest.entry(updater.version.clone()).or_default();
            // The first of a version leaves no entry less: its own becomes the one that the others join.
            surplus -= usize::from(!same_version.is_empty());
            same_version.push(updater);
        }
        for (version, updaters) in oldest.into_iter().filter(|(_, updaters)| updaters.len() > 1) {
            self.merge(&version, &updaters);
        }
    }

    /// Gives everything that `updaters`, oldest first, own to the manager that stands for them, as of the
    /// last one's time.
    fn merge(&mut self, version: &str, updaters: &[Identity]) {
        let merged: Vec<Entry> = updaters.iter().filter_map(|updater| self.0.remove(updater)).collect();
        let time = merged.last().and_then(|entry| entry.time.clone());
        let set = Set::union_all(merged.into_iter().map(|entry| entry.set).collect());
        let bucket = Identity::new(MERGED_UPDATERS, Operation::Update, version, "");
        self.credit(bucket, Entry { api_version: version.into(), time, set });
    }

    /// Reads `metadata.managedFields`.
    pub fn decode(list: &Value) -> Result<Self, FieldsError> {
        let entries = list.as_array().ok_or_else(|| undecodable("not a list"))?;
        let mut managers = Self::default();
        for entry in entries {
            let (identity, entry) = decode_entry(entry)?;
            managers.insert(identity, entry);
        }
        Ok(managers)
    }

    /// The form of `metadata.managedFields`; nothing when nobody owns anything.
    pub fn encode(&self) -> Option<Value> {
        let mut entries: Vec<(&Identity, &Entry)> = self.0.iter().collect();
        entries.sort_by_key(|(identity, entry)| {
            let second = entry.time.as_ref().map_or(0, |time| time.second);
            (identity.operation, second, &identity.manager, &entry.api_version, &identity.subresource)
        });
        let list: Vec<Value> = entries.into_iter().map(encode_entry).collect();
        (!list.is_empty()).then_some(Value::Array(list))
    }
}

fn decode_entry(entry: &Value) -> Result<(Identity, Entry), FieldsError> {
    let fields = entry.as_object().ok_or_else(|| undecodable("an entry is not an object"))?;
    let operation = match text(fields, "operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(undecodable("operation must be `Apply` or `Update`")),
    };
    let api_version = text(fields, "apiVersion")?;
    if api_version.is_empty() {
        return Err(undecodable("apiVersion must not be empty"));
    }
    if text(fields, "fieldsType")? != "FieldsV1" {
        return Err(undecodable("fieldsType must be `FieldsV1`"));
    }
    let set = match fields.get("fieldsV1") {
        None | Some(Value::Null) => Set::new(),
        Some(fields) => Set::from_fields_v1(fields)?,
    };
    let time = match text(fields, "time")? {
        "" => None,
        text => {
            let parsed: Timestamp = text.parse().map_err(|_| undecodable("time is not a time"))?;
            Some(Time { second: parsed.as_second(), text: text.into() })
        }
    };
    let identity =
        Identity::new(text(fields, "manager")?, operation, api_version, text(fields, "subresource")?);
    Ok((identity, Entry { api_version: api_version.into(), time, set }))
}

/// A text field; empty when absent or null.
fn text<'v>(fields: &'v Map<String, Value>, name: &str) -> Result<&'v str, FieldsError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(undecodable(&format!("{name} is not a string"))),
    }
}

fn encode_entry((identity, entry): (&Identity, &Entry)) -> Value {
    let mut fields = Map::new();
    fields.insert("apiVersion".into(), (*entry.api_version).into());
    fields.insert("fieldsType".into(), "FieldsV1".into());
    fields.insert("fieldsV1".into(), entry.set.to_fields_v1());
    if !identity.manager.is_empty() {
        fields.insert("manager".into(), (*identity.manager).into());
    }
    fields.insert("operation".into(), identity.operation.as_str().into());
    if !identity.subresource.is_empty() {
        fields.insert("subresource".into(), (*identity.subresource).into());
    }
    if let Some(time) = &entry.time {
        fields.insert("time".into(), (*time.text).into());
    }
    Value::Object(fields)
}

fn undecodable(why: &str) -> FieldsError {
    Problem::Undecodable(why.to_owned()).here()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, version: &str, time: &str, field: &str) -> Value {
        json!({
            "manager": manager, "operation": operation, "apiVersion": version, "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {format!("f:{field}"): {}},
        })
    }

    fn managers(list: &Value) -> Vec<&str> {
        list.as_array().unwrap().iter().map(|entry| entry["manager"].as_str().unwrap()).collect()
    }

    #[test]
    fn appliers_come_first_then_the_oldest_then_by_name() {
        let list = json!([
            entry("b", "Update", "v1", "2024-01-01T00:00:02Z", "b"),
            entry("a", "Update", "v1", "2024-01-01T00:00:02Z", "a"),
            entry("z", "Update", "v1", "2024-01-01T00:00:01Z", "z"),
            entry("m", "Apply", "v1", "2024-01-01T00:00:09Z", "m"),
        ]);
        let encoded = Managers::decode(&list).unwrap().encode().unwrap();
        assert_eq!(managers(&encoded), ["m", "z", "a", "b"]);
        let again = Managers::decode(&encoded).unwrap().encode().unwrap();
        assert_eq!(again, encoded);
    }

    #[test]
    fn an_applier_is_the_same_in_every_version_and_an_updater_is_not() {
        let list = |operation| {
            json!([
                entry("a", operation, "v1", "2024-01-01T00:00:01Z", "x"),
                entry("a", operation, "v2", "2024-01-01T00:00:01Z", "y"),
            ])
        };
        assert_eq!(Managers::decode(&list("Apply")).unwrap().0.len(), 1);
        assert_eq!(Managers::decode(&list("Update")).unwrap().0.len(), 2);
    }

    #[test]
    fn what_is_not_an_entry_is_refused() {
        let good = entry("a", "Apply", "v1", "2024-01-01T00:00:01Z", "x");
        assert!(Managers::decode(&json!([good])).is_ok());
        for (field, wrong) in [
            ("operation", json!("Patch")),
            ("apiVersion", json!("")),
            ("fieldsType", json!("FieldsV2")),
            ("fieldsType", json!(null)),
            ("fieldsV1", json!({"nonsense": {}})),
            ("time", json!("yesterday")),
            ("manager", json!(7)),
        ] {
            let mut bad = good.clone();
            bad[field] = wrong;
            assert!(Managers::decode(&json!([bad])).is_err(), "{field}");
        }
        assert!(Managers::decode(&json!({})).is_err());
        assert!(Managers::decode(&json!(["x"])).is_err());
    }

    #[test]
    fn the_oldest_updaters_are_merged_when_there_are_too_many() {
        let mut list: Vec<Value> = (0..12)
            .map(|n| {
                entry(
                    &format!("m{n:02}"),
                    "Update",
                    "v1",
                    &format!("2024-01-01T00:00:{n:02}Z"),
                    &format!("x{n}"),
                )
            })
            .collect();
        list.push(entry("applier", "Apply", "v1", "2024-01-01T00:00:00Z", "y"));
        let mut managers_ = Managers::decode(&Value::Array(list)).unwrap();
        managers_.cap_updaters();
        let encoded = managers_.encode().unwrap();
        let mut want = vec!["applier", "ancient-changes"];
        let rest: Vec<String> = (3..12).map(|n| format!("m{n:02}")).collect();
        want.extend(rest.iter().map(String::as_str));
        assert_eq!(managers(&encoded), want);
        assert_eq!(encoded[1]["fieldsV1"], json!({"f:x0": {}, "f:x1": {}, "f:x2": {}}));
        assert_eq!(encoded[1]["time"], "2024-01-01T00:00:02Z");
    }

    #[test]
    fn versions_are_merged_apart_and_an_earlier_merger_is_added_to() {
        let mut list: Vec<Value> = (0..10)
            .map(|n| {
                let version = if n % 2 == 0 { "v1" } else { "v2" };
                entry(
                    &format!("m{n}"),
                    "Update",
                    version,
                    &format!("2024-01-01T00:00:1{n}Z"),
                    &format!("x{n}"),
                )
            })
            .collect();
        list.push(entry("ancient-changes", "Update", "v1", "2024-01-01T00:00:00Z", "old"));
        let mut managers_ = Managers::decode(&Value::Array(list)).unwrap();
        managers_.cap_updaters();
        let encoded = managers_.encode().unwrap();
        assert_eq!(encoded.as_array().unwrap().len(), 10);
        assert_eq!(encoded[0]["manager"], "ancient-changes");
        assert_eq!(encoded[0]["fieldsV1"], json!({"f:old": {}, "f:x0": {}}));
    }
}
