//! What must hold for every kind and any object, however hostile.
//!
//! Owns a generator that follows each kind's own schema and breaks it here and there. Must never know a kind.

use proptest::prelude::{ProptestConfig, any, proptest};
use serde_json::{Map, Value, json};

use super::testing::{CREATED, now};
use super::{Builtin, KINDS, REVIEWS, access, core_to_events, events_to_core, human};
use crate::error::FieldError;

const TEXTS: [&str; 40] = [
    "",
    "a",
    "A",
    "-",
    "..",
    "../x",
    "/",
    "//",
    "a/b",
    "é\u{1F600}",
    "None",
    "Always",
    "Never",
    "ClusterIP",
    "LoadBalancer",
    "ExternalName",
    "ClientIP",
    "Bound",
    "Active",
    "Exists",
    "In",
    "Webhook",
    "https://h",
    "10Gi",
    "-1",
    "0",
    "1e9999",
    "500m",
    "10.0.0.1",
    "fd00::1",
    "10.0.0.0/8",
    "kubernetes.io/tls",
    "AAAA",
    "=",
    CREATED,
    "9999-12-31T23:59:59Z",
    "kubernetes.io/dockercfg",
    "cpu",
    "storage",
    "metadata.labels['x']",
];
const NUMBERS: [i64; 10] = [i64::MIN, -1, 0, 1, 2, 80, 511, 65535, 65536, i64::MAX];

/// Builds objects from a kind's schema; one seed always gives the same object.
struct Maker<'a> {
    state: u64,
    definitions: &'a Map<String, Value>,
    /// One value in so many is of a wrong type; zero for none.
    broken: u64,
}

impl Maker<'_> {
    fn roll(&mut self, sides: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    fn text(&mut self) -> String {
        TEXTS[self.roll(TEXTS.len() as u64) as usize].into()
    }

    fn junk(&mut self) -> Value {
        match self.roll(8) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(NUMBERS[self.roll(NUMBERS.len() as u64) as usize]),
            3 => json!(0.5),
            4 => json!([]),
            5 => json!({}),
            6 => json!([{ "name": [null] }, "x", 7]),
            _ => self.text().into(),
        }
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if self.broken > 0 && self.roll(self.broken) == 0 {
            return self.junk();
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            let definitions = self.definitions;
            return self.value(definitions.get(name).unwrap_or(&Value::Null), depth);
        }
        for choice in ["allOf", "anyOf", "oneOf"] {
            if let Some(first) = schema[choice].get(0) {
                return self.value(first, depth);
            }
        }
        match schema["type"].as_str().or_else(|| schema["type"].get(0).and_then(Value::as_str)) {
            Some("object") => self.object(schema, depth),
            Some("array") => {
                let length = if depth == 0 { 0 } else { self.roll(3) };
                (0..length).map(|_| self.value(&schema["items"], depth - 1)).collect()
            }
            Some("integer" | "number") => NUMBERS[self.roll(NUMBERS.len() as u64) as usize].into(),
            Some("boolean") => (self.roll(2) == 0).into(),
            Some("string") => self.text().into(),
            _ => self.junk(),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        if depth == 0 {
            return object.into();
        }
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            if self.roll(2) == 0 {
                object.insert(key.clone(), self.value(property, depth - 1));
            }
        }
        if schema["additionalProperties"].is_object() {
            for _ in 0..self.roll(3) {
                let key = self.text();
                object.insert(key, self.value(&schema["additionalProperties"], depth - 1));
            }
        }
        object.into()
    }
}

/// Some object of a kind, and another one like it.
fn made(kind: &Builtin, seed: u64, broken: u64) -> (Value, Value) {
    let mut generator = schemars::SchemaGenerator::default();
    let schema = (kind.schema)(&mut generator).to_value();
    let definitions = generator.take_definitions(false);
    let mut maker = Maker { state: seed, definitions: &definitions, broken };
    (maker.value(&schema, 9), maker.value(&schema, 9))
}

fn kinds() -> impl Iterator<Item = &'static Builtin> {
    KINDS.iter().chain(REVIEWS).copied()
}

fn refusals(kind: &Builtin, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    (kind.validate)(new, old, &mut errors);
    errors
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_panics_on_hostile_objects(seed in any::<u64>()) {
        for kind in kinds() {
            let (mut new, old) = made(kind, seed, 12);
            refusals(kind, &new, None);
            (kind.default)(&mut new);
            refusals(kind, &new, None);
            refusals(kind, &new, Some(&old));
            (kind.carry)(&mut new, &old, now());
            assert_eq!((kind.row)(&new, now()).len(), kind.columns.len(), "{}", kind.kind);
            (kind.fields)(&new);
        }
    }

    #[test]
    fn defaulting_twice_changes_nothing(seed in any::<u64>(), broken in 0..2_u64) {
        for kind in kinds() {
            let (mut once, _) = made(kind, seed, broken * 20);
            (kind.default)(&mut once);
            let mut twice = once.clone();
            (kind.default)(&mut twice);
            assert_eq!(once, twice, "{}", kind.kind);
        }
    }

    #[test]
    fn an_update_that_changes_nothing_is_never_refused_as_a_change(seed in any::<u64>()) {
        for kind in kinds() {
            let (mut object, _) = made(kind, seed, 0);
            (kind.default)(&mut object);
            for refusal in refusals(kind, &object, Some(&object)) {
                let text = refusal.to_string();
                assert!(!text.contains("immutable") && !text.contains("may not change"), "{}: {text}", kind.kind);
            }
        }
    }

    #[test]
    fn events_survive_the_way_through_both_groups(seed in any::<u64>()) {
        let kind = kinds().find(|kind| kind.group == "events.k8s.io").unwrap();
        let (mut event, _) = made(kind, seed, 0);
        event["apiVersion"] = json!("events.k8s.io/v1");
        let core = events_to_core(event.clone());
        assert!(access::same(&core_to_events(core), &event));
    }

    #[test]
    fn every_duration_has_a_text(seconds in any::<i64>()) {
        assert!(!human::human_duration(seconds).is_empty());
    }

    #[test]
    fn sameness_is_symmetric(seed in any::<u64>()) {
        let (a, b) = made(KINDS[0], seed, 4);
        assert!(access::same(&a, &a));
        assert_eq!(access::same(&a, &b), access::same(&b, &a));
    }
}

#[test]
fn every_kind_is_complete_and_listed_once() {
    let mut seen = std::collections::BTreeSet::new();
    for kind in kinds() {
        assert!(seen.insert((kind.group, kind.plural)), "{} twice", kind.plural);
        assert_eq!(kind.singular, kind.kind.to_lowercase());
        assert!(kind.plural.starts_with(&kind.singular[..kind.singular.len() - 1]), "{}", kind.plural);
        let schema = (kind.schema)(&mut schemars::SchemaGenerator::default()).to_value();
        for field in ["apiVersion", "kind", "metadata"] {
            assert!(schema["properties"][field].is_object(), "{} has no {field}", kind.kind);
        }
        assert!(!kind.has_status || schema["properties"]["status"].is_object(), "{}", kind.kind);
        assert!(kind.columns.iter().all(|column| column.description.ends_with('.')), "{}", kind.kind);
        assert_eq!(
            kind.columns.iter().filter(|column| column.format == "name" && column.name == "Name").count(),
            1
        );
    }
}
