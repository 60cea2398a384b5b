//! Between the engine's own words and those of the API. Every error kind has its gRPC code here and nowhere else.

use granary_block::engine::event::{RebuildStatus, ReplicaStatus, Status};
use granary_block::engine::{CommandError, Histogram, Metrics};
use tonic::Status as Refusal;

use crate::limits::SnapshotLimits;
use crate::service::Reached;
use crate::v1;

pub fn refusal(error: CommandError) -> Refusal {
    match error {
        CommandError::NotFound(message) => Refusal::not_found(message),
        CommandError::Exists(message) => Refusal::already_exists(message),
        CommandError::Invalid(message) => Refusal::invalid_argument(message),
        CommandError::Busy(message) => Refusal::failed_precondition(message),
        CommandError::Failed(message) => Refusal::internal(message),
    }
}

pub fn status(status: Status, reached: Reached, limits: SnapshotLimits) -> v1::StatusReply {
    let snapshots = status.layers.iter().filter(|layer| layer.snapshot.is_some()).count();
    v1::StatusReply {
        volume: status.volume,
        size: status.size,
        generation: status.generation.0,
        state: status.state,
        message: status.message,
        replicas: status.replicas.into_iter().map(replica).collect(),
        snapshots: snapshots as u32,
        purging: status.purging,
        iops_limit: status.iops_limit,
        bandwidth_limit: status.bandwidth_limit,
        rebuild_rate: status.rebuild_rate,
        frontends: reached.places,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        frontend_specs: reached.specs,
        max_snapshots: limits.count,
        max_snapshot_bytes: limits.bytes,
    }
}

pub fn replica(replica: ReplicaStatus) -> v1::Replica {
    v1::Replica {
        address: replica.address,
        id: replica.replica.map(|id| id.to_string()).unwrap_or_default(),
        state: replica.state,
        reason: replica.reason,
        rebuild: replica.rebuild.map(rebuild),
        reads: replica.reads,
        writes: replica.writes,
    }
}

fn rebuild(rebuild: RebuildStatus) -> v1::Rebuild {
    v1::Rebuild {
        kind: rebuild.kind,
        bytes_copied: rebuild.bytes_copied,
        bytes_compared: rebuild.bytes_compared,
        bytes_total: rebuild.bytes_total,
        layer: rebuild.layer,
        layers: rebuild.layers,
    }
}

pub fn metrics(metrics: Metrics) -> v1::MetricsReply {
    v1::MetricsReply {
        reads: metrics.reads,
        writes: metrics.writes,
        zeroes: metrics.zeroes,
        flushes: metrics.flushes,
        read_bytes: metrics.read_bytes,
        write_bytes: metrics.write_bytes,
        errors: metrics.errors,
        read_latency: Some(latency(metrics.read_latency)),
        write_latency: Some(latency(metrics.write_latency)),
        flush_latency: Some(latency(metrics.flush_latency)),
        replica_failures: metrics.replica_failures,
        rebuilds_done: metrics.rebuilds_done,
        rebuild_bytes_copied: metrics.rebuild_bytes_copied,
        rebuild_bytes_compared: metrics.rebuild_bytes_compared,
        reconciled_bytes: metrics.reconciled_bytes,
        reconcile_bytes_copied: metrics.reconcile_bytes_copied,
        in_flight: metrics.in_flight,
    }
}

fn latency(histogram: Histogram) -> v1::Latency {
    v1::Latency {
        p50_micros: histogram.quantile(0.5),
        p99_micros: histogram.quantile(0.99),
        count: histogram.count,
        sum_micros: histogram.sum_micros,
        buckets: histogram.buckets,
    }
}

pub fn verdict(checksums: Vec<(String, String)>) -> v1::VerifyReply {
    let equal = checksums.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let checksums = checksums.into_iter().map(|(replica, digest)| v1::Checksum { replica, digest }).collect();
    v1::VerifyReply { equal, checksums }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_equal_only_when_all_digests_are() {
        let sums = |digests: &[&str]| {
            digests.iter().map(|digest| (String::from("replica"), (*digest).to_owned())).collect::<Vec<_>>()
        };
        assert!(verdict(sums(&["a"])).equal);
        assert!(verdict(sums(&["a", "a", "a"])).equal);
        assert!(!verdict(sums(&["a", "a", "b"])).equal);
        assert!(!verdict(sums(&["b", "a", "a"])).equal);
    }
}
