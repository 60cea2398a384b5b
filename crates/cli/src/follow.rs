//! Following a collection: every change after a resource version, across time limits and lost
//! connections. It never lists; when the server has forgotten the version, the caller must.

use std::{pin::Pin, time::Duration};

use futures::{AsyncBufRead, AsyncBufReadExt, StreamExt, io::Lines};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::{CliError, Result},
    request::Address,
    session::Session,
};

/// How long a lost connection is given to come back: enough for a server to restart.
const RECONNECT_FOR: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A watch that ends sooner than this is being refused; asking again at once would be a storm.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One step of following.
#[derive(Debug)]
pub enum Step {
    Changed(Change, Value),
    /// Changes were missed: list again and follow from there.
    Expired,
}

type LineStream = Lines<Pin<Box<dyn AsyncBufRead + Send>>>;

/// A watch that resumes by itself.
pub struct Follow<'a> {
    session: &'a Session,
    address: Address,
    accept: &'static str,
    version: String,
    lines: Option<LineStream>,
    opened: tokio::time::Instant,
}

#[derive(Deserialize)]
struct WireEvent {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

impl<'a> Follow<'a> {
    /// Follows the collection at `address` (with its selectors) after `version`.
    pub fn new(session: &'a Session, address: Address, accept: &'static str, version: &str) -> Self {
        let address = address.with("watch", "true").with("allowWatchBookmarks", "true");
        Self {
            session,
            address,
            accept,
            version: version.into(),
            lines: None,
            opened: tokio::time::Instant::now(),
        }
    }

    /// Continues from a newer list.
    pub fn restart(&mut self, version: &str) {
        self.version = version.into();
        self.lines = None;
    }

    /// Waits for the next change. May be dropped and called again without missing one.
    pub async fn next(&mut self) -> Result<Step> {
        loop {
            if self.lines.is_none() {
                match self.open().await {
                    Ok(lines) => {
                        self.lines = Some(lines);
                        self.opened = tokio::time::Instant::now();
                    }
                    Err(error) if error.is_expired() => return Ok(Step::Expired),
                    Err(error) => return Err(error),
                }
            }
            let line = match &mut self.lines {
                Some(lines) => lines.next().await,
                None => continue,
            };
            match line {
                Some(Ok(line)) if line.trim().is_empty() => {}
                Some(Ok(line)) => {
                    if let Some(step) = self.read(&line)? {
                        return Ok(step);
                    }
                }
                // The server ends watches after some minutes, or is gone; opening again tells which.
                Some(Err(_)) | None => {
                    self.lines = None;
                    if self.opened.elapsed() < SHORTEST_WATCH {
                        tokio::time::sleep(SHORTEST_WATCH).await;
                    }
                }
            }
        }
    }

    fn read(&mut self, line: &str) -> Result<Option<Step>> {
        let event: WireEvent =
            serde_json::from_str(line).map_err(|error| CliError::Answer { reason: error.to_string() })?;
        if let Some(version) = version_of(&event.object) {
            self.version = version.to_owned();
        }
        let change = match event.kind.as_str() {
            "ADDED" => Change::Added,
            "MODIFIED" => Change::Modified,
            "DELETED" => Change::Deleted,
            "ERROR" if event.object["code"] == 410 => return Ok(Some(Step::Expired)),
            "ERROR" => {
                let status = serde_json::from_value(event.object).unwrap_or_default();
                let origin = Box::new(self.session.origin.clone());
                return Err(CliError::Api { origin, status: Box::new(status) });
            }
            _ => return Ok(None),
        };
        Ok(Some(Step::Changed(change, event.object)))
    }

    async fn open(&self) -> Result<LineStream> {
        let address = self.address.clone().with("resourceVersion", &self.version);
        let mut pause = FIRST_PAUSE;
        let give_up = tokio::time::Instant::now() + RECONNECT_FOR;
        loop {
            match self.session.stream(address.get_as(self.accept)?).await {
                Ok(stream) => {
                    let stream: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(stream);
                    return Ok(stream.lines());
                }
                Err(error) if error.may_pass() && tokio::time::Instant::now() + pause < give_up => {
                    tracing::debug!(%error, "watch lost, trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A table carries the version of its object in the row, an object in its metadata.
fn version_of(object: &Value) -> Option<&str> {
    let row = object["rows"][0]["object"]["metadata"]["resourceVersion"].as_str();
    row.or_else(|| object["metadata"]["resourceVersion"].as_str()).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::testing::{Scene, scene, scripted};
    use serde_json::json;

    fn events(asked: &'static str, events: &[Value]) -> Scene {
        let lines: Vec<String> = events.iter().map(|event| format!("{event}\n")).collect();
        scene(asked, 200, lines.concat())
    }

    fn event(kind: &str, version: &str) -> Value {
        json!({"type": kind, "object": {"metadata": {"resourceVersion": version}}})
    }

    async fn next(follow: &mut Follow<'_>) -> String {
        match follow.next().await.unwrap() {
            Step::Changed(change, object) => format!("{} {}", change.word(), version_of(&object).unwrap()),
            Step::Expired => "expired".into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_resumes_where_it_was_and_tells_when_it_cannot() {
        let gone = json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}});
        let session = scripted(vec![
            events("resourceVersion=5", &[event("ADDED", "6"), event("BOOKMARK", "9")]),
            scene("resourceVersion=9", 503, "restarting"),
            events("resourceVersion=9", &[event("DELETED", "10")]),
            events("resourceVersion=10", &[gone]),
            scene("resourceVersion=20", 410, json!({"kind": "Status", "code": 410}).to_string()),
        ]);
        let mut follow = Follow::new(&session, Address::path("/things"), "application/json", "5");
        assert_eq!(next(&mut follow).await, "ADDED 6");
        assert_eq!(next(&mut follow).await, "DELETED 10", "the bookmark moved the place to resume from");
        assert_eq!(next(&mut follow).await, "expired");
        follow.restart("20");
        assert_eq!(next(&mut follow).await, "expired", "a refusal at the start means the same");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_away_ends_the_watch() {
        let away = (0..60).map(|_| scene("watch=true", 503, "away")).collect();
        let session = scripted(away);
        let mut follow = Follow::new(&session, Address::path("/things"), "application/json", "5");
        let error = follow.next().await.unwrap_err();
        assert!(error.may_pass(), "{error}");
    }

    #[test]
    fn the_version_to_resume_from_is_found_in_objects_tables_and_bookmarks() {
        let row = json!({"kind": "Table", "metadata": {"resourceVersion": "4"},
            "rows": [{"object": {"metadata": {"resourceVersion": "7"}}}]});
        assert_eq!(version_of(&row), Some("7"));
        assert_eq!(version_of(&json!({"metadata": {"resourceVersion": "9"}})), Some("9"));
        assert_eq!(
            version_of(&json!({"kind": "Table", "metadata": {"resourceVersion": ""}, "rows": null})),
            None
        );
    }
}
