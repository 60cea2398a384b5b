//! What a replica's server has done so far, for metrics and for tests that look at behaviour rather than time.

use std::sync::atomic::{AtomicU64, Ordering};

/// Only ever grow, except `held_peak`, which is a maximum.
#[derive(Debug, Default)]
pub struct Counters {
    pub connections: AtomicU64,
    /// Connections that did not get through the handshake.
    pub refused: AtomicU64,
    pub requests: AtomicU64,
    /// Reads of a socket that brought something; `requests` over this is the size of a batch.
    pub batches: AtomicU64,
    /// Reads that had to go to the disk.
    pub uncached: AtomicU64,
    pub flushes_asked: AtomicU64,
    pub flushes_done: AtomicU64,
    /// The most bytes ever kept for one connection, on the way in, at work and on the way out.
    pub held_peak: AtomicU64,
}

impl Counters {
    pub fn add(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }

    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    pub fn note_held(&self, bytes: u64) {
        self.held_peak.fetch_max(bytes, Ordering::Relaxed);
    }
}
