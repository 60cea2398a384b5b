//! Lists of everything: in pages, as client libraries do it, and at once.
//!
//! Counts bytes and items without building objects, so that the time is the server's.

use std::time::Instant;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};

use crate::connection::Server;
use crate::memory;
use crate::objects;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ListSummary {
    pub items: usize,
    pub mib: f64,
    pub seconds: f64,
    /// The most memory that the server held meanwhile.
    pub peak_mib: f64,
}

/// What we need to know of a page; the items stay unparsed.
#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Vec<&'a serde_json::value::RawValue>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue", default)]
    next: String,
}

/// Lists the whole namespace with `limit` items per page, or at once when `limit` is 0.
pub async fn list(server: &Server, limit: usize, pids: &[u32]) -> anyhow::Result<ListSummary> {
    memory::reset_peak(pids)?;
    let mut summary = ListSummary::default();
    let mut next = String::new();
    let mut bytes = 0;
    loop {
        let path = format!("{}?limit={limit}&continue={next}", objects::collection());
        let asked = Instant::now();
        let body = server.call(Method::GET, &path, Bytes::new()).await?;
        summary.seconds += asked.elapsed().as_secs_f64();
        let page: Page = serde_json::from_slice(&body).context("a list that is not one")?;
        ensure!(limit == 0 || page.items.len() <= limit, "a page has more items than asked for");
        summary.items += page.items.len();
        bytes += body.len();
        next = page.metadata.next;
        if next.is_empty() {
            break;
        }
    }
    summary.mib = bytes as f64 / f64::from(1 << 20);
    summary.peak_mib = memory::peak_mib(pids)?;
    Ok(summary)
}
