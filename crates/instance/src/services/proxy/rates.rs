//! How much an engine does per second, from counters that only grow: the difference since it was asked last.

use std::collections::HashMap;
use std::time::Duration;

use granary_enginectl::v1;
use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::Status;

use super::engines::Engine;
use crate::wire::ptypes::Metrics;

/// Somebody who asks for the first time waits this long for an answer.
const SHORTEST: Duration = Duration::from_millis(250);
/// An older sample says nothing of the present.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Default)]
pub struct Rates(Mutex<HashMap<String, Sample>>);

#[derive(Clone)]
struct Sample {
    at: Instant,
    counters: v1::MetricsReply,
}

impl Rates {
    pub async fn of(&self, mut engine: Engine) -> Result<Metrics, Status> {
        let last = self.0.lock().get(&engine.run).cloned();
        let fits = |sample: &Sample| (SHORTEST..LONGEST).contains(&sample.at.elapsed());
        let before = match last.filter(fits) {
            Some(sample) => sample,
            None => {
                let sample = take(&mut engine).await?;
                tokio::time::sleep(SHORTEST).await;
                sample
            }
        };
        let now = take(&mut engine).await?;
        let rates = between(&before.counters, &now.counters, now.at - before.at);
        let mut samples = self.0.lock();
        samples.retain(|_, sample| sample.at.elapsed() < LONGEST);
        samples.insert(engine.run, now);
        Ok(rates)
    }
}

async fn take(engine: &mut Engine) -> Result<Sample, Status> {
    let reply = engine.client.metrics(v1::MetricsRequest {}).await;
    let counters = reply.map_err(|status| engine.told(&status))?.into_inner();
    Ok(Sample { at: Instant::now(), counters })
}

fn between(before: &v1::MetricsReply, now: &v1::MetricsReply, time: Duration) -> Metrics {
    let rate =
        |before: u64, now: u64| (now.saturating_sub(before) as f64 / time.as_secs_f64()).round() as u64;
    let latency = |before: &Option<v1::Latency>, now: &Option<v1::Latency>| {
        let (before, now) = (before.clone().unwrap_or_default(), now.clone().unwrap_or_default());
        let micros = now.sum_micros.saturating_sub(before.sum_micros);
        (micros * 1000).checked_div(now.count.saturating_sub(before.count)).unwrap_or(0)
    };
    Metrics {
        read_throughput: rate(before.read_bytes, now.read_bytes),
        write_throughput: rate(before.write_bytes, now.write_bytes),
        read_latency: latency(&before.read_latency, &now.read_latency),
        write_latency: latency(&before.write_latency, &now.write_latency),
        read_iops: rate(before.reads, now.reads),
        write_iops: rate(before.writes, now.writes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_over_time() {
        let sample = |reads, read_bytes, sum_micros| v1::MetricsReply {
            reads,
            read_bytes,
            read_latency: Some(v1::Latency { count: reads, sum_micros, ..Default::default() }),
            ..Default::default()
        };
        let rates = between(&sample(10, 4096, 100), &sample(30, 12288, 300), Duration::from_secs(2));
        assert_eq!((rates.read_iops, rates.read_throughput, rates.read_latency), (10, 4096, 10_000));
        assert_eq!((rates.write_iops, rates.write_latency), (0, 0));
    }
}
