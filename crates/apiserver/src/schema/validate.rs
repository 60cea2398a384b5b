//! Validation of values against a schema, in the words Kubernetes users know.
//!
//! Owns the walk, the order of the checks and which errors an update is excused from: a part that an update
//! leaves as it was may break a rule that came later. Must never change a value.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::path::{NO_FIELD, Path};
use super::update::{OldItems, unchanged};
use super::{Kind, Rules, Schema, cel, invariants, scalars};
use crate::error::{FieldError, FieldReason};

/// Everything that is wrong with an object; `old` is what an update replaces.
pub fn validate(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = constraints(schema, new, old);
    errors.extend(invariants::embedded(schema, new));
    if old.is_none_or(|old| invariants::duplicates(schema, old).is_empty()) {
        errors.extend(invariants::duplicates(schema, new));
    }
    if schema.has_cel {
        if errors.iter().any(blocks_rules) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";
            errors.push(FieldError::invalid(NO_FIELD, Value::Null, why));
        } else {
            errors.extend(cel::validate(schema, new, old));
        }
    }
    errors
}

/// What types and limits alone say.
pub(super) fn constraints(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut walk = Walk { path: Path::default(), errors: Vec::new() };
    // The object as a whole is never excused, only parts of it.
    walk.check(schema, new, old);
    let mut seen = HashSet::new();
    walk.errors.retain(|error| seen.insert(error.to_string()));
    walk.errors
}

/// Rules are written for objects of the right shape; on others they would only add confusion.
fn blocks_rules(error: &FieldError) -> bool {
    use FieldReason::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error.reason, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

struct Walk {
    path: Path,
    errors: Vec<FieldError>,
}

impl Walk {
    fn node(&mut self, schema: &Schema, new: &Value, old: Option<&Value>) {
        let before = self.errors.len();
        self.check(schema, new, old);
        if self.errors.len() > before && old.is_some_and(|old| unchanged(schema, new, old)) {
            self.errors.truncate(before);
        }
    }

    fn check(&mut self, schema: &Schema, new: &Value, old: Option<&Value>) {
        let none = Rules::default();
        let rules = schema.rules.as_deref().unwrap_or(&none);
        scalars::check_type(schema, rules, new, &self.path, &mut self.errors);
        if !new.is_null() {
            self.branches(rules, new, old);
        }
        match new {
            Value::String(text) => scalars::check_string(rules, text, &self.path, &mut self.errors),
            Value::Number(number) => {
                scalars::check_number(schema.kind, rules, number, &self.path, &mut self.errors);
            }
            Value::Array(list) => self.list(schema, rules, list, old),
            _ => {}
        }
        scalars::check_enum(rules, new, &self.path, &mut self.errors);
        if let Value::Object(object) = new {
            self.object(schema, rules, object, old);
        }
    }

    fn list(&mut self, schema: &Schema, rules: &Rules, list: &[Value], old: Option<&Value>) {
        if let Some(items) = &schema.items {
            let old = OldItems::new(schema, old);
            for (index, child) in list.iter().enumerate() {
                let mark = self.path.index(index);
                self.node(items, child, old.matching(child));
                self.path.back(mark);
            }
        }
        let size = list.len() as i64;
        if let Some(limit) = rules.min_items.filter(|limit| size < *limit) {
            self.invalid(size.into(), &format!("should have at least {limit} items"));
        }
        if let Some(limit) = rules.max_items.filter(|limit| size > *limit) {
            self.too_many(size, limit);
        }
    }

    fn object(&mut self, schema: &Schema, rules: &Rules, object: &Map<String, Value>, old: Option<&Value>) {
        let size = object.len() as i64;
        if let Some(limit) = rules.min_properties.filter(|limit| size < *limit) {
            self.invalid(size.into(), &format!("should have at least {limit} properties"));
        }
        if let Some(limit) = rules.max_properties.filter(|limit| size > *limit) {
            self.too_many(size, limit);
        }
        for (name, child) in object {
            if let Some(field) = schema.field(name) {
                let mark = self.path.field(name);
                self.node(field, child, old.and_then(|old| old.get(name)));
                self.path.back(mark);
            }
        }
        for name in schema.required.iter().filter(|name| !object.contains_key(&***name)) {
            let mark = self.path.field(name);
            self.errors.push(FieldError::required(self.path.as_str(), ""));
            self.path.back(mark);
        }
    }

    fn branches(&mut self, rules: &Rules, new: &Value, old: Option<&Value>) {
        let path = self.path.as_str().to_string();
        if !rules.any_of.is_empty() {
            let outcomes = self.outcomes(&rules.any_of, new, old);
            if outcomes.iter().all(|errors| !errors.is_empty()) {
                self.whole(format!("{path:?} must validate at least one schema (anyOf)"));
                self.errors.extend(closest(outcomes));
            }
        }
        if !rules.one_of.is_empty() {
            let outcomes = self.outcomes(&rules.one_of, new, old);
            let valid = outcomes.iter().filter(|errors| errors.is_empty()).count();
            if valid == 0 {
                self.whole(format!(
                    "{path:?} must validate one and only one schema (oneOf). Found none valid"
                ));
                self.errors.extend(closest(outcomes));
            } else if valid > 1 {
                self.whole(format!(
                    "{path:?} must validate one and only one schema (oneOf). Found {valid} valid alternatives"
                ));
            }
        }
        if !rules.all_of.is_empty() {
            let outcomes = self.outcomes(&rules.all_of, new, old);
            let valid = outcomes.iter().filter(|errors| errors.is_empty()).count();
            let all = outcomes.len();
            self.errors.extend(outcomes.into_iter().flatten());
            if valid < all {
                let none = if valid == 0 { ". None validated" } else { "" };
                self.whole(format!("{path:?} must validate all the schemas (allOf){none}"));
            }
        }
        if let Some(not) = &rules.not
            && self.outcomes(std::slice::from_ref(not), new, old).iter().all(Vec::is_empty)
        {
            self.whole(format!("{path:?} must not validate the schema (not)"));
        }
    }

    fn outcomes(&mut self, branches: &[Schema], new: &Value, old: Option<&Value>) -> Vec<Vec<FieldError>> {
        let kept = std::mem::take(&mut self.errors);
        let outcomes = branches
            .iter()
            .map(|branch| {
                self.check(branch, new, old);
                std::mem::take(&mut self.errors)
            })
            .collect();
        self.errors = kept;
        outcomes
    }

    /// Kubernetes gives no field for what a combination of schemas demands.
    fn whole(&mut self, why: String) {
        self.errors.push(FieldError::invalid(NO_FIELD, "", why));
    }

    fn invalid(&mut self, value: Value, demand: &str) {
        let why = format!("{} in body {demand}", self.path.as_str());
        self.errors.push(FieldError::invalid(self.path.shown(), value, why));
    }

    fn too_many(&mut self, size: i64, limit: i64) {
        self.errors.push(FieldError {
            path: self.path.shown().into(),
            reason: FieldReason::TooMany,
            value: Some(size.into()),
            detail: format!("must have at most {limit} item{}", if limit == 1 { "" } else { "s" }),
        });
    }
}

/// Of several failed alternatives, the one that was nearly right says most.
fn closest(outcomes: Vec<Vec<FieldError>>) -> Vec<FieldError> {
    outcomes.into_iter().min_by_key(Vec::len).unwrap_or_default()
}

/// What a `type` keyword says for this kind; several are joined by commas.
pub(super) fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Any => "",
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        Kind::IntOrString => "integer,string",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{any_json, any_schema};
    use super::super::{apply_defaults, from_crd, prune};
    use super::*;

    fn texts(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
        let schema = from_crd(schema).expect("a good schema");
        validate(&schema, new, old).iter().map(ToString::to_string).collect()
    }

    fn spec(properties: &Value) -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    }

    #[test]
    fn types_are_told_apart() {
        let schema = spec(&json!({
            "replicas": {"type": "integer"}, "size": {"type": "integer", "format": "int32"}, "name": {"type": "string"},
            "ratio": {"type": "number"}, "port": {"x-kubernetes-int-or-string": true}, "maybe": {"type": "string", "nullable": true},
        }));
        let good = json!({"spec": {"replicas": 3.0, "size": 1, "name": "", "ratio": 1, "port": "http", "maybe": null}});
        assert_eq!(texts(&schema, &good, None), [""; 0]);
        let bad = json!({"spec": {"replicas": "x", "size": true, "name": null, "ratio": [], "port": 1.5}});
        assert_eq!(
            texts(&schema, &bad, None),
            [
                "spec.name: Invalid value: \"null\": spec.name in body must be of type string: \"null\"",
                "spec.port: Invalid value: \"number\": spec.port in body must be of type integer,string: \"number\"",
                "spec.ratio: Invalid value: \"array\": spec.ratio in body must be of type number: \"array\"",
                "spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type integer: \"string\"",
                "spec.size: Invalid value: \"\": spec.size in body must be of type int32: \"\"",
            ]
        );
    }

    #[test]
    fn limits_speak_the_words_of_kubernetes() {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "mode": {"type": "string", "enum": ["a", "b"]},
                "count": {"type": "integer", "minimum": 1, "maximum": 10},
                "half": {"type": "number", "exclusiveMinimum": true, "minimum": 0.5, "multipleOf": 0.25},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2},
                "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "format": "ipv4"}},
                "map": {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "integer"}},
                "int": {"type": "integer", "format": "int32"},
            },
        }}});
        let bad = json!({"spec": {
            "mode": "x", "count": 0, "half": 0.3, "name": "abcdef", "list": ["1.2.3.4", "x", "::1"],
            "map": {"a": 1, "b": "y"}, "int": 3_000_000_000_u32,
        }});
        assert_eq!(
            texts(&schema, &bad, None),
            [
                "spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1",
                "spec.half: Invalid value: 0.3: spec.half in body should be a multiple of 0.25",
                "spec.half: Invalid value: 0.3: spec.half in body should be greater than 0.5",
                "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.int",
                "spec.list[1]: Invalid value: \"x\": spec.list[1] in body must be of type ipv4: \"x\"",
                "spec.list[2]: Invalid value: \"::1\": spec.list[2] in body must be of type ipv4: \"::1\"",
                "spec.list: Too many: 3: must have at most 2 items",
                "spec.map: Too many: 2: must have at most 1 item",
                "spec.map.b: Invalid value: \"string\": spec.map.b in body must be of type integer: \"string\"",
                "spec.mode: Unsupported value: \"x\": supported values: \"a\", \"b\"",
                "spec.name: Too long: may not be more than 5 bytes",
                "spec.size: Required value",
            ]
        );
        let short =
            json!({"spec": {"size": 1, "count": 11, "name": "A", "list": [], "map": {}, "half": 0.5}});
        assert_eq!(
            texts(&schema, &short, None),
            [
                "spec.count: Invalid value: 11: spec.count in body should be less than or equal to 10",
                "spec.half: Invalid value: 0.5: spec.half in body should be greater than 0.5",
                "spec.list: Invalid value: 0: spec.list in body should have at least 1 items",
                "spec.map: Invalid value: 0: spec.map in body should have at least 1 properties",
                "spec.name: Invalid value: \"A\": spec.name in body should be at least 2 chars long",
            ]
        );
        assert_eq!(
            texts(&schema, &json!({"spec": {"size": 1, "name": "ABC"}}), None),
            ["spec.name: Invalid value: \"ABC\": spec.name in body should match '^[a-z]+$'"]
        );
    }

    #[test]
    fn combinations_of_schemas() {
        let schema = spec(&json!({
            "any": {"type": "string", "anyOf": [{"minLength": 3}, {"pattern": "^x"}]},
            "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "all": {"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 5}]},
            "not": {"type": "string", "not": {"enum": ["root"]}},
        }));
        let good = json!({"spec": {"any": "xy", "one": {"a": ""}, "all": 3, "not": "me"}});
        assert_eq!(texts(&schema, &good, None), [""; 0]);
        let bad = json!({"spec": {"any": "y", "one": {"a": "", "b": ""}, "all": 9, "not": "root"}});
        assert_eq!(
            texts(&schema, &bad, None),
            [
                "spec.all: Invalid value: 9: spec.all in body should be less than or equal to 5",
                "<nil>: Invalid value: \"\": \"spec.all\" must validate all the schemas (allOf)",
                "<nil>: Invalid value: \"\": \"spec.any\" must validate at least one schema (anyOf)",
                "spec.any: Invalid value: \"y\": spec.any in body should be at least 3 chars long",
                "<nil>: Invalid value: \"\": \"spec.not\" must not validate the schema (not)",
                "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ]
        );
    }

    #[test]
    fn an_update_is_excused_from_what_it_does_not_touch() {
        let schema = spec(&json!({
            "name": {"type": "string", "pattern": "^[a-z]+$"},
            "count": {"type": "integer"},
            "disks": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                "items": {"type": "object", "properties": {"id": {"type": "string"}, "size": {"type": "integer", "minimum": 1}}}},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        }));
        let old =
            json!({"spec": {"name": "OLD", "count": 1, "disks": [{"id": "a", "size": 0}], "tags": ["long"]}});
        let mut new = old.clone();
        new["spec"]["count"] = 2.into();
        assert_eq!(texts(&schema, &new, Some(&old)), [""; 0]);
        new["spec"]["disks"] = json!([{"id": "b", "size": 0}, {"id": "a", "size": 0}]);
        new["spec"]["tags"] = json!(["long", "x"]);
        assert_eq!(
            texts(&schema, &new, Some(&old)),
            [
                "spec.disks[0].size: Invalid value: 0: spec.disks[0].size in body should be greater than or equal to 1",
                "spec.tags[0]: Too long: may not be more than 1 byte",
            ]
        );
    }

    proptest! {
        #[test]
        fn any_value_is_judged_without_panic(schema in any_schema(), new in any_json(), old in any_json()) {
            let schema = from_crd(&schema).expect("generated schemas are well formed");
            validate(&schema, &new, None);
            validate(&schema, &new, Some(&old));
        }

        #[test]
        fn an_update_is_never_blamed_for_a_part_it_leaves_alone(schema in any_schema(), mut value in any_json()) {
            let schema = from_crd(&schema).expect("generated schemas are well formed");
            prune(&schema, &mut value);
            apply_defaults(&schema, &mut value);
            let same = unchanged(&schema, &value, &value);
            let object = json!({"part": value});
            let around = Schema { properties: [("part".into(), schema.into())].into(), ..Schema::of(Kind::Object) };
            prop_assert!(!same || constraints(&around, &object, Some(&object)).is_empty());
        }
    }
}
