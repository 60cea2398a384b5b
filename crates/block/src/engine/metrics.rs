//! Counters and latency histograms of one volume.

use serde::{Deserialize, Serialize};

/// Buckets double from one microsecond; the last one takes everything longer.
const BUCKETS: usize = 28;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Histogram {
    pub count: u64,
    pub sum_micros: u64,
    pub buckets: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { count: 0, sum_micros: 0, buckets: vec![0; BUCKETS] }
    }
}

impl Histogram {
    pub fn record(&mut self, micros: u64) {
        self.count += 1;
        self.sum_micros += micros;
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
    }

    /// The upper bound in microseconds of the bucket that holds this share of the requests.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return 1 << at;
            }
        }
        0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    pub reads: u64,
    pub writes: u64,
    pub zeroes: u64,
    pub flushes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub errors: u64,
    pub read_latency: Histogram,
    pub write_latency: Histogram,
    pub flush_latency: Histogram,
    /// Replicas that had to leave.
    pub replica_failures: u64,
    pub rebuilds_done: u64,
    pub rebuild_bytes_copied: u64,
    pub rebuild_bytes_compared: u64,
    /// After an unclean start: what was compared and what differed.
    pub reconciled_bytes: u64,
    pub reconcile_bytes_copied: u64,
    pub in_flight: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_tells_where_most_requests_are() {
        let mut histogram = Histogram::default();
        for micros in [0, 1, 3, 100, 100, 100, 5000] {
            histogram.record(micros);
        }
        assert_eq!(histogram.count, 7);
        assert_eq!(histogram.quantile(0.5), 128);
        assert_eq!(histogram.quantile(1.0), 8192);
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
