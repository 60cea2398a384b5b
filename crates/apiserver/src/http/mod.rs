//! HTTP in front of the verbs: who asks, for what, in which form, and how the answer goes out.
//!
//! Owns the mapping between requests and verbs. Must never decide what a verb does.

pub mod media;
pub mod path;
pub mod protobuf;
pub mod query;
mod respond;
mod routes;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::ApiServer;
use crate::auth::Identity;
use crate::error::{ApiError, Result};
use crate::verbs::{Answer, Call, DeleteOptions, Sent};
use media::{Accept, Decoded, decode, decode_json, decode_yaml};
use path::Target;
use query::Query;
use respond::Style;

/// The largest body that is read: what etcd-backed servers accept.
pub const MAX_BODY: usize = 3 << 20;
/// How much of a body that is too large is taken and thrown away, so that its sender gets to read the answer.
const MAX_DRAIN: usize = 64 << 20;

/// The API as a tower service. A request that carries an [`Identity`] extension is from inside this process;
/// all others need a token.
#[derive(Clone)]
pub struct ApiService(pub Arc<ApiServer>);

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}

/// What a request turned out to be, for logs and metrics.
pub(crate) struct Seen {
    verb: &'static str,
    resource: String,
}

impl Default for Seen {
    fn default() -> Self {
        Self { verb: "other", resource: String::new() }
    }
}

impl ApiServer {
    async fn handle<B>(self: Arc<Self>, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let mut seen = Seen::default();
        let accept = Accept::of(&parts.headers);
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let style = Style {
            accept: accept.as_ref().copied().unwrap_or_default(),
            pretty: query.as_ref().is_ok_and(|q| q.pretty),
        };
        let result = async {
            if let Some(response) = self.open_route(&parts, style, query.as_ref().ok()) {
                return Ok(response);
            }
            let user = self.caller(&parts)?;
            let query = query?;
            if let Some(response) = self.document_route(&parts, &user, style)? {
                return Ok(response);
            }
            let style = Style { accept: accept?, ..style };
            self.resource_route(&parts, body, user, query, style, &mut seen).await
        }
        .await;
        let response = result.unwrap_or_else(|error: ApiError| respond::error(style, &error));
        let code = response.status();
        self.metrics.record(seen.verb, &seen.resource, code.as_u16(), started.elapsed());
        tracing::debug!(
            method = %parts.method, path = parts.uri.path(), code = code.as_u16(),
            took = ?started.elapsed(), "request"
        );
        response
    }

    /// Who asks: a part of this process, or the owner of a token.
    fn caller(&self, parts: &http::request::Parts) -> Result<Identity> {
        if let Some(identity) = parts.extensions.get::<Identity>() {
            return Ok(identity.clone());
        }
        let token = bearer(&parts.headers).ok_or_else(ApiError::unauthorized)?;
        self.authenticator.identify(token).ok_or_else(ApiError::unauthorized)
    }

    async fn resource_route<B>(
        self: &Arc<Self>,
        parts: &http::request::Parts,
        body: B,
        user: Identity,
        mut query: Query,
        style: Style,
        seen: &mut Seen,
    ) -> Result<Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Some(path::Place::Resource(target)) = path::Place::parse(parts.uri.path()) else {
            return Err(ApiError::no_such_path());
        };
        // One object is watched under `/watch/` or by a field selector; asked for by name, it is just sent.
        query.watch = target.watch || (query.watch && target.name.is_empty());
        let resource = self
            .api
            .registry
            .get(&target.group, &target.version, &target.resource)
            .ok_or_else(ApiError::no_such_path)?;
        seen.resource = resource.storage.clone();
        seen.verb = verb(&parts.method, &target, &query);
        let call = Call {
            resource,
            namespace: target.namespace,
            name: target.name,
            subresource: target.subresource,
            query,
            accept: style.accept,
            user,
            agent: header(&parts.headers, "user-agent").to_string(),
            duplicates: Vec::new(),
            warnings: Vec::new(),
        };
        authorize(&call, seen.verb)?;
        check_scope(&call, &parts.method)?;
        call.query.check(seen.verb)?;
        let body = read_body(body).await?;
        self.dispatch(call, parts, body, style).await
    }

    async fn dispatch(
        self: &Arc<Self>,
        mut call: Call,
        parts: &http::request::Parts,
        body: Bytes,
        style: Style,
    ) -> Result<Response<Body>> {
        let api = &self.api;
        let content = media::content_type(&parts.headers);
        let collection = call.name.is_empty();
        let unsupported = || Err(ApiError::method_not_allowed());
        if call.resource.storage.is_empty() {
            if parts.method != Method::POST {
                return unsupported();
            }
            let sent = decode(&content, &body)?;
            let answer = api.review(&call, sent.value, &self.authenticator)?;
            return self.answer(answer, &mut call, style);
        }
        check_subresource(&call)?;
        let answer = match (parts.method.clone(), collection) {
            (Method::GET | Method::HEAD, _) if call.query.watch => api.watch(&call)?,
            (Method::GET | Method::HEAD, false) => api.get(&call)?,
            (Method::GET | Method::HEAD, true) => api.list(&call)?,
            (Method::POST, true) => {
                let sent = decode(&content, &body)?;
                api.create(&mut call, sent).await?
            }
            (Method::PUT, false) => {
                let sent = decode(&content, &body)?;
                api.update(&mut call, sent).await?
            }
            (Method::PATCH, false) => {
                let (sent, duplicates) = patch_body(&content, &body)?;
                call.duplicates = duplicates;
                api.patch(&mut call, sent).await?
            }
            (Method::DELETE, false) if call.subresource.is_empty() => {
                let options = delete_options(&content, &body)?.with_query(&call);
                call.query.dry_run |= options.dry_run;
                api.delete(&mut call, &options).await?
            }
            (Method::DELETE, true) if call.resource.deletes_collections() => {
                let options = delete_options(&content, &body)?.with_query(&call);
                call.query.dry_run |= options.dry_run;
                api.delete_collection(&mut call, &options).await?
            }
            _ => return unsupported(),
        };
        self.answer(answer, &mut call, style)
    }

    fn answer(&self, answer: Answer, call: &mut Call, style: Style) -> Result<Response<Body>> {
        let include = call.query.include_object.as_str();
        if style.accept.view == media::View::Table && !matches!(include, "" | "None" | "Metadata" | "Object")
        {
            return Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {include:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            )));
        }
        let mut response = match answer {
            Answer::Raw(code, json) if style.accept == Accept::default() && !style.pretty => {
                respond::bytes(code, "application/json", json)
            }
            Answer::Raw(code, json) => {
                let object: Value =
                    serde_json::from_slice(&json).map_err(|e| ApiError::internal(e.to_string()))?;
                respond::object(style, &call.resource, code, &object, include)
            }
            Answer::Object(code, object) => respond::object(style, &call.resource, code, &object, include),
            Answer::List(list) => respond::list(style, *list, include)?,
            Answer::Watch(watch) => {
                self.metrics.watches.inc();
                let gauge = self.metrics.watches.clone();
                respond::watch(
                    *watch,
                    OnDrop(move || {
                        gauge.dec();
                    }),
                )
            }
        };
        if let crate::registry::Source::Custom(custom) = &call.resource.source
            && let Some(text) = &custom.deprecation
        {
            call.warnings.push(text.clone());
        }
        respond::warn(&mut response, &call.warnings);
        Ok(response)
    }
}

/// Runs a function when it goes out of scope.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = header(headers, "authorization");
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The verb as authorisation and metrics name it.
fn verb(method: &Method, target: &Target, query: &Query) -> &'static str {
    let collection = target.name.is_empty();
    match method.as_str() {
        "GET" | "HEAD" if query.watch => "watch",
        "GET" | "HEAD" if collection => "list",
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if collection => "deletecollection",
        "DELETE" => "delete",
        _ => "other",
    }
}

fn authorize(call: &Call, verb: &str) -> Result<()> {
    let resource = &call.resource;
    if call.user.may(verb, &resource.group, &resource.plural) {
        return Ok(());
    }
    let namespace = if resource.is_core("namespaces") { &call.name } else { &call.namespace };
    let place = if namespace.is_empty() {
        "at the cluster scope".to_string()
    } else {
        format!("in the namespace {namespace:?}")
    };
    let why = format!(
        "User {:?} cannot {verb} resource {:?} in API group {:?} {place}: the role {:?} does not allow it",
        call.user.user,
        resource.plural,
        resource.group,
        call.user.role.name()
    );
    Err(ApiError::forbidden(resource.subject(&call.name), why))
}

/// Namespaced objects are addressed with their namespace, cluster objects without one.
fn check_scope(call: &Call, method: &Method) -> Result<()> {
    let resource = &call.resource;
    let across = resource.namespaced && call.namespace.is_empty();
    if !resource.namespaced && !call.namespace.is_empty() {
        return Err(ApiError::no_such_path());
    }
    if across && !call.name.is_empty() {
        return Err(ApiError::no_such_path());
    }
    if across && method != Method::GET && method != Method::HEAD && !resource.storage.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    Ok(())
}

fn check_subresource(call: &Call) -> Result<()> {
    let resource = &call.resource;
    let known = match call.subresource.as_str() {
        "" => true,
        "status" => resource.has_status,
        "scale" => resource.scale.is_some(),
        "finalize" => resource.is_core("namespaces"),
        _ => false,
    };
    if known { Ok(()) } else { Err(ApiError::no_such_path()) }
}

async fn read_body<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let unreadable = |error: Box<dyn std::error::Error + Send + Sync>| {
        ApiError::bad_request(format!("the body could not be read: {error}"))
    };
    let mut body = std::pin::pin!(body);
    let (mut read, mut seen) = (bytes::BytesMut::new(), 0usize);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|e| unreadable(e.into()))?.into_data() else { continue };
        seen += data.len();
        if seen > MAX_DRAIN {
            break;
        }
        if seen <= MAX_BODY {
            read.extend_from_slice(&data);
        }
    }
    if seen > MAX_BODY { Err(ApiError::too_large(MAX_BODY)) } else { Ok(read.freeze()) }
}

const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// A patch, and the fields that occur twice in it.
fn patch_body(content: &str, body: &[u8]) -> Result<(Sent, Vec<String>)> {
    let (sent, decoded): (fn(Value) -> Sent, _) = match content {
        "application/json-patch+json" => (Sent::JsonPatch, decode_json(body)?),
        "application/merge-patch+json" => (Sent::MergePatch, decode_json(body)?),
        "application/strategic-merge-patch+json" => (Sent::StrategicPatch, decode_json(body)?),
        "application/apply-patch+yaml" => (Sent::Apply, decode_yaml(body)?),
        _ => return Err(ApiError::unsupported_media_type(PATCH_TYPES)),
    };
    Ok((sent(decoded.value), decoded.duplicates))
}

fn delete_options(content: &str, body: &[u8]) -> Result<DeleteOptions> {
    if body.is_empty() {
        return Ok(DeleteOptions::default());
    }
    let Decoded { value, .. } = decode(content, body)?;
    DeleteOptions::parse(&value)
}

/// The code of an answer that is only a body.
const OK: StatusCode = StatusCode::OK;

#[cfg(test)]
mod tests {
    use super::{delete_options, protobuf};

    #[test]
    fn a_deletion_that_is_only_tried_is_seen_in_every_form() {
        let wire = b"k8s\0\n\x13\n\x02v1\x12\rDeleteOptions\x12\x05*\x03All";
        for (content, body) in [
            ("application/json", br#"{"dryRun":["All"]}"#.as_slice()),
            ("application/yaml", b"dryRun: [All]"),
            (protobuf::MEDIA_TYPE, wire),
        ] {
            assert!(delete_options(content, body).unwrap().dry_run, "{content}");
        }
        assert!(!delete_options(protobuf::MEDIA_TYPE, &wire[..wire.len() - 7]).unwrap().dry_run);
    }
}
