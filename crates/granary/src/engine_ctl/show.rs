//! The API's answers as text for people. Everything that came from elsewhere is made safe for a terminal.

use granary_block::size::show as size;
use granary_cli::{Columns, cell};
use granary_enginectl::v1;

pub fn status(status: &v1::StatusReply) -> String {
    let mut facts = vec![
        ("volume", status.volume.clone()),
        ("state", status.state.clone()),
        ("size", format!("{} ({} bytes)", size(status.size), status.size)),
        ("generation", status.generation.to_string()),
        ("snapshots", status.snapshots.to_string()),
    ];
    facts.extend(status.frontends.iter().map(|place| ("frontend", place.clone())));
    if status.purging {
        facts.push(("purge", "running".to_owned()));
    }
    if status.iops_limit + status.bandwidth_limit > 0 {
        let iops = if status.iops_limit == 0 { "no limit".into() } else { status.iops_limit.to_string() };
        facts.push(("limits", format!("{iops} requests/s, {}", limit(status.bandwidth_limit, "/s"))));
    }
    if status.rebuild_rate > 0 {
        facts.push(("rebuilds", limit(status.rebuild_rate, "/s")));
    }
    if !status.message.is_empty() {
        facts.push(("message", status.message.clone()));
    }
    let facts = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    format!("{}\n{}", table(None, facts), replicas(&status.replicas))
}

pub fn limit(rate: u64, unit: &str) -> String {
    if rate == 0 { "without a limit".to_owned() } else { format!("at most {}{unit}", size(rate)) }
}

pub fn replicas(replicas: &[v1::Replica]) -> String {
    let rows = replicas.iter().map(|replica| {
        let note = match &replica.rebuild {
            Some(rebuild) => progress(rebuild),
            None => replica.reason.clone(),
        };
        let counts = [replica.reads.to_string(), replica.writes.to_string()];
        let [reads, writes] = counts;
        vec![replica.address.clone(), replica.state.clone(), reads, writes, replica.id.clone(), note]
    });
    table(Some(&["REPLICA", "STATE", "READS", "WRITES", "ID", "NOTE"]), rows)
}

pub fn rebuilds(replicas: &[v1::Replica]) -> String {
    if replicas.is_empty() {
        return "no replica is being rebuilt\n".to_owned();
    }
    let rows = replicas.iter().filter_map(|replica| {
        let rebuild = replica.rebuild.as_ref()?;
        Some(vec![
            replica.address.clone(),
            rebuild.kind.clone(),
            format!("{}/{}", rebuild.layer, rebuild.layers),
            percent(rebuild),
            size(rebuild.bytes_copied),
            size(rebuild.bytes_compared),
            size(rebuild.bytes_total),
        ])
    });
    table(Some(&["REPLICA", "KIND", "LAYER", "DONE", "COPIED", "COMPARED", "TOTAL"]), rows)
}

fn progress(rebuild: &v1::Rebuild) -> String {
    format!("{} rebuild, {}, {} copied", rebuild.kind, percent(rebuild), size(rebuild.bytes_copied))
}

fn percent(rebuild: &v1::Rebuild) -> String {
    let done = rebuild.bytes_copied.max(rebuild.bytes_compared);
    match (u128::from(done) * 100).checked_div(u128::from(rebuild.bytes_total)) {
        Some(percent) => format!("{}%", percent.min(100)),
        None => "-".to_owned(),
    }
}

pub fn snapshots(snapshots: &[v1::Snapshot]) -> String {
    if snapshots.is_empty() {
        return "the volume has no snapshots\n".to_owned();
    }
    let rows = snapshots.iter().map(|snapshot| {
        let labels: Vec<_> = snapshot.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        vec![
            snapshot.name.clone(),
            snapshot.created.clone(),
            size(snapshot.allocated),
            snapshot.parent.clone(),
            snapshot.children.join(","),
            if snapshot.removed { "removed" } else { "kept" }.to_owned(),
            labels.join(","),
        ]
    });
    table(Some(&["SNAPSHOT", "CREATED", "SIZE", "PARENT", "CHILDREN", "STATE", "LABELS"]), rows)
}

pub fn verdict(reply: &v1::VerifyReply) -> String {
    let rows = reply.checksums.iter().map(|sum| vec![sum.replica.clone(), sum.digest.clone()]);
    let digests = table(Some(&["REPLICA", "CONTENT"]), rows);
    let count = reply.checksums.len();
    let verdict = match (reply.equal, count) {
        (true, 1) => "one replica is in sync: there is nothing to compare it with".to_owned(),
        (true, _) => format!("all {count} replicas in sync are equal"),
        (false, _) => "THE REPLICAS DIFFER; remove the wrong one, and add it again to rebuild it".to_owned(),
    };
    format!("{digests}\n{verdict}\n")
}

pub fn metrics(metrics: &v1::MetricsReply) -> String {
    let counters = [
        ("reads", metrics.reads.to_string()),
        ("writes", metrics.writes.to_string()),
        ("zeroes", metrics.zeroes.to_string()),
        ("flushes", metrics.flushes.to_string()),
        ("read", size(metrics.read_bytes)),
        ("written", size(metrics.write_bytes)),
        ("errors", metrics.errors.to_string()),
        ("in flight", metrics.in_flight.to_string()),
        ("replica failures", metrics.replica_failures.to_string()),
        ("rebuilds done", metrics.rebuilds_done.to_string()),
        ("rebuild copied", size(metrics.rebuild_bytes_copied)),
        ("rebuild compared", size(metrics.rebuild_bytes_compared)),
        ("reconciled at start", size(metrics.reconciled_bytes)),
        ("differed at start", size(metrics.reconcile_bytes_copied)),
    ];
    let counters = counters.into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    let latencies = [
        ("read", &metrics.read_latency),
        ("write", &metrics.write_latency),
        ("flush", &metrics.flush_latency),
    ];
    let latencies = latencies.into_iter().filter_map(|(name, latency)| {
        let latency = latency.as_ref().filter(|latency| latency.count > 0)?;
        let mean = latency.sum_micros / latency.count;
        let times = [mean, latency.p50_micros, latency.p99_micros].map(|micros| format!("{micros} µs"));
        Some([name.to_owned()].into_iter().chain(times).collect::<Vec<_>>())
    });
    let latencies = table(Some(&["LATENCY", "MEAN", "HALF BELOW", "99% BELOW"]), latencies);
    format!("{}\n{latencies}", table(None, counters))
}

fn table(header: Option<&[&str]>, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let header = header.map(|header| header.iter().map(|name| (*name).to_owned()).collect());
    let rows = rows.into_iter().map(|row| row.iter().map(|text| cell(text)).collect());
    let rows: Vec<Vec<String>> = header.into_iter().chain(rows).collect();
    let mut columns = Columns::default();
    for row in &rows {
        columns.fit(row.iter().map(String::as_str));
    }
    rows.iter().map(|row| columns.line(row, |_, cell| cell.to_owned()) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_even_when_there_is_nothing_to_do() {
        let rebuild =
            |bytes_copied, bytes_total| v1::Rebuild { bytes_copied, bytes_total, ..Default::default() };
        assert_eq!(percent(&rebuild(0, 0)), "-");
        assert_eq!(percent(&rebuild(1, 4)), "25%");
        assert_eq!(percent(&rebuild(9, 4)), "100%");
    }

    #[test]
    fn a_difference_cannot_be_overlooked() {
        let sum = |digest: &str| v1::Checksum { replica: "r".into(), digest: digest.into() };
        let shown = verdict(&v1::VerifyReply { equal: false, checksums: vec![sum("a"), sum("b")] });
        assert!(shown.contains("DIFFER"), "{shown}");
        let shown = verdict(&v1::VerifyReply { equal: true, checksums: vec![sum("a"), sum("a")] });
        assert!(shown.contains("all 2 replicas in sync are equal"), "{shown}");
    }
}
