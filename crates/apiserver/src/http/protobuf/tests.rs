//! Objects as the serializers of Kubernetes 1.36 wrote them, as protobuf and as JSON: both must mean the same.
//!
//! Each line of a fixture is the body in base64 and the JSON of the same object. `full` has every field of
//! every kind set, `zero` has every pointer, list and map set to a zero value, `random` is a bit of each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::{Fault, ProtobufError, decode};

const FIXTURES: [(&str, &str); 3] = [
    ("full", include_str!("fixtures/full.txt")),
    ("zero", include_str!("fixtures/zero.txt")),
    ("random", include_str!("fixtures/random.txt")),
];

fn cases(text: &'static str) -> impl Iterator<Item = (Vec<u8>, Value)> {
    text.lines().map(|line| {
        let (body, json) = line.split_once(' ').unwrap();
        (STANDARD.decode(body).unwrap(), serde_json::from_str(json).unwrap())
    })
}

/// A member that is `null` says the same as one that is absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(list) => list.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// The paths where two values differ, to be read instead of two screens of JSON.
fn differences(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                differences(&format!("{path}.{key}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{at}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: {a} instead of {b}")),
    }
}

#[test]
fn what_go_writes_as_protobuf_reads_as_what_it_writes_as_json() {
    for (name, text) in FIXTURES {
        for (body, theirs) in cases(text) {
            let kind = theirs["kind"].as_str().unwrap();
            let ours = decode(&body).unwrap_or_else(|e| panic!("{name} {kind}: {e}"));
            let mut found = Vec::new();
            differences(kind, &without_nulls(ours), &without_nulls(theirs.clone()), &mut found);
            assert!(found.is_empty(), "{name}: {found:#?}");
        }
    }
}

#[test]
fn every_kind_is_in_every_fixture() {
    for (name, text) in FIXTURES {
        let mut kinds: Vec<_> = cases(text).map(|(_, json)| json["kind"].to_string()).collect();
        kinds.dedup();
        assert_eq!(kinds.len(), 28, "{name}: {kinds:?}");
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn integer(number: u64, value: i64) -> Vec<u8> {
    [varint(number << 3), varint(value as u64)].concat()
}

fn bytes(number: u64, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), bytes(1, &type_meta), bytes(2, raw)].concat()
}

fn refused(body: &[u8]) -> String {
    decode(body).unwrap_err().to_string()
}

#[test]
fn what_is_sent_twice_is_merged_and_what_is_unknown_is_skipped() {
    let first = bytes(1, &[bytes(1, b"old"), bytes(3, b"ns")].concat());
    let second = bytes(1, &bytes(1, b"new"));
    let entry = |key: &[u8], value: &[u8]| bytes(2, &[bytes(1, key), bytes(2, value)].concat());
    let unknown = [integer(15, 7), bytes(1400, b"later"), vec![13 << 3 | 3, 13 << 3 | 4]].concat();
    let raw = [first, entry(b"a", b"1"), unknown, second, entry(b"b", b"2"), entry(b"a", b"3")].concat();
    assert_eq!(
        decode(&body("v1", "ConfigMap", &raw)).unwrap(),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "new", "namespace": "ns" },
            "data": { "a": "3", "b": "2" },
        })
    );
    // A name that is taken back is no longer there.
    let raw = [bytes(1, &bytes(1, b"old")), bytes(1, &bytes(1, b""))].concat();
    assert_eq!(decode(&body("v1", "ConfigMap", &raw)).unwrap()["metadata"], json!({}));
}

#[test]
fn numbers_in_a_run_are_the_same_as_one_by_one() {
    // Pod.spec(2).securityContext(14).supplementalGroups(4)
    let pod = |groups: &[u8]| body("v1", "Pod", &bytes(2, &bytes(14, groups)));
    let single = decode(&pod(&[integer(4, 1), integer(4, 300)].concat())).unwrap();
    let packed = decode(&pod(&bytes(4, &[varint(1), varint(300)].concat()))).unwrap();
    assert_eq!(single["spec"]["securityContext"]["supplementalGroups"], json!([1, 300]));
    assert_eq!(single, packed);
}

#[test]
fn a_map_entry_without_key_or_value_is_empty_text() {
    let data = decode(&body("v1", "Secret", &bytes(2, b""))).unwrap();
    assert_eq!(data["data"], json!({ "": "" }));
}

#[test]
fn a_fault_names_the_message_and_the_field() {
    let bad = |raw: &[u8]| refused(&body("v1", "ConfigMap", raw));
    let wire = bad(&integer(1, 1));
    assert_eq!(wire, "ConfigMap.metadata: wire type 0 was sent where a length and bytes belongs");
    let inner = bad(&bytes(1, &bytes(7, b"")));
    assert_eq!(inner, "ObjectMeta.generation: wire type 2 was sent where a varint belongs");
    assert_eq!(bad(&bytes(1, &bytes(1, b"\xff"))), "ObjectMeta.name: the text is not UTF-8");
    assert_eq!(bad(&bytes(1, b"a")[..2]), "ConfigMap: it ends early");
    let json = bad(&bytes(1, &bytes(17, &bytes(7, &bytes(1, b"{")))));
    assert!(json.starts_with("FieldsV1.Raw: the embedded JSON cannot be read: "), "{json}");
    let port = body("v1", "Service", &bytes(2, &bytes(1, &bytes(4, &integer(1, 2)))));
    assert_eq!(refused(&port), "ServicePort.targetPort: type 2 is neither a number nor a string");
}

#[test]
fn times_are_those_that_json_can_say() {
    let created = |seconds: i64| {
        let time = [integer(1, seconds), integer(2, 999_999_999)].concat();
        decode(&body("v1", "ConfigMap", &bytes(1, &bytes(8, &time))))
            .map(|object| object["metadata"]["creationTimestamp"].clone())
    };
    assert_eq!(created(-1), Ok("1969-12-31T23:59:59Z".into()));
    assert_eq!(created(253_402_200_000), Ok("9999-12-30T20:00:00Z".into()));
    assert_eq!(created(-62_135_596_800), Ok(Value::Null), "the time that stands for none");
    assert_eq!(created(-62_135_596_799), Ok("0001-01-01T00:00:01Z".into()));
    for beyond in [-62_135_596_801, 253_402_300_800, i64::MIN, i64::MAX] {
        let error =
            ProtobufError::Field { message: "ObjectMeta", field: "creationTimestamp", fault: Fault::Time };
        assert_eq!(created(beyond), Err(error));
    }
    let renewed = |nanos: i64| {
        let time = [integer(1, -1), integer(2, nanos)].concat();
        decode(&body("coordination.k8s.io/v1", "Lease", &bytes(2, &bytes(4, &time))))
            .map(|object| object["spec"]["renewTime"].clone())
    };
    assert_eq!(renewed(123_456_789), Ok("1969-12-31T23:59:59.123456Z".into()));
    assert!(renewed(1 << 31).is_err());
}

#[test]
fn a_body_that_is_no_object_is_refused_with_the_reason() {
    assert_eq!(decode(b""), Err(ProtobufError::Prefix));
    assert_eq!(decode(b"{}"), Err(ProtobufError::Prefix));
    assert_eq!(decode(b"k8s\0"), Err(ProtobufError::NoKind));
    assert_eq!(decode(b"k8s\0\x0a"), Err(ProtobufError::Envelope(Fault::Truncated)));
    assert_eq!(
        refused(&body("apps/v1", "Deployment", b"")),
        "no kind \"Deployment\" of version \"apps/v1\" has a protobuf form here"
    );
    let zipped = [body("v1", "Pod", b""), bytes(3, b"gzip")].concat();
    assert_eq!(decode(&zipped), Err(ProtobufError::Form("gzip".into())));
    let json = [body("v1", "Pod", b""), bytes(4, b"application/json")].concat();
    assert_eq!(decode(&json), Err(ProtobufError::Form("application/json".into())));
}

#[test]
fn schemas_nest_up_to_a_limit() {
    // CustomResourceDefinition.spec(2).versions(7).schema(4).openAPIV3Schema(1), then not(28) in not.
    let nested = |levels: usize| {
        let schema = (0..levels).fold(bytes(5, b"object"), |inner, _| bytes(28, &inner));
        let raw = bytes(2, &bytes(7, &bytes(4, &bytes(1, &schema))));
        decode(&body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &raw))
    };
    let deep = nested(59).unwrap();
    assert!(deep.pointer("/spec/versions/0/schema/openAPIV3Schema/not/not").is_some());
    assert_eq!(
        nested(60),
        Err(ProtobufError::Field { message: "JSONSchemaProps", field: "", fault: Fault::TooDeep })
    );
    assert!(nested(5_000).is_err());
}

/// A fixture with some bytes changed, cut out or put in.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let bodies: Vec<Vec<u8>> =
        FIXTURES.iter().flat_map(|(_, text)| cases(text).map(|(body, _)| body)).collect();
    let damage = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| (at, Some(byte), 1)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| (at, Some(byte), 0)),
        (any::<Index>(), Just(None), 1..20_usize),
    ];
    (select(bodies), proptest::collection::vec(damage, 1..8)).prop_map(|(mut body, damages)| {
        for (at, byte, gone) in damages {
            let from = at.index(body.len() + 1);
            let until = (from + gone).min(body.len());
            body.splice(from..until, byte);
        }
        body
    })
}

proptest! {
    #[test]
    fn damaged_bodies_are_read_or_refused(body in damaged()) {
        if let Err(error) = decode(&body) {
            assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn random_objects_are_read_or_refused(
        (version, kind) in select(vec![
            ("v1", "Pod"), ("v1", "Secret"), ("v1", "Event"), ("v1", "DeleteOptions"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ]),
        raw in proptest::collection::vec(any::<u8>(), 0..200),
        envelope in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        // Only faults may come of it, and never of the kind.
        let result = decode(&body(version, kind, &raw));
        assert!(!matches!(result, Err(ProtobufError::UnknownKind { .. } | ProtobufError::NoKind)));
        let result = decode(&[b"k8s\0".to_vec(), envelope].concat());
        assert!(result.is_err() || result.is_ok_and(|object| object.is_object()));
    }
}
