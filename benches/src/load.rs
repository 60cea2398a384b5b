//! Closed-loop load: so many clients, each sending its next request when the last one was answered.
//!
//! Stops at a number of requests or after a time, whichever comes first, so a run is always bounded.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How much load, and when it ends.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub clients: usize,
    pub requests: usize,
    pub time: Duration,
}

/// What a phase of load came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Summary {
    pub requests: usize,
    pub seconds: f64,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl Summary {
    pub fn of(mut latencies: Vec<Duration>, elapsed: Duration) -> Self {
        latencies.sort_unstable();
        let seconds = elapsed.as_secs_f64();
        Self {
            requests: latencies.len(),
            seconds,
            per_second: latencies.len() as f64 / seconds,
            p50_ms: percentile_ms(&latencies, 50),
            p99_ms: percentile_ms(&latencies, 99),
        }
    }
}

/// `sorted` must be sorted; an empty one has the percentile 0.
pub fn percentile_ms(sorted: &[Duration], percent: usize) -> f64 {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
}

/// Runs `request` with the numbers 0, 1, 2… until the bounds are met; the first error ends the run.
pub async fn run<F, Fut>(bounds: Bounds, request: F) -> anyhow::Result<Summary>
where
    F: Fn(usize) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send,
{
    let request = Arc::new(request);
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let clients: Vec<_> = (0..bounds.clients)
        .map(|_| {
            let (request, next) = (request.clone(), next.clone());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while started.elapsed() < bounds.time {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= bounds.requests {
                        break;
                    }
                    let sent = Instant::now();
                    request(number).await?;
                    latencies.push(sent.elapsed());
                }
                anyhow::Ok(latencies)
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for client in clients {
        latencies.extend(client.await??);
    }
    Ok(Summary::of(latencies, started.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(requests: usize) -> Bounds {
        Bounds { clients: 4, requests, time: Duration::from_secs(60) }
    }

    #[tokio::test]
    async fn every_number_is_asked_for_once() {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let asked = seen.clone();
        let summary = run(bounds(100), move |number| {
            asked.lock().unwrap().push(number);
            async { Ok(()) }
        })
        .await
        .unwrap();
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        assert_eq!(summary.requests, 100);
    }

    #[tokio::test]
    async fn an_error_ends_the_run() {
        let result = run(bounds(100), |number| async move {
            if number == 7 {
                anyhow::bail!("no")
            }
            Ok(())
        })
        .await;
        assert!(result.is_err());
    }

    #[test]
    fn percentiles_of_few_values() {
        let ms = |n| Duration::from_millis(n);
        assert_eq!(percentile_ms(&[], 99), 0.0);
        assert_eq!(percentile_ms(&[ms(3)], 50), 3.0);
        assert_eq!(percentile_ms(&[ms(1), ms(2), ms(3), ms(4)], 50), 3.0);
        assert_eq!(percentile_ms(&[ms(1), ms(2), ms(3), ms(4)], 99), 4.0);
    }
}
