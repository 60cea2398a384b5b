//! Answers on the wire: JSON or YAML, whole or streamed, with the headers clients expect.

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::Value;

use super::media::{Accept, Encoding, View, apiversion};
use crate::error::{ApiError, Result};
use crate::registry::Resource;
use crate::table;
use crate::verbs::{ListBody, WatchBody};

/// How this client wants its answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    pub accept: Accept,
    pub pretty: bool,
}

pub fn json(style: Style, code: StatusCode, value: &Value) -> Response<Body> {
    match style.accept.encoding {
        Encoding::Json if style.pretty => {
            let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
            text.push('\n');
            bytes(code, "application/json", text.into())
        }
        Encoding::Json => {
            bytes(code, "application/json", serde_json::to_vec(value).unwrap_or_default().into())
        }
        Encoding::Yaml => {
            let text = serde_saphyr::to_string(value).unwrap_or_else(|e| format!("# {e}\n"));
            bytes(code, "application/yaml", text.into())
        }
    }
}

pub fn bytes(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    head(code, content_type, Body::from(body))
}

fn head(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

pub fn error(style: Style, error: &ApiError) -> Response<Body> {
    let mut response = json(style, error.code, &error.status());
    if let Some(seconds) = error.retry_after_seconds {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if error.code == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"granary\""));
    }
    response
}

/// Adds `Warning` headers, as many as fit.
pub fn warn(response: &mut Response<Body>, warnings: &[String]) {
    const BUDGET: usize = 4096;
    let mut used = 0;
    for warning in warnings {
        let clean: String = warning.chars().filter(|c| !c.is_control()).collect();
        let text = format!("299 - \"{}\"", clean.replace('\\', "\\\\").replace('"', "\\\""));
        used += text.len();
        if used > BUDGET {
            break;
        }
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            response.headers_mut().append(HeaderName::from_static("warning"), value);
        }
    }
}

/// One object in the view that was asked for.
pub fn object(
    style: Style,
    resource: &Resource,
    code: StatusCode,
    value: &Value,
    include: &str,
) -> Response<Body> {
    let is_status = value["kind"] == "Status" && value["apiVersion"] == "v1";
    match style.accept.view {
        View::Table if !is_status => {
            let mut table = if value["kind"] == "Scale" && value["apiVersion"] == "autoscaling/v1" {
                table::scale_table(value, include)
            } else {
                table::table(resource, std::slice::from_ref(value), include)
            };
            table["metadata"]["resourceVersion"] = value["metadata"]["resourceVersion"].clone();
            json(style, code, &table)
        }
        View::PartialMetadata if !is_status => json(style, code, &table::partial(value)),
        _ => json(style, code, value),
    }
}

/// A list, read from the store as the client takes it.
pub fn list(style: Style, mut list: ListBody, include: &str) -> Result<Response<Body>> {
    let plain = style.accept.view == View::Object && style.accept.encoding == Encoding::Json && !style.pretty;
    if plain {
        let resource = list.resource.clone();
        let start = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"items\":[",
            resource.list_kind,
            apiversion(&resource.group, &resource.version)
        );
        // The first objects are read before the answer begins, so that an error is still an error.
        let first = list.chunk()?;
        let state = Streaming { list, pending: Some(start.into()), first, any: false, done: false };
        let pieces = stream::unfold(state, |mut state| async move {
            let piece = state.next()?;
            Some((piece, state))
        });
        return Ok(head(StatusCode::OK, "application/json", Body::from_stream(pieces)));
    }
    let mut objects = Vec::new();
    while let Some(chunk) = list.chunk()? {
        for stored in chunk {
            let json = crate::verbs::served_bytes(&list.resource, &stored.json)?;
            objects.push(serde_json::from_slice(&json).map_err(|e| ApiError::internal(e.to_string()))?);
        }
    }
    let mut body = match style.accept.view {
        View::Table => table::table(&list.resource, &objects, include),
        View::PartialMetadata => serde_json::json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
            "items": objects.iter().map(table::partial).collect::<Vec<_>>(),
        }),
        View::Object => serde_json::json!({
            "kind": list.resource.list_kind, "apiVersion": list.resource.api_version(), "items": objects,
        }),
    };
    body["metadata"] = list_metadata(&list);
    Ok(json(style, StatusCode::OK, &body))
}

fn list_metadata(list: &ListBody) -> Value {
    let mut metadata = serde_json::json!({ "resourceVersion": list.revision().to_string() });
    let (token, left) = list.rest();
    if let Some(token) = token {
        metadata["continue"] = token.into();
        if let Some(left) = left {
            metadata["remainingItemCount"] = left.into();
        }
    }
    metadata
}

struct Streaming {
    list: ListBody,
    pending: Option<Bytes>,
    first: Option<Vec<crate::store::Stored>>,
    any: bool,
    done: bool,
}

impl Streaming {
    /// An error ends the connection: the client must not take half a list for a whole one.
    fn next(&mut self) -> Option<std::result::Result<Bytes, ApiError>> {
        if let Some(start) = self.pending.take() {
            return Some(Ok(start));
        }
        if self.done {
            return None;
        }
        let chunk = match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.list.chunk(),
        };
        match chunk {
            Err(error) => {
                self.done = true;
                Some(Err(error))
            }
            Ok(Some(items)) => Some(self.items(&items)),
            Ok(None) => {
                self.done = true;
                Some(Ok(format!("],\"metadata\":{}}}", list_metadata(&self.list)).into()))
            }
        }
    }

    fn items(&mut self, items: &[crate::store::Stored]) -> std::result::Result<Bytes, ApiError> {
        let mut piece = Vec::with_capacity(items.iter().map(|i| i.json.len() + 1).sum());
        for stored in items {
            if std::mem::replace(&mut self.any, true) {
                piece.push(b',');
            }
            piece.extend_from_slice(&crate::verbs::served_bytes(&self.list.resource, &stored.json)?);
        }
        Ok(piece.into())
    }
}

/// A watch. `finished` is dropped with the answer, however it ends.
pub fn watch<G: Send + 'static>(watch: WatchBody, finished: G) -> Response<Body> {
    let pieces = stream::unfold((watch, finished), |(mut watch, finished)| async move {
        let piece = watch.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), (watch, finished)))
    });
    head(StatusCode::OK, "application/json", Body::from_stream(pieces))
}
