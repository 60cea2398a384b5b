//! Stories about rules: what they may say, what they answer, and what hostile ones cannot do.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::testing::any_json;
use super::super::{from_crd, validate};
use super::check;

fn schema(properties: &Value, rules: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": properties, "x-kubernetes-validations": rules,
    }}})
}

fn texts(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = from_crd(schema).expect("a good schema");
    validate(&schema, new, old).iter().map(ToString::to_string).collect()
}

/// Whether a rule holds for a spec with fields of many types.
fn holds(rule: &str) -> Result<bool, String> {
    let properties = json!({
        "n": {"type": "integer"}, "f": {"type": "number"}, "s": {"type": "string"}, "b": {"type": "boolean"},
        "absent": {"type": "string"}, "list": {"type": "array", "items": {"type": "integer"}},
        "words": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "disks": {"type": "array", "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "size": {"type": "integer"},
        }}},
        "when": {"type": "string", "format": "date-time"}, "wait": {"type": "string", "format": "duration"},
        "port": {"x-kubernetes-int-or-string": true}, "data": {"type": "string", "format": "byte"},
        "x-y": {"type": "string"}, "namespace": {"type": "string"}, "snake_case": {"type": "string"},
        "quantity": {"type": "string"},
    });
    let object = json!({"spec": {
        "n": 3, "f": 2, "s": "héllo", "b": true, "list": [3, 1, 2], "words": ["a", "b"], "map": {"a.b": "x", "c": "y"},
        "disks": [{"name": "root", "size": 10}, {"name": "data", "size": 5}],
        "when": "2024-05-06T07:08:09Z", "wait": "90s", "port": 80, "data": "aGk=", "x-y": "dash", "namespace": "ns",
        "snake_case": "snake", "quantity": "10Gi",
    }});
    let schema = schema(&properties, &json!([{"rule": rule, "message": "no"}]));
    match texts(&schema, &object, None).as_slice() {
        [] => Ok(true),
        [one] if one == "spec: Invalid value: no" => Ok(false),
        other => Err(other.join("; ")),
    }
}

#[test]
fn rules_speak_the_language_of_kubernetes() {
    for rule in [
        "self.n == 3 && self.f == 2.0 && self.b",
        "self.s.size() == 5 && size(self.s) == 5",
        "!has(self.absent) && has(self.n)",
        "self.?absent.orValue('none') == 'none' && self.?n.orValue(0) == 3",
        "!self.?absent.hasValue()",
        "self.list.all(x, x > 0) && self.list.exists(x, x == 2) && self.list.exists_one(x, x == 1)",
        "self.list.map(x, x * 2) == [6, 2, 4] && self.list.filter(x, x > 1) == [3, 2]",
        "self.disks.map(d, d.size).sum() == 15",
        "self.disks.all(d, self.disks.exists_one(e, e.name == d.name))",
        "self.list.isSorted() == false && self.list.min() == 1",
        "self.map.all(k, self.map[k] != '') && 'a.b' in self.map && self.map['c'] == 'y'",
        "self.s.startsWith('h') && self.s.matches('^h.l+o$') && self.s.find('l+') == 'll'",
        "self.words.join('-') == 'a-b' && 'a-b-c'.replace('-', '+') == 'a+b+c' && 'a,b'.split(',') == self.words",
        "self.when > timestamp('2024-01-01T00:00:00Z') && self.when.getFullYear() == 2024",
        "self.wait == duration('1m30s')",
        "type(self.port) == int ? self.port > 0 : self.port.matches('^[a-z]+$')",
        "self.data == b'hi' && self.data.size() == 2",
        "self.x__dash__y == 'dash' && self.__namespace__ == 'ns' && self.snake_case == 'snake'",
        "isQuantity(self.quantity) && quantity(self.quantity).isGreaterThan(quantity('1Gi'))",
        "isIP('10.0.0.1') && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "url('https://example.com:8080/a').getHostname() == 'example.com'",
        "!format.dns1123Label().validate('ok').hasValue()",
        "'%s is %d'.format(['n', self.n]) == 'n is 3'",
        "math.greatest(1, self.n) == 3 && sets.contains([1, 2], [2])",
        "semver('1.2.3').isLessThan(semver('2.0.0'))",
        "cel.bind(total, self.disks.map(d, d.size).sum(), total > 10 && total < 20)",
        "self.list.all(i, v, i >= 0 && v > 0) && self.list.exists(i, v, i == 2 && v == 2)",
        "self.map.all(k, v, size(k) > 0 && size(v) == 1)",
        "self.list.transformList(i, v, i + v) == [3, 2, 4]",
        "self.disks.sortBy(d, d.size).map(d, d.name) == ['data', 'root']",
        "self.n in [1, 2, 3] && !(self.s in self.words)",
        "string(self.n) == '3' && int('7') == 7 && bool('true') && dyn(self.n) == 3",
        "{'a': 1}.a == 1 && [[1], [2]].flatten() == [1, 2]",
        "base64.decode('aGk=') == b'hi'",
        "self.n / 2 == 1 && self.n % 2 == 1 && -self.n < 0",
    ] {
        assert_eq!(holds(rule), Ok(true), "{rule}");
    }
    assert_eq!(holds("self.n > 3"), Ok(false));
}

#[test]
fn failures_are_told_in_the_words_of_kubernetes() {
    let rules = json!([
        {"rule": "self.min <= self.max", "message": "min must not be above max", "fieldPath": ".min", "reason": "FieldValueForbidden"},
        {"rule": "self.max < 100", "messageExpression": "'max is ' + string(self.max)"},
        {"rule": "self.min > 0"},
    ]);
    let number = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self % 2 == 0", "message": "must be even"}]});
    let schema = schema(&json!({"min": number, "max": number}), &rules);
    assert_eq!(
        texts(&schema, &json!({"spec": {"min": 0, "max": 101}}), None),
        [
            "spec: Invalid value: max is 101",
            "spec: Invalid value: failed rule: self.min > 0",
            "spec.max: Invalid value: 101: must be even",
        ]
    );
    assert_eq!(
        texts(&schema, &json!({"spec": {"min": 4, "max": 2}}), None),
        ["spec.min: Forbidden: min must not be above max"]
    );
    assert_eq!(
        texts(&schema, &json!({"spec": {"max": 2}}), None),
        [
            "spec: Invalid value: \"object\": no such key: min evaluating rule: min must not be above max",
            "spec: Invalid value: \"object\": no such key: min evaluating rule: self.min > 0",
        ]
    );
    let wrong = json!({"spec": {"min": "x"}});
    assert_eq!(
        texts(&schema, &wrong, None).last().map(String::as_str),
        Some(
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation"
        )
    );
}

#[test]
fn a_transition_rule_compares_with_what_was_there() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "class": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "class is immutable"}]},
        "size": {"type": "integer", "x-kubernetes-validations": [
            {"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "message": "cannot shrink", "optionalOldSelf": true},
        ]},
        "disks": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
            "type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size", "message": "a disk cannot shrink"}],
        }},
    }}}});
    let old = json!({"spec": {"class": "a", "size": 5, "disks": [{"name": "x", "size": 2}, {"name": "y", "size": 2}]}});
    assert_eq!(texts(&schema, &old, None), [""; 0]);
    assert_eq!(texts(&schema, &old, Some(&old)), [""; 0]);
    let new = json!({"spec": {"class": "b", "size": 4, "disks": [{"name": "y", "size": 1}, {"name": "new", "size": 0}]}});
    assert_eq!(
        texts(&schema, &new, Some(&old)),
        [
            "spec.class: Invalid value: \"b\": class is immutable",
            "spec.disks[0]: Invalid value: a disk cannot shrink",
            "spec.size: Invalid value: 4: cannot shrink",
        ]
    );
}

#[test]
fn an_update_is_excused_from_rules_about_what_it_does_not_touch() {
    let schema = schema(
        &json!({"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 10"}]}, "b": {"type": "integer"}}),
        &json!([]),
    );
    let old = json!({"spec": {"a": 1, "b": 1}});
    assert_eq!(texts(&schema, &json!({"spec": {"a": 1, "b": 2}}), Some(&old)), [""; 0]);
    assert_eq!(texts(&schema, &json!({"spec": {"a": 2, "b": 1}}), Some(&old)).len(), 1);
}

#[test]
fn rules_see_the_name_of_a_resource_but_not_the_rest_of_its_metadata() {
    let rule = |rule: &str| json!({"type": "object", "properties": {"spec": {"type": "object"}}, "x-kubernetes-validations": [{"rule": rule}]});
    let object = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "abc", "labels": {"a": "b"}}});
    assert_eq!(texts(&rule("self.metadata.name == 'abc' && self.kind == 'A'"), &object, None), [""; 0]);
    assert_eq!(
        texts(&rule("self.metadata.name.size() > 5"), &object, None),
        ["<nil>: Invalid value: failed rule: self.metadata.name.size() > 5"]
    );
    assert_eq!(texts(&rule("has(self.metadata.labels)"), &object, None).len(), 1);
}

#[test]
fn faults_show_before_a_rule_ever_runs() {
    let schema = from_crd(&schema(&json!({"n": {"type": "integer"}, "m": {"type": "object", "additionalProperties": {"type": "string"}}}), &json!([])))
        .expect("a good schema");
    let spec = &schema.properties["spec"];
    let faults = |rule: Value| -> Vec<String> {
        check(&rule, spec, false)
            .faults
            .into_iter()
            .map(|fault| format!("{}: {}", fault.keyword, fault.detail))
            .collect()
    };
    for rule in [
        "self.n > 0",
        "self.m.all(k, k.startsWith('a'))",
        "self.m.all(k, v, v != k)",
        "oldSelf.n < self.n",
        "[1, 2].map(x, x + self.n).exists(y, y > 3)",
        "cel.bind(x, self.n, x > 0)",
        "self.?n.orValue(1) == 1",
        "has(self.n) ? math.abs(self.n) > 0 : true",
    ] {
        assert_eq!(faults(json!({"rule": rule})), [""; 0], "{rule}");
    }
    assert_eq!(faults(json!({"rule": "self.nn > 0"})), ["rule: compilation failed: undefined field 'nn'"]);
    assert_eq!(
        faults(json!({"rule": "self.n.x"})),
        ["rule: compilation failed: type 'int' does not support field selection"]
    );
    assert_eq!(faults(json!({"rule": "self.n"})), ["rule: cel expression must evaluate to a bool"]);
    assert_eq!(
        faults(json!({"rule": "other > 1"})),
        ["rule: compilation failed: undeclared reference to 'other' (in container '')"]
    );
    assert_eq!(
        faults(json!({"rule": "explode(self)"})),
        ["rule: compilation failed: undeclared reference to 'explode' (in container '')"]
    );
    assert_eq!(
        faults(json!({"rule": "true", "messageExpression": "1", "fieldPath": ".zz"})),
        ["messageExpression: messageExpression must evaluate to a string", "fieldPath: must be a valid path"]
    );
    assert!(faults(json!({"rule": "self.n >"}))[0].contains("Syntax error"));
    assert!(faults(json!({"rule": "Foo{a: 1} == 1"}))[0].starts_with("rule: compilation failed"));
}

#[test]
fn a_rule_that_computes_too_much_is_stopped() {
    // A hundredth of the real budget makes the same point sooner.
    const BUDGET: u64 = super::budget::PER_OBJECT / 100;
    let many: Vec<u32> = (0..3000).collect();
    let text = "x".repeat(100_000);
    let properties =
        json!({"list": {"type": "array", "items": {"type": "integer"}}, "text": {"type": "string"}});
    let object = json!({"spec": {"list": many, "text": text}});
    let errors = |rules: &Value| -> Vec<String> {
        let schema = from_crd(&schema(&properties, rules)).expect("a good schema");
        super::walk::validate_within(&schema, &object, None, BUDGET).iter().map(ToString::to_string).collect()
    };
    for rule in [
        "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))",
        "lists.range(100000000000).size() > 0",
        "self.text.replace('x', self.text).replace('x', self.text).size() > 0",
        "[self.text, self.text].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a) \
         .map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() > 0",
        "self.list.map(a, self.text).join(self.text).size() > 0",
        "self.list.all(a, self.list.map(b, b).size() > 0)",
        "self.list.all(a, self.text.matches('(x+x+)+y') != (a == a))",
    ] {
        let why = "spec: Invalid value: \"object\": validation failed due to running out of cost budget, no further \
                   validation rules will be run";
        assert_eq!(errors(&json!([{"rule": rule}, {"rule": "true"}])), [why], "{rule}");
    }
    for rule in ["'%.999999999f'.format([1.0]) == ''", "'x'.matches('(((a{100}){100}){100}){100}')"] {
        assert_eq!(errors(&json!([{"rule": rule}])).len(), 1, "{rule}");
    }
}

#[test]
fn rules_nested_without_end_are_refused_not_followed() {
    let deep = [
        format!("{}true{}", "(".repeat(5000), ")".repeat(5000)),
        format!("true{}", " && true".repeat(1500)),
        format!("1{} > 0", " + 1".repeat(3000)),
        format!("self{} == 1", ".a".repeat(5000)),
        format!("{}true", "!".repeat(10_000)),
        format!("{}1 > 0", "true ? ".repeat(2000)),
        format!("{}1{} == []", "[".repeat(3000), "]".repeat(3000)),
        format!("{}self{}", "self.map(x, ".repeat(900), ")".repeat(900)),
        "x".repeat(100_000),
    ];
    // A thread of a server's pool has two megabytes.
    let run = move || {
        for rule in deep {
            let schema = schema(&json!({"a": {"type": "integer"}}), &json!([{"rule": rule}]));
            texts(&schema, &json!({"spec": {"a": 1}}), None);
            let node = from_crd(&schema).expect("a good schema");
            check(&json!({"rule": rule}), &node, true);
        }
        // The deepest that is allowed.
        let nested = format!("{}self.a > 0{}", "[1].all(x, ".repeat(12), ")".repeat(12));
        let schema = schema(&json!({"a": {"type": "integer"}}), &json!([{"rule": nested}]));
        assert_eq!(texts(&schema, &json!({"spec": {"a": 1}}), None), [""; 0]);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("a thread").join().expect("no panic");
}

proptest! {
    #[test]
    fn any_rule_on_any_object_ends_without_panic(rule in "[a-z0-9 .()+\\-*/<>=!&|?:'\\[\\]{},_@]{0,40}", value in any_json()) {
        let schema = schema(&json!({"a": {"type": "integer"}}), &json!([{"rule": rule, "messageExpression": rule, "fieldPath": rule}]));
        let schema = from_crd(&schema).expect("a rule is only a string");
        validate(&schema, &json!({"spec": value}), Some(&json!({"spec": {}})));
    }

    #[test]
    fn sensible_rules_on_any_object_end_without_panic(
        rule in prop::sample::select(vec![
            "self.a == oldSelf.a", "self.all(k, self[k] == 1)", "size(self.b) > 0", "self.b.map(x, x.a)", "self.a + 1 > 0",
            "self.a.startsWith('x')", "self.c.all(x, x)", "self.?spec.?a.hasValue()", "self.b.sortBy(x, x).size() > 0",
        ]),
        value in any_json(),
        old in any_json(),
    ) {
        let any = json!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}, "x-kubernetes-validations": [{"rule": rule}]});
        let schema = from_crd(&json!({"type": "object", "properties": {"spec": any}})).expect("a good schema");
        super::validate(&schema, &json!({"spec": value}), Some(&json!({"spec": old})));
    }
}
