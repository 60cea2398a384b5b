//! One request each, and the code, reason and field of its refusal.

use http::Request;
use kube::client::Body;
use serde_json::json;

use super::server;
use super::support::raw::{
    APPLY, CONFIG_MAPS, DEFINITIONS, JSON, JSON_PATCH, MERGE, Raw, STRATEGIC, YAML, config_map, definition,
};

const RIGS: &str = "/apis/try.example.com/v1/namespaces/default/rigs";

/// A server with the object `there` of two kinds, one built in and one custom.
async fn prepared() -> (super::Binary, Raw) {
    let (binary, raw) = server().await;
    raw.make(CONFIG_MAPS, &config_map("there")).await;
    raw.make(DEFINITIONS, &definition("rigs", "Rig", "try.example.com")).await;
    let rig = json!({
        "apiVersion": "try.example.com/v1", "kind": "Rig", "metadata": { "name": "there" },
        "spec": { "replicas": 1, "id": "a" },
    });
    raw.make(RIGS, &rig).await;
    (binary, raw)
}

struct Case(&'static str, &'static str, &'static str, &'static str, u16, &'static str, &'static str);

/// Method, path after `base`, media type, body, then code, reason and the first field at fault.
async fn refuse(raw: &Raw, base: &str, cases: &[Case]) {
    for Case(method, path, media, body, code, reason, field) in cases {
        let answer = raw.send(method, &format!("{base}{path}"), media, body.as_bytes().to_vec()).await;
        let what = format!("{method} {path} {media} {body}\n{}", answer.text);
        assert_eq!(answer.code, *code, "{what}");
        assert_eq!(answer.reason(), *reason, "{what}");
        assert_eq!(answer.fields().first().copied().unwrap_or_default(), *field, "{what}");
        assert_eq!(answer.body["kind"], "Status", "{what}");
        assert_eq!(answer.body["code"], *code, "{what}");
    }
}

#[tokio::test]
async fn bodies_of_a_built_in_kind() {
    let (_binary, raw) = prepared().await;
    let strict = "?fieldValidation=Strict";
    #[rustfmt::skip]
    let cases = [
        Case("POST", "", JSON, r#"{"a":"#, 400, "BadRequest", ""),
        Case("POST", "", JSON, "", 400, "BadRequest", ""),
        Case("POST", "", JSON, "[]", 400, "BadRequest", ""),
        Case("POST", "", JSON, "null", 400, "BadRequest", ""),
        Case("POST", "", JSON, "{} {}", 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"data":{"a":"\ud800"}}"#, 400, "BadRequest", ""),
        Case("POST", "", YAML, "a: [", 400, "BadRequest", ""),
        Case("POST", "", YAML, "a:\n\t- b", 400, "BadRequest", ""),
        Case("POST", "", YAML, "a: *nowhere", 400, "BadRequest", ""),
        Case("POST", "", YAML, "kind: ConfigMap\n---\nkind: ConfigMap\n", 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"kind":"Nope","metadata":{"name":"a"}}"#, 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"apiVersion":"v2","metadata":{"name":"a"}}"#, 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"metadata":"x"}"#, 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"metadata":{"name":5}}"#, 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a","labels":["x"]}}"#, 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a"},"data":{"n":1}}"#, 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a"},"data":{"n":1e400}}"#, 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a","namespace":"b"}}"#, 400, "BadRequest", ""),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a","resourceVersion":"5"}}"#, 400, "BadRequest", ""),
        Case("POST", strict, JSON, r#"{"metadata":{"name":"a"},"spec":{}}"#, 400, "BadRequest", ""),
        Case("POST", strict, JSON, r#"{"metadata":{"name":"a"},"data":{"a":"","a":""}}"#, 400, "BadRequest", ""),
        Case("POST", strict, YAML, "metadata: {name: a}\ndata: {a: '', a: ''}", 400, "BadRequest", ""),
        Case("POST", "", JSON, "{}", 422, "Invalid", "metadata.name"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"A_b"}}"#, 422, "Invalid", "metadata.name"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a/b"}}"#, 422, "Invalid", "metadata.name"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a\u0000"}}"#, 422, "Invalid", "metadata.name"),
        Case("POST", "", JSON, r#"{"metadata":{"name":".."}}"#, 422, "Invalid", "metadata.name"),
        Case("POST", "", JSON, r#"{"metadata":{"generateName":"A_"}}"#, 422, "Invalid", "metadata.generateName"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a","labels":{"a":"b c"}}}"#, 422, "Invalid", "metadata.labels"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a","labels":{"a b":"c"}}}"#, 422, "Invalid", "metadata.labels"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a","annotations":{"a b":""}}}"#, 422, "Invalid", "metadata.annotations"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a","finalizers":["a b"]}}"#, 422, "Invalid", "metadata.finalizers"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a","finalizers":["abc"]}}"#, 422, "Invalid", "metadata.finalizers[0]"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a","ownerReferences":[{}]}}"#, 422, "Invalid", "metadata.ownerReferences.apiVersion"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"a"},"data":{"a b":"x"}}"#, 422, "Invalid", "data[a b]"),
        Case("POST", "", JSON, r#"{"metadata":{"name":"there"}}"#, 409, "AlreadyExists", ""),
        Case("PUT", "/there", JSON, r#"{"metadata":{"name":"other"}}"#, 400, "BadRequest", ""),
        Case("PUT", "/there", JSON, r#"{"data":{}}"#, 400, "BadRequest", ""),
        Case("PUT", "/there", JSON, r#"{"metadata":{"name":"there","resourceVersion":"1"}}"#, 409, "Conflict", ""),
        Case("PUT", "/there", JSON, r#"{"metadata":{"name":"there","uid":"x"}}"#, 409, "Conflict", ""),
        Case("PUT", "/missing", JSON, r#"{"metadata":{"name":"missing"}}"#, 404, "NotFound", ""),
    ];
    refuse(&raw, CONFIG_MAPS, &cases).await;
    let left = raw.get(CONFIG_MAPS).await;
    assert_eq!(left.names(), ["there"], "a refused object must not be there");
}

#[tokio::test]
async fn bodies_of_a_custom_kind() {
    let (_binary, raw) = prepared().await;
    let rig = |rest: &str| {
        format!(r#"{{"apiVersion":"try.example.com/v1","kind":"Rig","metadata":{{"name":"a"}}{rest}}}"#)
    };
    let meta =
        |meta: &str| format!(r#"{{"apiVersion":"try.example.com/v1","kind":"Rig","metadata":{meta}}}"#);
    #[rustfmt::skip]
    let cases = [
        (r#"{"kind":"Rig","metadata":{"name":"a"}}"#.to_string(), 400, ""),
        (r#"{"apiVersion":"try.example.com/v1","metadata":{"name":"a"}}"#.to_string(), 400, ""),
        (meta(r#"{"name":5}"#), 400, ""),
        (meta(r#"{"name":"a","labels":["x"]}"#), 400, ""),
        (meta(r#"{"name":"a","labels":{"a":1}}"#), 400, ""),
        (meta(r#"{"name":"a","finalizers":"x"}"#), 400, ""),
        (meta(r#"{"name":"a","ownerReferences":[1]}"#), 400, ""),
        (meta(r#"{"name":"a","managedFields":"x"}"#), 400, ""),
        (meta("[]"), 400, ""),
        (meta("null"), 422, "metadata.name"),
        (meta(r#"{"name":"a","ownerReferences":[{}]}"#), 422, "metadata.ownerReferences.apiVersion"),
        (rig(r#","spec":"x""#), 422, "spec"),
        (rig(r#","spec":{"replicas":-1}"#), 422, "spec.replicas"),
        (rig(r#","spec":{"replicas":1.5}"#), 422, "spec.replicas"),
        (rig(r#","spec":{"replicas":"1"}"#), 422, "spec.replicas"),
        (rig(r#","spec":{"replicas":99999999999999999999}"#), 422, "spec.replicas"),
        (rig(r#","spec":{"weight":1e400}"#), 400, ""),
    ];
    for (body, code, field) in cases {
        let answer = raw.send("POST", RIGS, JSON, body.clone()).await;
        assert_eq!(answer.code, code, "{body}\n{}", answer.text);
        assert!(field.is_empty() || answer.fields().contains(&field), "{body}\n{}", answer.text);
    }
    #[rustfmt::skip]
    let cases = [
        Case("PATCH", "/there", STRATEGIC, "{}", 415, "UnsupportedMediaType", ""),
        Case("PATCH", "/there", MERGE, r#"{"spec":{"id":"b"}}"#, 422, "Invalid", "spec.id"),
        Case("PATCH", "/there", MERGE, r#"{"metadata":{"uid":"x"}}"#, 422, "Invalid", "metadata.uid"),
        Case("PUT", "/there", JSON, r#"{"apiVersion":"try.example.com/v1","kind":"Rig","metadata":{"name":"there"}}"#, 422, "Invalid", "metadata.resourceVersion"),
        Case("PUT", "/there", JSON, r#"{"apiVersion":"try.example.com/v1","kind":"Rig","metadata":{"name":"there","resourceVersion":"1"}}"#, 409, "Conflict", ""),
        Case("POST", "?fieldValidation=Strict", JSON, r#"{"apiVersion":"try.example.com/v1","kind":"Rig","metadata":{"name":"a"},"spec":{"foo":1}}"#, 400, "BadRequest", ""),
    ];
    refuse(&raw, RIGS, &cases).await;
    assert_eq!(raw.get(RIGS).await.names(), ["there"]);
}

#[tokio::test]
async fn patches() {
    let (_binary, raw) = prepared().await;
    let strict = "/there?fieldValidation=Strict";
    #[rustfmt::skip]
    let cases = [
        Case("PATCH", "/there", JSON, "{}", 415, "UnsupportedMediaType", ""),
        Case("PATCH", "/missing", MERGE, "{}", 404, "NotFound", ""),
        Case("PATCH", "/there", MERGE, r#"{"a":"#, 400, "BadRequest", ""),
        Case("PATCH", "/there", MERGE, r#""x""#, 400, "BadRequest", ""),
        Case("PATCH", "/there", MERGE, r#"{"metadata":"x"}"#, 422, "Invalid", "patch"),
        Case("PATCH", "/there", MERGE, r#"{"kind":"Secret"}"#, 422, "Invalid", "patch"),
        Case("PATCH", "/there", MERGE, r#"{"data":{"a":1}}"#, 422, "Invalid", "patch"),
        Case("PATCH", strict, MERGE, r#"{"zz":1}"#, 422, "Invalid", "patch"),
        Case("PATCH", strict, MERGE, r#"{"data":{"a":"1","a":"2"}}"#, 422, "Invalid", "patch"),
        Case("PATCH", "/there", MERGE, r#"{"metadata":{"name":"x"}}"#, 400, "BadRequest", ""),
        Case("PATCH", "/there", MERGE, r#"{"metadata":{"namespace":"x"}}"#, 400, "BadRequest", ""),
        Case("PATCH", "/there", MERGE, r#"{"metadata":{"uid":"x"}}"#, 422, "Invalid", "metadata.uid"),
        Case("PATCH", "/there", MERGE, r#"{"metadata":{"resourceVersion":"1"}}"#, 409, "Conflict", ""),
        Case("PATCH", "/there", MERGE, r#"{"metadata":{"labels":{"a":"b c"}}}"#, 422, "Invalid", "metadata.labels"),
        Case("PATCH", "/there", JSON_PATCH, "{}", 400, "BadRequest", ""),
        Case("PATCH", "/there", JSON_PATCH, r#"[{"op":"#, 400, "BadRequest", ""),
        Case("PATCH", "/there", JSON_PATCH, r#"[{"op":"foo","path":"/a"}]"#, 422, "Invalid", ""),
        Case("PATCH", "/there", JSON_PATCH, r#"[{"op":"add","path":"data","value":1}]"#, 422, "Invalid", ""),
        Case("PATCH", "/there", JSON_PATCH, r#"[{"op":"remove","path":"/nope"}]"#, 422, "Invalid", ""),
        Case("PATCH", "/there", JSON_PATCH, r#"[{"op":"test","path":"/kind","value":"x"}]"#, 422, "Invalid", ""),
        Case("PATCH", "/there", JSON_PATCH, r#"[{"op":"replace","path":"","value":5}]"#, 422, "Invalid", "patch"),
        Case("PATCH", "/there", JSON_PATCH, r#"[{"op":"remove","path":"/metadata"}]"#, 422, "Invalid", "patch"),
        Case("PATCH", "/there", STRATEGIC, r#""x""#, 400, "BadRequest", ""),
        Case("PATCH", "/there", STRATEGIC, r#"{"metadata":{"$patch":"explode"}}"#, 400, "BadRequest", ""),
        Case("PATCH", "/there", APPLY, "{}", 422, "Invalid", "fieldManager"),
        Case("PATCH", "/there?fieldManager=x", APPLY, "metadata: {name: there}", 400, "BadRequest", ""),
        Case("PATCH", "/new?fieldManager=x", APPLY, "apiVersion: v1\nkind: ConfigMap", 400, "BadRequest", ""),
        Case("PATCH", "/there?fieldManager=x", APPLY, "a: [", 400, "BadRequest", ""),
        Case("PATCH", "/there?fieldManager=x", APPLY, "", 400, "BadRequest", ""),
        Case("PATCH", "/there?fieldManager=x", APPLY, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}", 400, "BadRequest", ""),
        Case("PATCH", "/there?fieldManager=x", APPLY, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there, managedFields: [{manager: y}]}", 400, "BadRequest", ""),
        Case("PATCH", "/new?fieldManager=x", APPLY, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, uid: '1'}", 409, "Conflict", ""),
    ];
    let before = raw.get(&format!("{CONFIG_MAPS}/there")).await.body;
    refuse(&raw, CONFIG_MAPS, &cases).await;
    assert_eq!(raw.get(&format!("{CONFIG_MAPS}/there")).await.body, before);
}

#[tokio::test]
async fn paths_and_methods() {
    let (_binary, raw) = prepared().await;
    #[rustfmt::skip]
    let cases = [
        Case("GET", "/apis/no.such/v1/things", "", "", 404, "NotFound", ""),
        Case("GET", "/api/v1/namespaces/default/things", "", "", 404, "NotFound", ""),
        Case("POST", "/apis/no.such/v1/namespaces/default/things", JSON, "{}", 404, "NotFound", ""),
        Case("GET", "/api/v1/configmaps/there", "", "", 404, "NotFound", ""),
        Case("GET", "/api/v1/namespaces/default/nodes/x", "", "", 404, "NotFound", ""),
        Case("GET", "/api/v1/namespaces/default/configmaps/missing", "", "", 404, "NotFound", ""),
        Case("GET", "/api/v1/namespaces/default/configmaps/there/status", "", "", 404, "NotFound", ""),
        Case("GET", "/api/v1/namespaces/default/configmaps/there/scale", "", "", 404, "NotFound", ""),
        Case("GET", "/api/v1/namespaces/default/configmaps/a%00b", "", "", 404, "NotFound", ""),
        Case("GET", "/api/v1/namespaces/default/configmaps/a%ffb", "", "", 404, "NotFound", ""),
        Case("GET", "/api/v1/namespaces/default/configmaps/%2e%2e%2fsecrets", "", "", 404, "NotFound", ""),
        Case("GET", "/api/v1//namespaces", "", "", 404, "NotFound", ""),
        Case("POST", "/api/v1/namespaces/missing/configmaps", JSON, r#"{"metadata":{"name":"a"}}"#, 404, "NotFound", ""),
        Case("PUT", "/api/v1/namespaces/default/configmaps", JSON, "{}", 405, "MethodNotAllowed", ""),
        Case("PATCH", "/api/v1/namespaces/default/configmaps", MERGE, "{}", 405, "MethodNotAllowed", ""),
        Case("POST", "/api/v1/namespaces/default/configmaps/there", JSON, "{}", 405, "MethodNotAllowed", ""),
        Case("POST", "/api/v1/configmaps", JSON, "{}", 405, "MethodNotAllowed", ""),
        Case("DELETE", "/api/v1/configmaps", "", "", 405, "MethodNotAllowed", ""),
        Case("OPTIONS", "/api/v1/namespaces/default/configmaps", "", "", 405, "MethodNotAllowed", ""),
        Case("DELETE", "/apis/try.example.com/v1/namespaces/default/rigs/there/status", "", "", 405, "MethodNotAllowed", ""),
        Case("DELETE", "/api/v1", "", "", 405, "MethodNotAllowed", ""),
        Case("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "", 405, "MethodNotAllowed", ""),
        Case("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", JSON, r#"{"spec":5}"#, 400, "BadRequest", ""),
        Case("POST", "/api/v1/namespaces/default/configmaps", "text/plain", "x", 415, "UnsupportedMediaType", ""),
        Case("POST", "/api/v1/namespaces/default/configmaps", "multipart/form-data", "x", 415, "UnsupportedMediaType", ""),
        Case("DELETE", "/api/v1/namespaces/default", "", "", 403, "Forbidden", ""),
        Case("DELETE", "/api/v1/namespaces/kube-system", "", "", 403, "Forbidden", ""),
        Case("DELETE", "/api/v1/namespaces/granary-system", "", "", 403, "Forbidden", ""),
    ];
    refuse(&raw, "", &cases).await;
    for accept in ["text/csv", "application/json;as=Foo;v=v1;g=meta.k8s.io", "image/*"] {
        let request = Request::get(CONFIG_MAPS).header("accept", accept).body(Body::empty()).unwrap();
        let answer = raw.call(request).await;
        assert_eq!((answer.code, answer.reason()), (406, "NotAcceptable"), "{accept}");
    }
}

#[tokio::test]
async fn query_parameters() {
    let (_binary, raw) = prepared().await;
    let long = format!("?fieldManager={}", "a".repeat(129));
    let body = r#"{"metadata":{"name":"a"}}"#;
    let answer = raw.send("POST", &format!("{CONFIG_MAPS}{long}"), JSON, body).await.expect(422);
    assert_eq!(answer.fields(), ["fieldManager"]);
    #[rustfmt::skip]
    let cases = [
        Case("POST", "?fieldManager=a%01", JSON, body, 422, "Invalid", "fieldManager"),
        Case("POST", "?dryRun=some", JSON, body, 422, "Invalid", "dryRun"),
        Case("POST", "?fieldValidation=Foo", JSON, body, 422, "Invalid", "fieldValidation"),
        Case("DELETE", "/there?propagationPolicy=Foo", "", "", 422, "Invalid", "propagationPolicy"),
        Case("DELETE", "/there?gracePeriodSeconds=x", "", "", 400, "BadRequest", ""),
        Case("DELETE", "/there", JSON, r#"{"a":"#, 400, "BadRequest", ""),
        Case("DELETE", "/there", JSON, r#""x""#, 400, "BadRequest", ""),
        Case("DELETE", "/there", JSON, r#"{"kind":"Pod","apiVersion":"v1"}"#, 400, "BadRequest", ""),
        Case("DELETE", "/there", JSON, r#"{"orphanDependents":true,"propagationPolicy":"Orphan"}"#, 422, "Invalid", "propagationPolicy"),
        Case("DELETE", "/there", JSON, r#"{"dryRun":["x"]}"#, 422, "Invalid", "dryRun"),
        Case("GET", "?limit=abc", "", "", 400, "BadRequest", ""),
        Case("GET", "?limit=99999999999999999999", "", "", 400, "BadRequest", ""),
        Case("GET", "?continue=abc", "", "", 400, "BadRequest", ""),
        Case("GET", "?continue=%00%ff", "", "", 400, "BadRequest", ""),
        Case("GET", "?continue=e30", "", "", 400, "BadRequest", ""),
        Case("GET", "?continue=abc&resourceVersion=5", "", "", 400, "BadRequest", ""),
        Case("GET", "?resourceVersion=abc", "", "", 400, "BadRequest", ""),
        Case("GET", "?resourceVersion=-1", "", "", 400, "BadRequest", ""),
        Case("GET", "?resourceVersion=99999999999999999999", "", "", 400, "BadRequest", ""),
        Case("GET", "?resourceVersion=99999999999", "", "", 504, "Timeout", ""),
        Case("GET", "/there?resourceVersion=99999999999", "", "", 504, "Timeout", ""),
        Case("GET", "?resourceVersionMatch=Exact", "", "", 422, "Invalid", "resourceVersionMatch"),
        Case("GET", "?resourceVersionMatch=Exact&resourceVersion=0", "", "", 422, "Invalid", "resourceVersionMatch"),
        Case("GET", "?resourceVersionMatch=Foo&resourceVersion=1", "", "", 422, "Invalid", "resourceVersionMatch"),
        Case("GET", "?sendInitialEvents=true", "", "", 422, "Invalid", "sendInitialEvents"),
        Case("GET", "?watch=1&sendInitialEvents=true", "", "", 422, "Invalid", "resourceVersionMatch"),
        Case("GET", "?watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1", "", "", 422, "Invalid", "resourceVersionMatch"),
        Case("GET", "?watch=1&timeoutSeconds=x", "", "", 400, "BadRequest", ""),
        Case("GET", "?labelSelector=a%20in%20(b", "", "", 400, "BadRequest", ""),
        Case("GET", "?labelSelector=((((((((((", "", "", 400, "BadRequest", ""),
        Case("GET", "?labelSelector=%3D%3D", "", "", 400, "BadRequest", ""),
        Case("GET", "?labelSelector=a,,b", "", "", 400, "BadRequest", ""),
        Case("GET", "?labelSelector=-a%3Db", "", "", 400, "BadRequest", ""),
        Case("GET", "?labelSelector=a%3Ex", "", "", 400, "BadRequest", ""),
        Case("GET", "?fieldSelector=a", "", "", 400, "BadRequest", ""),
        Case("GET", "?fieldSelector=spec.x%3D1", "", "", 400, "BadRequest", ""),
    ];
    refuse(&raw, CONFIG_MAPS, &cases).await;
    for harmless in
        ["?limit=-1", "?timeoutSeconds=9223372036854775807", "?foo=bar", "?labelSelector=&watch=0"]
    {
        let answer = raw.get(&format!("{CONFIG_MAPS}{harmless}")).await.expect(200);
        assert_eq!(answer.names(), ["there"], "{harmless}");
    }
    // One of two hundred thousand terms, and all of them.
    let deep = vec!["a!=b"; 5_000].join(",");
    assert_eq!(raw.get(&format!("{CONFIG_MAPS}?labelSelector={deep}")).await.expect(200).names(), ["there"]);
}

#[tokio::test]
async fn watches_that_ask_for_odd_times_end_or_last() {
    let (_binary, raw) = prepared().await;
    for ends in ["timeoutSeconds=1", "timeoutSeconds=-1"] {
        let answer = raw.get(&format!("{CONFIG_MAPS}?watch=1&{ends}")).await.expect(200);
        assert!(answer.text.is_empty() || answer.text.contains("\"ADDED\""), "{}", answer.text);
    }
    let forever = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=9223372036854775807");
    let request = Request::get(forever).body(Body::empty()).unwrap();
    assert_eq!(raw.0.send(request).await.unwrap().status(), 200);
    // Asked for by name, an object is sent and not watched.
    let there = raw.get(&format!("{CONFIG_MAPS}/there?watch=1")).await.expect(200);
    assert_eq!(there.body["kind"], "ConfigMap");
    raw.get(&format!("{CONFIG_MAPS}/missing?watch=1")).await.expect(404);
}

#[tokio::test]
async fn a_body_that_may_be_sent_can_still_make_an_object_too_large_to_keep() {
    let (_binary, raw) = prepared().await;
    let volumes = "/apis/longhorn.io/v1beta2/namespaces/default/volumes";
    let volume = |bytes: usize| {
        json!({
            "apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "metadata": { "name": "heavy" },
            "spec": { "size": "1", "note": "x".repeat(bytes) },
        })
    };
    let (limit, heavy) = (3 << 19, format!("{volumes}/heavy"));
    let answer = raw.post(volumes, &volume(limit)).await.expect(413);
    assert_eq!(answer.reason(), "RequestEntityTooLarge");
    assert!(answer.message().contains("1572864 are allowed"), "{}", answer.message());
    raw.get(&heavy).await.expect(404);
    raw.post(volumes, &volume(limit - 8192)).await.expect(201);
    raw.merge(&heavy, &volume(limit)).await.expect(413);
    raw.delete(&heavy).await.expect(200);
}

#[tokio::test]
async fn bodies_that_are_too_much() {
    let (_binary, raw) = prepared().await;
    let mut big = config_map("big");
    big["data"] = json!({ "a": "x".repeat((3 << 20) + 10) });
    let answer = raw.post(CONFIG_MAPS, &big).await.expect(413);
    assert_eq!(answer.reason(), "RequestEntityTooLarge");
    let there = format!("{CONFIG_MAPS}/there");
    raw.merge(&there, &big).await.expect(413);
    let huge = vec![b' '; 40 << 20];
    raw.send("POST", CONFIG_MAPS, JSON, huge).await.expect(413);
    let nested = |open: &str, close: &str, depth: usize| {
        format!(r#"{{"metadata":{{"name":"deep"}},"data":{}1{}}}"#, open.repeat(depth), close.repeat(depth))
    };
    for depth in [200, 100_000] {
        for (open, close) in [(r#"{"a":"#, "}"), ("[", "]")] {
            raw.send("POST", CONFIG_MAPS, JSON, nested(open, close, depth)).await.expect(400);
            raw.send("POST", CONFIG_MAPS, YAML, nested(open, close, depth)).await.expect(400);
            raw.send("PATCH", &there, MERGE, nested(open, close, depth)).await.expect(400);
            let apply = format!("{there}?fieldManager=x");
            raw.send("PATCH", &apply, APPLY, nested(open, close, depth)).await.expect(400);
        }
    }
    // Fields that nobody knows are kept as they are, so these get further.
    let volumes = "/apis/longhorn.io/v1beta2/namespaces/default/volumes";
    for depth in [50, 90, 95, 100, 105, 110, 120, 125] {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let volume = format!(
            r#"{{"apiVersion":"longhorn.io/v1beta2","kind":"Volume","metadata":{{"name":"d{depth}"}},"spec":{{"size":"1","x":{deep}}}}}"#
        );
        let answer = raw.send("POST", volumes, JSON, volume.clone()).await;
        assert_eq!(answer.code, if depth < 98 { 201 } else { 400 }, "{depth}: {}", answer.text);
        if depth < 98 {
            let path = format!("{volumes}/d{depth}");
            raw.get(&path).await.expect(200);
            raw.send("PATCH", &format!("{path}?fieldManager=x&force=true"), APPLY, volume).await.expect(200);
            raw.merge(&path, &json!({ "spec": { "x": null } })).await.expect(200);
        }
    }
    // Each step copies everything into itself.
    let grow = json!({ "op": "copy", "from": "/data", "path": "/data/a" });
    let seed = json!({ "op": "add", "path": "/data", "value": {} });
    let patch = serde_json::Value::Array([vec![seed], vec![grow; 64]].concat());
    let answer = raw.send("PATCH", &there, JSON_PATCH, patch.to_string()).await;
    assert!(matches!(answer.code, 413 | 422), "{}", answer.text);

    let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
    for (this, last) in "bcdefghi".chars().zip("abcdefgh".chars()) {
        bomb.push_str(&format!("{this}: &{this} [{}]\n", vec![format!("*{last}"); 9].join(",")));
    }
    raw.send("POST", CONFIG_MAPS, YAML, bomb).await.expect(400);
    for media in [JSON, YAML] {
        let bytes = b"{\"metadata\":{\"name\":\"u\"},\"data\":{\"a\":\"\xff\xfe\"}}".to_vec();
        raw.send("POST", CONFIG_MAPS, media, bytes).await.expect(400);
    }
    assert_eq!(raw.get(CONFIG_MAPS).await.names(), ["there"]);
    raw.get("/readyz").await.expect(200);
}

#[tokio::test]
async fn unknown_and_repeated_fields_are_refused_told_of_or_ignored() {
    let (_binary, raw) = prepared().await;
    let unknown =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"spec":{"x":1},"data":{"k":"1"}}"#;
    let twice = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"0","k":"1"}}"#;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: '0'\n  k: '1'\n";
    for (media, body, problem) in [
        (JSON, unknown, "unknown field \\\"spec\\\""),
        (JSON, twice, "duplicate field \\\"data.k\\\""),
        (YAML, yaml, "duplicate field \\\"data.k\\\""),
    ] {
        let at = |mode: &str| format!("{CONFIG_MAPS}?dryRun=All&fieldValidation={mode}");
        let strict = raw.send("POST", &at("Strict"), media, body).await.expect(400);
        assert!(strict.text.contains(problem), "{}", strict.text);
        for mode in ["Warn", ""] {
            let warned = raw.send("POST", &at(mode), media, body).await.expect(201);
            assert!(warned.warnings.iter().any(|w| w.contains(problem)), "{:?}", warned.warnings);
            assert_eq!(warned.body["data"]["k"], "1");
            assert!(warned.body.get("spec").is_none());
        }
        let ignored = raw.send("POST", &at("Ignore"), media, body).await.expect(201);
        assert!(ignored.warnings.is_empty());
    }
}
