//! An instance manager that starts finds the processes of the one before it, which may have been killed at any moment,
//! and goes on with them. Volumes never notice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use super::child::{self, Child};
use super::instance::Instance;
use super::record::Record;
use super::registry::Registry;

/// How long the end of a process that was being replaced is waited for.
const LAST_MOMENTS: Duration = Duration::from_secs(5);

struct Found {
    record: Record,
    child: Option<Child>,
}

/// One instance for each name.
pub async fn all(registry: &Registry, records: Vec<Record>) -> Vec<Arc<Instance>> {
    let mut names: BTreeMap<String, Vec<Found>> = BTreeMap::new();
    for record in records {
        if record.boot != registry.boot() {
            // The machine was restarted: nothing of it is left, and nobody waits for it.
            forget(registry, &record.run);
            continue;
        }
        let child = running(&record);
        names.entry(record.spec.name.clone()).or_default().push(Found { record, child });
    }
    let mut instances = Vec::new();
    for (name, mut found) in names {
        let kept = if found.len() > 1 { choose(registry, &name, found).await } else { found.pop() };
        instances.extend(kept.map(|found| instance(registry, found)));
    }
    instances
}

fn running(record: &Record) -> Option<Child> {
    let pid = match record.process {
        Some((pid, started)) => Some(pid).filter(|pid| child::start_time(*pid) == Some(started)),
        // Its manager died between starting it and writing down which it is.
        None => child::find(&record.run),
    };
    Child::adopt(pid?).ok()
}

/// One was to replace another. Whichever still runs is kept; the newcomer only when the other has let go.
async fn choose(registry: &Registry, name: &str, found: Vec<Found>) -> Option<Found> {
    let (mut newcomers, mut old): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|found| found.record.replaces.is_some());
    let (newcomer, mut old) = match (newcomers.pop(), old.pop()) {
        (Some(newcomer), Some(last)) if newcomers.is_empty() && old.is_empty() => (newcomer, last),
        (newcomer, last) => {
            let all = newcomers.into_iter().chain(old).chain(newcomer).chain(last).collect();
            return freshest(registry, name, all);
        }
    };
    if let (Some(new), Some(leaving)) = (&newcomer.child, &mut old.child) {
        let left = tokio::time::timeout(LAST_MOMENTS, leaving.ended()).await.is_ok();
        if !left {
            tracing::warn!(
                name,
                pid = new.pid,
                "a replacement was not finished; the process before it goes on"
            );
            end(name, new, Signal::KILL);
            forget(registry, &newcomer.record.run);
            return Some(old);
        }
    }
    let (kept, other) = if newcomer.child.is_some() { (newcomer, old) } else { (old, newcomer) };
    forget(registry, &other.record.run);
    Some(kept)
}

/// Which replaced which cannot be told any more; the one that was started last among those that run is kept.
fn freshest(registry: &Registry, name: &str, mut found: Vec<Found>) -> Option<Found> {
    found.sort_by_key(|found| (found.child.is_some(), found.record.process.map(|(_, started)| started)));
    let kept = found.pop();
    for other in found {
        if let Some(child) = &other.child {
            tracing::warn!(name, pid = child.pid, "ending a process that another of its name came after");
            end(name, child, Signal::TERM);
        }
        forget(registry, &other.record.run);
    }
    kept
}

/// What goes on regardless is fenced by the one that is kept, but takes up memory and ports.
fn end(name: &str, child: &Child, signal: Signal) {
    if let Err(error) = child.signal(signal) {
        tracing::error!(name, pid = child.pid, %error, "a process that nobody needs stays behind; end it by hand");
    }
}

fn instance(registry: &Registry, found: Found) -> Arc<Instance> {
    let Found { mut record, child } = found;
    let ports = registry.ports().claim(record.port_start, record.spec.port_count);
    record.replaces = None;
    if record.process.is_none() {
        record.process = child.as_ref().and_then(|child| Some((child.pid, child::start_time(child.pid)?)));
    }
    let name = record.spec.name.clone();
    let instance = Arc::new(Instance::new(registry.settings(), ports, record));
    instance.amend(|_| {});
    match child {
        Some(child) => {
            tracing::info!(name, pid = child.pid, "found a running process");
            instance.resume(child);
        }
        None => {
            tracing::warn!(name, "a process has ended while nobody looked after it");
            instance.lost();
        }
    }
    instance
}

fn forget(registry: &Registry, run: &str) {
    if let Err(error) = Record::remove(&registry.settings().state_dir, run) {
        tracing::warn!(run, %error, "the record of a process stays behind");
    }
}
