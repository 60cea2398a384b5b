//! Who is let in, and what a reader does not get to see.

use serde_json::json;

use super::server;
use super::support::raw::{CONFIG_MAPS, DEFINITIONS, Raw, config_map};

#[tokio::test]
async fn without_a_valid_token_nothing_but_health_and_version_is_answered() {
    let (binary, admin) = server().await;
    for token in [None, Some("nonsense"), Some("granary_AAAA"), Some("\u{fffd}")] {
        let stranger = Raw(binary.client_with_token(token).await);
        for path in ["/api", "/apis", "/openapi/v2", "/metrics", CONFIG_MAPS, "/api/v1/secrets", "/nowhere"] {
            let answer = stranger.get(path).await.expect(401);
            assert_eq!(answer.reason(), "Unauthorized", "{path} {token:?}");
        }
        stranger.post(CONFIG_MAPS, &config_map("a")).await.expect(401);
        for path in ["/healthz", "/readyz", "/livez", "/version"] {
            stranger.get(path).await.expect(200);
        }
    }
    assert!(admin.get(CONFIG_MAPS).await.names().is_empty());
}

#[tokio::test]
async fn a_reader_looks_at_everything_but_secrets_and_changes_nothing() {
    let (binary, admin) = server().await;
    admin.make(CONFIG_MAPS, &config_map("there")).await;
    let token = binary.make_token("eve", "read-only");
    let reader = Raw(binary.client_with_token(Some(&token)).await);
    assert_eq!(reader.get(CONFIG_MAPS).await.expect(200).names(), ["there"]);
    reader.get(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1")).await.expect(200);

    let there = format!("{CONFIG_MAPS}/there");
    let secrets = "/api/v1/namespaces/granary-system/secrets";
    for answer in [
        reader.post(CONFIG_MAPS, &config_map("new")).await,
        reader.put(&there, &config_map("there")).await,
        reader.merge(&there, &json!({ "data": { "a": "b" } })).await,
        reader.delete(&there).await,
        reader.delete(CONFIG_MAPS).await,
        reader.post(DEFINITIONS, &json!({})).await,
        reader.get("/api/v1/secrets").await,
        reader.get(secrets).await,
        reader.get(&format!("{secrets}/token-admin")).await,
        reader.get(&format!("{secrets}?watch=1")).await,
        reader.get("/api/v1/watch/namespaces/granary-system/secrets/token-admin").await,
        reader.merge(&format!("{there}?dryRun=All"), &json!({})).await,
    ] {
        let answer = answer.expect(403);
        assert_eq!(answer.reason(), "Forbidden");
        assert!(answer.message().contains("\"eve\""), "{}", answer.message());
    }
    assert_eq!(admin.get(CONFIG_MAPS).await.names(), ["there"]);

    let may = |verb: &str, resource: &str| {
        let spec =
            json!({ "resourceAttributes": { "verb": verb, "resource": resource, "namespace": "default" } });
        json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec })
    };
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (verb, resource, allowed) in
        [("list", "pods", true), ("get", "secrets", false), ("delete", "pods", false)]
    {
        let review = reader.make(reviews, &may(verb, resource)).await;
        assert_eq!(review["status"]["allowed"], allowed, "{verb} {resource}");
    }
}

#[tokio::test]
async fn a_continue_token_cannot_be_bent_to_reach_another_kind() {
    use base64::Engine as _;
    let (_binary, admin) = server().await;
    for name in ["a", "b", "c"] {
        admin.make(CONFIG_MAPS, &config_map(name)).await;
    }
    let page = admin.get(&format!("{CONFIG_MAPS}?limit=1")).await.expect(200);
    let token = page.body["metadata"]["continue"].as_str().unwrap();
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let mut content: serde_json::Value = serde_json::from_slice(&engine.decode(token).unwrap()).unwrap();
    for start in
        ["secrets./granary-system/", "secrets./granary-system/token-admin", "", "zzz", "\u{7f}", "\u{10ffff}"]
    {
        content["start"] = start.into();
        let bent = engine.encode(content.to_string());
        let answer = admin.get(&format!("{CONFIG_MAPS}?limit=500&continue={bent}")).await;
        assert!(matches!(answer.code, 200 | 400), "{start}: {}", answer.text);
        let items = answer.body["items"].as_array().cloned().unwrap_or_default();
        assert!(items.iter().all(|item| item["kind"] == "ConfigMap"), "{start}: {}", answer.text);
    }
    content["rv"] = u64::MAX.into();
    let bent = engine.encode(content.to_string());
    admin.get(&format!("{CONFIG_MAPS}?continue={bent}")).await.expect(504);
}
