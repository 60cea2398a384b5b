//! Paths that are not objects: health, version, metrics, discovery, OpenAPI.

use axum::body::Body;
use http::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::json;

use super::path::Place;
use super::query::Query;
use super::respond::{self, Style};
use super::{OK, header};
use crate::auth::Identity;
use crate::error::{ApiError, Result};
use crate::{ApiServer, discovery};

impl ApiServer {
    /// What anybody may see: whether the server lives, and which it is.
    pub(super) fn open_route(
        &self,
        parts: &Parts,
        style: Style,
        query: Option<&Query>,
    ) -> Option<Response<Body>> {
        let verbose = query.is_some_and(|q| q.verbose);
        match parts.uri.path() {
            "/healthz" | "/livez" | "/readyz" => Some(self.health(parts.uri.path(), verbose)),
            "/version" | "/version/" => Some(respond::json(style, OK, &version())),
            _ => None,
        }
    }

    fn health(&self, path: &str, verbose: bool) -> Response<Body> {
        let mut checks = vec![("ping", Ok(()))];
        if path != "/livez" {
            checks.push(("store", self.store_check()));
            checks.push(("running", self.running_check()));
        }
        let failed = checks.iter().any(|(_, result)| result.is_err());
        let mut text = String::new();
        if verbose || failed {
            for (name, result) in &checks {
                match result {
                    Ok(()) => text.push_str(&format!("[+]{name} ok\n")),
                    Err(why) => text.push_str(&format!("[-]{name} failed: {why}\n")),
                }
            }
            text.push_str(&format!(
                "{} check {}\n",
                path.trim_start_matches('/'),
                if failed { "failed" } else { "passed" }
            ));
        } else {
            text.push_str("ok");
        }
        let code = if failed { StatusCode::INTERNAL_SERVER_ERROR } else { OK };
        respond::bytes(code, "text/plain; charset=utf-8", text.into())
    }

    fn store_check(&self) -> std::result::Result<(), String> {
        let key = crate::store::Key::new("namespaces.", "", "default");
        match self.api.store.get(&key) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn running_check(&self) -> std::result::Result<(), String> {
        if self.api.stopping.is_cancelled() { Err("the server is stopping".into()) } else { Ok(()) }
    }

    /// Documents about the API itself, for every authenticated caller.
    pub(super) fn document_route(
        &self,
        parts: &Parts,
        user: &Identity,
        style: Style,
    ) -> Result<Option<Response<Body>>> {
        let path = parts.uri.path();
        let place = Place::parse(path);
        let ours = matches!(path, "/" | "/metrics") || path.starts_with("/openapi/");
        if !ours && !matches!(&place, Some(p) if !matches!(p, Place::Resource(_))) {
            return Ok(None);
        }
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(ApiError::method_not_allowed());
        }
        let table = self.api.registry.table();
        let aggregated = style.accept.aggregated;
        let response = match place {
            Some(Place::CoreVersions) if aggregated => {
                discovered(style, &discovery::aggregated(&table, true))
            }
            Some(Place::Groups) if aggregated => discovered(style, &discovery::aggregated(&table, false)),
            Some(Place::CoreVersions) => {
                let host = header(&parts.headers, "host");
                respond::json(style, OK, &discovery::core_versions(host))
            }
            Some(Place::Groups) => respond::json(style, OK, &discovery::groups(&table)),
            Some(Place::Group(group)) => {
                let found = discovery::group(&table, &group).ok_or_else(ApiError::no_such_path)?;
                respond::json(style, OK, &found)
            }
            Some(Place::Resources { group, version }) => {
                let found =
                    discovery::resources(&table, &group, &version).ok_or_else(ApiError::no_such_path)?;
                respond::json(style, OK, &found)
            }
            _ => match path {
                "/" => respond::json(style, OK, &root(&table)),
                "/metrics" => self.metrics_route(user)?,
                _ => self.openapi_route(parts)?,
            },
        };
        Ok(Some(response))
    }

    fn metrics_route(&self, user: &Identity) -> Result<Response<Body>> {
        if !user.may("get", "", "metrics") {
            let subject = crate::error::Subject { kind: "metrics".into(), ..Default::default() };
            return Err(ApiError::forbidden(subject, "the role does not allow it"));
        }
        let text = self.metrics.text(&self.api.store);
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        Ok(respond::bytes(OK, kind, text.into()))
    }

    fn openapi_route(&self, parts: &Parts) -> Result<Response<Body>> {
        let path = parts.uri.path().trim_start_matches("/openapi/");
        let document = self
            .documents
            .get(&self.api.registry, path, header(&parts.headers, "accept"))
            .ok_or_else(ApiError::no_such_path)?;
        let unchanged = header(&parts.headers, IF_NONE_MATCH.as_str()) == document.etag;
        let mut response = if unchanged {
            respond::bytes(StatusCode::NOT_MODIFIED, document.content_type, bytes::Bytes::new())
        } else {
            respond::bytes(OK, document.content_type, document.bytes.clone())
        };
        if let Ok(etag) = HeaderValue::from_str(&document.etag) {
            response.headers_mut().insert(ETAG, etag);
        }
        Ok(response)
    }
}

fn discovered(style: Style, value: &serde_json::Value) -> Response<Body> {
    let mut response = respond::json(style, OK, value);
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    );
    response
}

fn root(table: &crate::registry::Table) -> serde_json::Value {
    let mut paths = vec!["/api".to_string(), "/api/v1".into(), "/apis".into()];
    for group in table.groups().into_iter().filter(|g| !g.is_empty()) {
        paths.push(format!("/apis/{group}"));
        paths.extend(table.versions(group).iter().map(|v| format!("/apis/{group}/{v}")));
    }
    paths.extend(
        ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(String::from),
    );
    json!({ "paths": paths })
}

/// The Kubernetes version whose semantics we follow, and our own.
fn version() -> serde_json::Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": concat!("v1.36.0+granary.", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
