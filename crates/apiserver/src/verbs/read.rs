//! Reading one object or a list of them.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{Answer, Api, Call, shape};
use crate::builtin;
use crate::error::{ApiError, Result};
use crate::http::query::VersionMatch;
use crate::registry::{Resource, Source};
use crate::selector::{FieldSelector, LabelSelector};
use crate::store::{Key, Prefix, Snapshot, StoreError, Stored};

/// Objects read from the store at once; a list of any length needs memory for no more than these.
const CHUNK: usize = 128;

impl Api {
    pub fn get(&self, call: &Call) -> Result<Answer> {
        let current = self.store.revision();
        if let Some(version) = call.query.resource_version.filter(|v| *v > current) {
            return Err(super::too_large_version(version, current));
        }
        let stored = self.store.get(&call.key()).map_err(|e| call.store_error(e))?;
        let stored = stored.ok_or_else(|| call.not_found())?;
        if call.subresource == "scale" {
            return self.get_scale(call, &stored.json);
        }
        if call.resource.served_as_stored() {
            return Ok(Answer::Raw(StatusCode::OK, stored.json));
        }
        Ok(Answer::Object(StatusCode::OK, shape::parse_stored(&call.resource, &stored.json)?))
    }

    pub fn list(&self, call: &Call) -> Result<Answer> {
        let filter = self.filter(call)?;
        let token = match call.query.continue_token.as_str() {
            "" => None,
            _ if call.query.resource_version.is_some_and(|version| version > 0) => {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            text => Some(Token::decode(text)?),
        };
        let wanted = match (&token, call.query.resource_version, call.query.version_match) {
            (Some(token), ..) => token.revision,
            (None, Some(version), Some(VersionMatch::Exact)) if version > 0 => Some(version),
            (None, Some(version), _) if version > self.store.revision() => {
                return Err(super::too_large_version(version, self.store.revision()));
            }
            _ => None,
        };
        let snapshot = self.store.snapshot(wanted).map_err(|e| match (e, &token) {
            (StoreError::Compacted { .. }, Some(token)) => expired(token),
            (other, _) => call.store_error(other),
        })?;
        let counts = filter.is_empty() && call.query.limit > 0;
        let left = match &token {
            Some(token) => token.left,
            None if counts => Some(self.store.count(&call.prefix()).map_err(|e| call.store_error(e))?),
            None => None,
        };
        Ok(Answer::List(Box::new(ListBody {
            resource: call.resource.clone(),
            snapshot,
            prefix: call.prefix(),
            filter,
            start: token.map(|t| t.start),
            limit: if call.query.limit == 0 { usize::MAX } else { call.query.limit },
            left,
            ended: false,
        })))
    }

    /// What the selectors of a request keep.
    pub(super) fn filter(&self, call: &Call) -> Result<Filter> {
        let filter = Filter {
            resource: call.resource.clone(),
            labels: call.query.labels.clone(),
            fields: call.query.fields.clone(),
            name: (!call.name.is_empty()).then(|| call.name.clone()),
        };
        filter.check()?;
        Ok(filter)
    }
}

/// A list that is read while it is sent.
pub struct ListBody {
    pub resource: Arc<Resource>,
    snapshot: Snapshot,
    prefix: Prefix,
    filter: Filter,
    start: Option<String>,
    limit: usize,
    /// Objects that are still to come, where that is known.
    left: Option<u64>,
    ended: bool,
}

impl ListBody {
    pub fn revision(&self) -> u64 {
        self.snapshot.revision()
    }

    /// The next objects; an empty chunk is possible and not the end, `None` is.
    pub fn chunk(&mut self) -> Result<Option<Vec<Stored>>> {
        if self.ended {
            return Ok(None);
        }
        if let Some(name) = self.filter.exact_name() {
            // One name is looked up, not searched for, when the namespace is known.
            if let Some(key) = self.exact_key(name) {
                self.start = Some(key.as_str().to_string());
                self.prefix = Prefix::exact(&key);
            }
        }
        let filter = &self.filter;
        let page = self
            .snapshot
            .page(&self.prefix, self.start.as_deref(), CHUNK.min(self.limit), |key, json| {
                filter.keeps(key, json)
            })
            .map_err(|e| ApiError::internal(e.to_string()))?;
        self.limit -= page.items.len();
        self.left = self.left.map(|left| left.saturating_sub(page.items.len() as u64));
        self.ended = page.next.is_none() || self.limit == 0;
        self.start = page.next;
        Ok(Some(page.items))
    }

    fn exact_key(&self, name: &str) -> Option<Key> {
        let scope = self.prefix.start().trim_end_matches('/');
        let (resource, namespace) = scope.split_once('/').unwrap_or((scope, ""));
        let known = !self.resource.namespaced || !namespace.is_empty();
        (known && self.start.is_none()).then(|| Key::new(resource, namespace, name))
    }

    /// How to go on after the last chunk: the token and what remains.
    pub fn rest(&self) -> (Option<String>, Option<u64>) {
        let Some(start) = &self.start else { return (None, None) };
        let token = Token {
            version: TOKEN_VERSION.into(),
            revision: Some(self.revision()),
            start: start.clone(),
            left: self.left,
        };
        (Some(token.encode()), self.left)
    }
}

const TOKEN_VERSION: &str = "granary/v1";

/// Where a paged list goes on. Opaque to clients.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    #[serde(rename = "v", default)]
    version: String,
    /// The revision of the first page; none to go on at the newest, after the first one has expired.
    #[serde(rename = "rv")]
    revision: Option<u64>,
    #[serde(default)]
    start: String,
    left: Option<u64>,
}

impl Token {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(text: &str) -> Result<Self> {
        let refused = |why: String| {
            Err(ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}")))
        };
        let bytes = match URL_SAFE_NO_PAD.decode(text) {
            Ok(bytes) => bytes,
            Err(error) => return refused(error.to_string()),
        };
        match serde_json::from_slice::<serde_json::Value>(&bytes) {
            Ok(value) if value["v"] == TOKEN_VERSION => {
                serde_json::from_value(value).or_else(|error| refused(error.to_string()))
            }
            Ok(_) => refused("server does not recognize this encoded version".into()),
            Err(error) => refused(error.to_string()),
        }
    }
}

fn expired(token: &Token) -> ApiError {
    let again =
        Token { version: TOKEN_VERSION.into(), revision: None, start: token.start.clone(), left: None };
    let mut error = ApiError::gone(
        "The provided continue parameter is too old to display a consistent list result. You can start a new \
         list without the continue parameter, or use the continue token in this response to retrieve the \
         remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
         that were created, modified, or deleted between the time the first chunk was returned and now may show \
         up in the list.",
    );
    error.continue_token = Some(again.encode());
    error
}

/// Label and field selectors of one request.
#[derive(Clone)]
pub struct Filter {
    resource: Arc<Resource>,
    labels: LabelSelector,
    fields: FieldSelector,
    /// A watch of a single object.
    name: Option<String>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.name.is_none()
    }

    fn exact_name(&self) -> Option<&str> {
        self.name.as_deref().or_else(|| self.fields.exact_name())
    }

    /// Refuses fields that this kind cannot be selected by.
    fn check(&self) -> Result<()> {
        let probe = self.values(&serde_json::Value::Object(serde_json::Map::new()));
        for term in self.fields.terms() {
            let field = &term.field;
            let known = matches!(field.as_str(), "metadata.name" | "metadata.namespace")
                || probe.iter().any(|(known, _)| known == field);
            if known {
                continue;
            }
            let general = probe.is_empty() && !self.resource.is_custom();
            return Err(ApiError::bad_request(if general {
                format!(
                    "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            } else {
                format!("field label not supported: {field}")
            }));
        }
        Ok(())
    }

    fn values(&self, object: &serde_json::Value) -> Vec<(String, String)> {
        match &self.resource.source {
            Source::Builtin(kind) => {
                (kind.fields)(object).into_iter().map(|(field, value)| (field.to_string(), value)).collect()
            }
            Source::Custom(custom) => custom
                .selectable
                .iter()
                .map(|path| {
                    let value = object.pointer(&format!("/{}", path.replace('.', "/")));
                    let text = match value {
                        Some(serde_json::Value::String(text)) => text.clone(),
                        Some(serde_json::Value::Null) | None => String::new(),
                        Some(other) => other.to_string(),
                    };
                    (path.clone(), text)
                })
                .collect(),
        }
    }

    /// Decides by as little of the object as the selectors need.
    pub fn keeps(&self, key: &Key, json: &[u8]) -> bool {
        if self.name.as_ref().is_some_and(|name| name != key.name()) {
            return false;
        }
        if !self.labels.matches_json(json) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let by_key = |field: &str| match field {
            "metadata.name" => Some(key.name()),
            "metadata.namespace" => Some(key.namespace()),
            _ => None,
        };
        if self.fields.terms().iter().all(|t| by_key(&t.field).is_some()) {
            return self.fields.matches(by_key);
        }
        let Ok(object) = serde_json::from_slice(json) else { return false };
        let values = self.values(&object_view(&self.resource, object));
        self.fields.matches(|field| {
            by_key(field)
                .or_else(|| values.iter().find(|(name, _)| name == field).map(|(_, value)| value.as_str()))
        })
    }
}

fn object_view(resource: &Resource, object: serde_json::Value) -> serde_json::Value {
    if resource.group == "events.k8s.io" { builtin::core_to_events(object) } else { object }
}

/// A stored object as the resource serves it, parsed only if it must be.
pub fn served_bytes(resource: &Resource, json: &Bytes) -> Result<Bytes> {
    if resource.served_as_stored() {
        return Ok(json.clone());
    }
    Ok(Bytes::from(shape::parse_stored(resource, json)?.to_string()))
}
