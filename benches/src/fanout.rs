//! How long a change takes to reach many watchers.
//!
//! Each change carries the time it was sent, so a watcher needs no other channel to know its delay.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::connection::Server;
use crate::load::percentile_ms;
use crate::objects::NAMESPACE;

/// Between two changes, so that the delay of one is measured and not a queue of many.
const PAUSE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FanoutSummary {
    pub watchers: usize,
    pub changes: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

pub async fn measure(server: &Arc<Server>, watchers: usize, changes: usize) -> anyhow::Result<FanoutSummary> {
    let collection = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let object = format!("{collection}/watched");
    let epoch = Instant::now();
    server.call(Method::POST, &collection, body(0)).await?;
    let mut following = Vec::with_capacity(watchers);
    for _ in 0..watchers {
        let path = format!("{collection}?watch=true&fieldSelector=metadata.name%3Dwatched");
        let response = server.send(Method::GET, &path, Bytes::new()).await?;
        ensure!(response.status().is_success(), "a watch was refused: {}", response.status());
        following.push(follow(response.into_body(), changes, epoch));
    }
    for _ in 0..changes {
        tokio::time::sleep(PAUSE).await;
        // At least 1, which tells a change from the object's first version.
        let sent = epoch.elapsed().as_micros().max(1) as u64;
        server.call(Method::PUT, &object, body(sent)).await?;
    }
    let mut delays = Vec::new();
    for watcher in following {
        delays.extend(tokio::time::timeout(PATIENCE, watcher).await.context("a watcher misses changes")???);
    }
    server.call(Method::DELETE, &object, Bytes::new()).await?;
    delays.sort_unstable();
    Ok(FanoutSummary {
        watchers,
        changes,
        p50_ms: percentile_ms(&delays, 50),
        p99_ms: percentile_ms(&delays, 99),
    })
}

fn body(sent: u64) -> Bytes {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"watched","namespace":"{NAMESPACE}"}},"data":{{"sent":"{sent}"}}}}"#
    )
    .into()
}

#[derive(Deserialize)]
struct Event {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    sent: String,
}

/// Reads a watch until it has seen `changes` changes; returns the delay of each.
fn follow(mut body: Incoming, changes: usize, epoch: Instant) -> JoinHandle<anyhow::Result<Vec<Duration>>> {
    tokio::spawn(async move {
        let mut delays = Vec::with_capacity(changes);
        let mut pending = Vec::new();
        while delays.len() < changes {
            let Some(frame) = body.frame().await else { bail!("a watch ended early") };
            let Ok(chunk) = frame?.into_data() else { continue };
            let received = epoch.elapsed();
            pending.extend_from_slice(&chunk);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                let event: Event = serde_json::from_slice(&line).context("an event that is not one")?;
                let sent: u64 = event.object.data.context("an event without data")?.sent.parse()?;
                if sent > 0 {
                    delays.push(received.saturating_sub(Duration::from_micros(sent)));
                }
            }
        }
        Ok(delays)
    })
}
