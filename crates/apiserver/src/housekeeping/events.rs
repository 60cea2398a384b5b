//! Events tell of the recent past; older ones go.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::internal_call;
use crate::builtin::human;
use crate::store::Prefix;
use crate::verbs::{Api, DeleteOptions};

/// As long as Kubernetes keeps them.
const KEPT_SECONDS: i64 = 60 * 60;
const EVERY: Duration = Duration::from_secs(60);

pub(super) async fn expire(api: &Api) {
    let mut tick = tokio::time::interval(EVERY);
    loop {
        tick.tick().await;
        if let Err(error) = expire_once(api, Timestamp::now()).await {
            tracing::warn!(%error, "old events could not be removed");
        }
    }
}

async fn expire_once(api: &Api, now: Timestamp) -> crate::error::Result<()> {
    let Some(resource) = api.registry.get("", "v1", "events") else { return Ok(()) };
    let internal = |e: crate::store::StoreError| crate::error::ApiError::internal(e.to_string());
    let snapshot = api.store.snapshot(None).map_err(internal)?;
    let prefix = Prefix::resource(&resource.storage);
    let mut start: Option<String> = None;
    loop {
        let page = snapshot.page(&prefix, start.as_deref(), 256, |_, _| true).map_err(internal)?;
        for stored in page.items {
            let event: Value = serde_json::from_slice(&stored.json).unwrap_or_default();
            if is_old(&event, now) {
                let mut call = internal_call(&resource, stored.key.namespace(), stored.key.name());
                match api.delete(&mut call, &DeleteOptions::default()).await {
                    Err(error) if !super::is_gone(&error) => return Err(error),
                    _ => {}
                }
            }
        }
        match page.next {
            Some(next) => start = Some(next),
            None => return Ok(()),
        }
    }
}

fn is_old(event: &Value, now: Timestamp) -> bool {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    let newest = times.into_iter().filter_map(human::parse).max();
    newest.is_some_and(|time| now.duration_since(time).as_secs() > KEPT_SECONDS)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::is_old;

    #[test]
    fn the_latest_sign_of_life_counts() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let old = json!({"metadata": {"creationTimestamp": "2026-01-01T10:00:00Z"}});
        assert!(is_old(&old, now));
        let repeated = json!({
            "metadata": {"creationTimestamp": "2026-01-01T10:00:00Z"},
            "lastTimestamp": "2026-01-01T11:59:00Z",
        });
        assert!(!is_old(&repeated, now));
        assert!(!is_old(&json!({}), now));
    }
}
