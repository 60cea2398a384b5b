//! Watching: what is there, then every change in order, for as long as the client stays.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::read::{Filter, served_bytes};
use super::{Answer, Api, Call, ListBody, shape};
use crate::error::{ApiError, Result};
use crate::http::media::View;
use crate::meta;
use crate::registry::Resource;
use crate::store::{Change, Event, Prefix, StoreError};
use crate::table;

/// How long a watch lasts when the client does not say; a little random, so that they do not all end at once.
const LIFETIME: Duration = Duration::from_secs(30 * 60);
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Changes rendered into one piece of the answer.
const CHUNK: usize = 128;

impl Api {
    pub fn watch(self: &Arc<Self>, call: &Call) -> Result<Answer> {
        let query = &call.query;
        let filter = self.filter(call)?;
        let from_start = match query.send_initial_events {
            Some(send) => send,
            None => query.resource_version.unwrap_or(0) == 0,
        };
        let initial = if from_start {
            match self.list(&call.as_list())? {
                Answer::List(list) => Some(*list),
                _ => None,
            }
        } else {
            None
        };
        let cursor = match (&initial, query.resource_version) {
            (Some(list), _) => list.revision(),
            (None, Some(version)) if version > 0 => version,
            _ => self.store.revision(),
        };
        let lifetime = query.timeout_seconds.map_or_else(random_lifetime, Duration::from_secs);
        // No clock can be set to the end of time.
        let lifetime = lifetime.min(LONGEST);
        Ok(Answer::Watch(Box::new(WatchBody {
            api: self.clone(),
            resource: call.resource.clone(),
            view: call.accept.view,
            include_object: query.include_object.clone(),
            prefix: call.prefix(),
            filter,
            initial,
            cursor,
            news: self.store.subscribe(),
            definitions: self.registry.subscribe(),
            bookmarks: query.bookmarks,
            announce_end: query.bookmarks && query.send_initial_events == Some(true),
            bookmark_at: Instant::now() + BOOKMARK_EVERY,
            ends: Instant::now() + lifetime,
            headed: false,
            ended: false,
        })))
    }
}

fn random_lifetime() -> Duration {
    let spread = u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * LIFETIME.as_secs() / 256;
    LIFETIME + Duration::from_secs(spread)
}

impl Call {
    /// The list that a watch starts with: everything, whatever paging says.
    fn as_list(&self) -> Self {
        let mut call = self.for_object(&self.namespace, &self.name);
        call.query.limit = 0;
        call.query.continue_token.clear();
        call.query.version_match = None;
        call
    }
}

/// A watch in progress.
pub struct WatchBody {
    api: Arc<Api>,
    resource: Arc<Resource>,
    view: View,
    include_object: String,
    prefix: Prefix,
    filter: Filter,
    /// What was there at the start, while it is being sent.
    initial: Option<ListBody>,
    /// Everything up to this revision has been sent.
    cursor: u64,
    news: watch::Receiver<u64>,
    definitions: watch::Receiver<u64>,
    bookmarks: bool,
    /// Whether the end of the initial objects is to be announced.
    announce_end: bool,
    bookmark_at: Instant,
    ends: Instant,
    /// Whether a table's columns have been sent.
    headed: bool,
    ended: bool,
}

impl WatchBody {
    /// The next piece of the answer; `None` at the end. Dropping the future between calls loses nothing.
    pub async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            // What a definition says now may differ from how this watch reads objects: the client asks again.
            if self.definitions.has_changed().unwrap_or(true) {
                self.definitions.mark_unchanged();
                if !self.api.registry.serves(&self.resource) {
                    return None;
                }
            }
            match self.step() {
                Ok(Some(piece)) => return Some(piece),
                Ok(None) => {}
                Err(error) => {
                    self.ended = true;
                    return Some(line("ERROR", &error.status()));
                }
            }
            if let Some(piece) = self.wait().await {
                return Some(piece);
            }
        }
        None
    }

    /// Renders what is there to be sent now; `None` when the watch is up to date.
    fn step(&mut self) -> Result<Option<Bytes>> {
        if self.initial.is_some() {
            return self.initial_piece();
        }
        loop {
            let found = self.api.store.events_after(self.cursor, &self.prefix, CHUNK);
            let (events, cursor) = found.map_err(|e| match e {
                StoreError::Compacted { requested, oldest } => {
                    ApiError::gone(format!("too old resource version: {requested} ({oldest})"))
                }
                other => ApiError::internal(other.to_string()),
            })?;
            let advanced = cursor > self.cursor;
            self.cursor = cursor;
            let mut piece = Vec::new();
            for event in &events {
                self.render(event, &mut piece)?;
            }
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
            if !advanced {
                return Ok(None);
            }
        }
    }

    fn initial_piece(&mut self) -> Result<Option<Bytes>> {
        let Some(mut list) = self.initial.take() else { return Ok(None) };
        while let Some(items) = list.chunk()? {
            if items.is_empty() {
                continue;
            }
            let mut piece = Vec::new();
            for stored in &items {
                self.push("ADDED", &stored.json, &mut piece)?;
            }
            self.initial = Some(list);
            return Ok(Some(piece.into()));
        }
        if self.announce_end {
            return Ok(Some(self.bookmark(true)));
        }
        Ok(None)
    }

    /// Waits for news, for the next bookmark, or for the end; the last two may have something to send.
    async fn wait(&mut self) -> Option<Bytes> {
        tokio::select! {
            changed = self.news.changed() => {
                self.ended = changed.is_err();
                None
            }
            changed = self.definitions.changed() => {
                self.ended = changed.is_err() || !self.api.registry.serves(&self.resource);
                None
            }
            () = tokio::time::sleep_until(self.bookmark_at), if self.bookmarks => {
                self.bookmark_at = Instant::now() + BOOKMARK_EVERY;
                Some(self.bookmark(false))
            }
            () = tokio::time::sleep_until(self.ends) => {
                self.ended = true;
                None
            }
            () = self.api.stopping.cancelled() => {
                self.ended = true;
                None
            }
        }
    }

    fn render(&mut self, event: &Event, piece: &mut Vec<u8>) -> Result<()> {
        let before = event.previous.as_ref().is_some_and(|json| self.filter.keeps(&event.key, json));
        let now = event.change != Change::Deleted && self.filter.keeps(&event.key, &event.json);
        match (before, now) {
            (false, true) => self.push("ADDED", &event.json, piece),
            (true, true) => self.push("MODIFIED", &event.json, piece),
            (true, false) if event.change == Change::Deleted => self.push("DELETED", &event.json, piece),
            // It no longer matches: for this watcher it is gone, as it last was, at the version of the change.
            (true, false) => {
                let mut last: Value = serde_json::from_slice(event.previous.as_deref().unwrap_or_default())
                    .map_err(|e| ApiError::internal(e.to_string()))?;
                last["metadata"]["resourceVersion"] = event.revision.to_string().into();
                self.push("DELETED", &Bytes::from(last.to_string()), piece)
            }
            (false, false) => Ok(()),
        }
    }

    fn push(&mut self, kind: &str, json: &Bytes, piece: &mut Vec<u8>) -> Result<()> {
        let object = match self.view {
            View::Object => served_bytes(&self.resource, json)?,
            View::PartialMetadata => {
                let object = shape::parse_stored(&self.resource, json)?;
                Bytes::from(table::partial(&object).to_string())
            }
            View::Table => {
                let object = shape::parse_stored(&self.resource, json)?;
                let revision = meta::text(&object, "resourceVersion").to_string();
                let mut one =
                    table::table(&self.resource, std::slice::from_ref(&object), &self.include_object);
                one["metadata"]["resourceVersion"] = revision.into();
                if std::mem::replace(&mut self.headed, true) {
                    one["columnDefinitions"] = Value::Null;
                }
                Bytes::from(one.to_string())
            }
        };
        piece.extend_from_slice(b"{\"type\":\"");
        piece.extend_from_slice(kind.as_bytes());
        piece.extend_from_slice(b"\",\"object\":");
        piece.extend_from_slice(&object);
        piece.extend_from_slice(b"}\n");
        Ok(())
    }

    fn bookmark(&self, initial_end: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": self.cursor.to_string(), "creationTimestamp": null });
        if initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object = match self.view {
            View::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "columnDefinitions": null, "rows": [],
            }),
            View::PartialMetadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            }),
            View::Object => json!({
                "kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata,
            }),
        };
        line("BOOKMARK", &object)
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    let mut text = json!({ "type": kind, "object": object }).to_string();
    text.push('\n');
    text.into()
}
