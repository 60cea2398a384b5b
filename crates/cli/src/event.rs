//! Events as people read them: when last seen, how often, about what.
//! Understands both the older fields and those of `events.k8s.io`; it fetches nothing.

use jiff::Timestamp;
use serde_json::Value;

use crate::{duration::age, text::cell};

/// One event, reduced to what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub last_seen: Option<Timestamp>,
    pub first_seen: Option<Timestamp>,
    pub count: i64,
    pub kind: String,
    pub reason: String,
    pub message: String,
    pub namespace: String,
    /// The object it is about
    pub about: About,
}

/// The object an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub uid: String,
}

impl Event {
    pub fn read(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let about = &object["involvedObject"];
        let created = time(&object["metadata"]["creationTimestamp"]);
        let seen = [&object["lastTimestamp"], &object["series"]["lastObservedTime"], &object["eventTime"]];
        let first = time(&object["firstTimestamp"]).or_else(|| time(&object["eventTime"])).or(created);
        let count = object["series"]["count"].as_i64().or_else(|| object["count"].as_i64());
        Self {
            last_seen: seen.into_iter().filter_map(time).max().or(first),
            first_seen: first,
            count: count.unwrap_or(1).max(1),
            kind: text(&object["type"]),
            reason: text(&object["reason"]),
            message: text(&object["message"]),
            namespace: text(&object["metadata"]["namespace"]),
            about: About {
                api_version: text(&about["apiVersion"]),
                kind: text(&about["kind"]),
                name: text(&about["name"]),
                namespace: text(&about["namespace"]),
                uid: text(&about["uid"]),
            },
        }
    }

    pub fn is_warning(&self) -> bool {
        self.kind == "Warning"
    }

    /// `5m` or `5m (x3 over 1h)`
    pub fn seen(&self, now: Timestamp) -> String {
        let Some(last) = self.last_seen else { return "<unknown>".into() };
        match self.first_seen {
            Some(first) if self.count > 1 => {
                format!("{} (x{} over {})", age(last, now), self.count, age(first, now))
            }
            _ => age(last, now),
        }
    }

    /// `pod/web-0`, or with its group `volume.longhorn.io/a`
    pub fn object_name(&self) -> String {
        let kind = self.about.kind.to_ascii_lowercase();
        let name = match self.about.api_version.split_once('/') {
            Some((group, _)) => format!("{kind}.{group}/{}", self.about.name),
            None => format!("{kind}/{}", self.about.name),
        };
        cell(&name)
    }

    /// The cells of its row, without the namespace.
    pub fn row(&self, now: Timestamp) -> Vec<String> {
        vec![self.seen(now), cell(&self.kind), cell(&self.reason), self.object_name(), cell(&self.message)]
    }
}

pub const HEADINGS: [&str; 5] = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];

/// Oldest first, as in a log; events without a time come before all others.
pub fn sort_by_time(events: &mut [Event]) {
    events.sort_by(|a, b| {
        (a.last_seen, &a.namespace, &a.about.name, &a.reason).cmp(&(
            b.last_seen,
            &b.namespace,
            &b.about.name,
            &b.reason,
        ))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn older_style() -> Value {
        json!({
            "metadata": {"name": "a.1", "namespace": "lab", "creationTimestamp": "2026-11-15T11:00:00Z"},
            "firstTimestamp": "2026-11-15T11:00:00Z", "lastTimestamp": "2026-11-15T11:55:00Z", "count": 3,
            "type": "Warning", "reason": "ProvisioningFailed", "message": "no space\nin pool",
            "involvedObject": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "name": "data", "namespace": "lab"},
        })
    }

    fn newer_style() -> Value {
        json!({
            "metadata": {"name": "b.1", "namespace": "lab", "creationTimestamp": "2026-11-15T11:30:00Z"},
            "firstTimestamp": null, "lastTimestamp": null,
            "eventTime": "2026-11-15T11:30:00.123456Z",
            "series": {"count": 2, "lastObservedTime": "2026-11-15T11:58:30.000000Z"},
            "type": "Normal", "reason": "Rebuilt", "message": "replica r1 is healthy",
            "involvedObject": {"kind": "Volume", "apiVersion": "longhorn.io/v1beta2", "name": "v1"},
        })
    }

    #[test]
    fn both_styles_of_events_are_understood() {
        assert_eq!(
            Event::read(&older_style()).row(now()),
            [
                "5m (x3 over 60m)",
                "Warning",
                "ProvisioningFailed",
                "persistentvolumeclaim/data",
                "no space..."
            ]
        );
        assert_eq!(
            Event::read(&newer_style()).row(now()),
            ["90s (x2 over 29m)", "Normal", "Rebuilt", "volume.longhorn.io/v1", "replica r1 is healthy"]
        );
    }

    #[test]
    fn the_newest_event_comes_last_whatever_its_style() {
        let bare = json!({"metadata": {"creationTimestamp": "2026-11-15T11:57:00Z"}, "reason": "Bare"});
        let timeless = json!({"reason": "Timeless"});
        let mut events: Vec<Event> =
            [&newer_style(), &older_style(), &bare, &timeless].into_iter().map(Event::read).collect();
        sort_by_time(&mut events);
        let order: Vec<&str> = events.iter().map(|event| event.reason.as_str()).collect();
        assert_eq!(order, ["Timeless", "ProvisioningFailed", "Bare", "Rebuilt"]);
        assert_eq!(events[0].seen(now()), "<unknown>");
    }
}
