//! Two measurements side by side. A ratio above 1 always means that ours is better.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

/// What is shown: a path into the measurement, how it is called, and whether more of it is better.
const ROWS: &[(&str, &str, bool)] = &[
    ("/create/per_second", "creates per second", true),
    ("/create/p99_ms", "create, 99th percentile, ms", false),
    ("/get/per_second", "gets per second", true),
    ("/get/p99_ms", "get, 99th percentile, ms", false),
    ("/update/per_second", "updates per second", true),
    ("/update/p99_ms", "update, 99th percentile, ms", false),
    ("/fill/per_second", "creates per second while filling up", true),
    ("/create_when_full/per_second", "creates per second when full", true),
    ("/fanout/p50_ms", "change to watcher, median, ms", false),
    ("/fanout/p99_ms", "change to watcher, 99th percentile, ms", false),
    ("/paged_list/seconds", "paged list of all, s", false),
    ("/paged_list/peak_mib", "memory peak, paged list, MiB", false),
    ("/whole_list/seconds", "whole list at once, s", false),
    ("/whole_list/peak_mib", "memory peak, whole list, MiB", false),
    ("/idle_mib", "memory, idle, MiB", false),
    ("/loaded_mib", "memory, loaded, MiB", false),
    ("/start_empty_seconds", "start, empty, s", false),
    ("/start_full_seconds", "start with all objects, s", false),
    ("/restarted_mib", "memory after that start, MiB", false),
    ("/start_killed_seconds", "start with all objects after kill -9, s", false),
];

pub fn table(peer: &Path, ours: &Path) -> anyhow::Result<String> {
    Ok(render(&read(peer)?, &read(ours)?))
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a measurement", path.display()))
}

fn render(peer: &Value, ours: &Value) -> String {
    let mut text = format!("{:<42}{:>12}{:>12}{:>9}\n", "", "peer", "ours", "ratio");
    for (pointer, name, more_is_better) in ROWS {
        let number = |from: &Value| from.pointer(pointer).and_then(Value::as_f64);
        let (Some(peer), Some(ours)) = (number(peer), number(ours)) else { continue };
        let ratio = if *more_is_better { ours / peer } else { peer / ours };
        writeln!(text, "{name:<42}{peer:>12.2}{ours:>12.2}{ratio:>8.2}x").expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_ratio_above_one_is_good_news_in_both_directions() {
        let peer = json!({ "create": { "per_second": 100.0 }, "idle_mib": 400.0 });
        let ours = json!({ "create": { "per_second": 500.0 }, "idle_mib": 40.0 });
        let table = render(&peer, &ours);
        assert!(table.contains("5.00x"), "{table}");
        assert!(table.contains("10.00x"), "{table}");
        assert_eq!(table.lines().count(), 3, "what was not measured is not shown: {table}");
    }
}
