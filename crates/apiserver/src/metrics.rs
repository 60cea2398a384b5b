//! Counters and histograms of the API, in the text form that Prometheus reads.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::store::Store;

/// Labels have few values: a resource name, a verb, a code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    pub verb: &'static str,
    pub resource: String,
    pub code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct VerbLabels {
    pub verb: &'static str,
}

pub struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<VerbLabels, Histogram>,
    pub watches: Gauge,
    revision: Gauge<u64, AtomicU64>,
    compacted: Gauge<u64, AtomicU64>,
    commits: Gauge<u64, AtomicU64>,
    file_bytes: Gauge<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("granary");
        let requests = Family::default();
        let seconds = Family::<VerbLabels, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.000_1, 2.0, 18))
        });
        let watches = Gauge::default();
        let revision = Gauge::default();
        let compacted = Gauge::default();
        let commits = Gauge::default();
        let file_bytes = Gauge::default();
        registry.register("api_requests", "Requests to the API", requests.clone());
        registry.register("api_request_duration_seconds", "Time to answer, but for watches", seconds.clone());
        registry.register("api_watches", "Watches that are open", watches.clone());
        registry.register("store_revision", "Newest revision", revision.clone());
        registry.register("store_compacted_revision", "Oldest revision to watch from", compacted.clone());
        registry.register("store_commits", "Commits since the start", commits.clone());
        registry.register("store_file_bytes", "Size of the database file", file_bytes.clone());
        Self {
            registry: Mutex::new(registry),
            requests,
            seconds,
            watches,
            revision,
            compacted,
            commits,
            file_bytes,
        }
    }

    pub fn record(&self, verb: &'static str, resource: &str, code: u16, took: Duration) {
        self.requests.get_or_create(&RequestLabels { verb, resource: resource.into(), code }).inc();
        if verb != "watch" {
            self.seconds.get_or_create(&VerbLabels { verb }).observe(took.as_secs_f64());
        }
    }

    /// Lets other parts of the process add their own metrics.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock());
    }

    /// The exposition text.
    pub fn text(&self, store: &Store) -> String {
        self.revision.set(store.revision());
        self.compacted.set(store.compacted());
        self.commits.set(store.commits());
        self.file_bytes.set(store.file_bytes());
        let mut text = String::new();
        if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &self.registry.lock()) {
            tracing::error!(%error, "metrics cannot be written");
        }
        text
    }
}
