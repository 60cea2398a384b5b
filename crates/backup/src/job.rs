//! What every long job has: a limit on what it does at a time, progress that can be watched, a way to stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

/// One job as its caller sees it; clones are the same job.
#[derive(Debug, Clone)]
pub struct Job {
    concurrency: usize,
    progress: Arc<Progress>,
    cancel: CancellationToken,
}

/// Bytes of the volume that the job has to look at, and those it is done with.
#[derive(Debug, Default)]
pub struct Progress {
    total: AtomicU64,
    done: AtomicU64,
}

impl Job {
    /// A job has up to `concurrency` blocks in memory, each of them at most twice: plain and packed.
    pub fn new(concurrency: usize) -> Self {
        Self { concurrency: concurrency.max(1), progress: Arc::default(), cancel: CancellationToken::new() }
    }

    /// The job ends with [`Error::Cancelled`] when the token is cancelled.
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Runs steps, a few at a time, until all are done, one fails or the job is cancelled.
    pub(crate) async fn run<T, S>(
        &self,
        steps: impl Iterator<Item = S>,
        mut each: impl FnMut(T),
    ) -> Result<()>
    where
        S: Future<Output = Result<T>>,
    {
        let running = futures::stream::iter(steps).buffer_unordered(self.concurrency);
        futures::pin_mut!(running);
        while let Some(result) = self.next(&mut running).await? {
            each(result?);
        }
        Ok(())
    }

    async fn next<S: Stream + Unpin>(&self, steps: &mut S) -> Result<Option<S::Item>> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Error::Cancelled),
            item = steps.next() => Ok(item),
        }
    }
}

impl Default for Job {
    fn default() -> Self {
        Self::new(4)
    }
}

impl Progress {
    pub(crate) fn expect(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Done and total bytes; the total is 0 until the job knows what it has to do.
    pub fn bytes(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// From 0 to 1. The last step, which makes a backup visible, is not part of it.
    pub fn fraction(&self) -> f64 {
        match self.bytes() {
            (_, 0) => 0.0,
            (done, total) => (done as f64 / total as f64).min(1.0),
        }
    }
}
