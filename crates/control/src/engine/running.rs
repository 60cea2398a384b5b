//! A running engine: what it says of itself goes into its status, and what its object says is passed on to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use granary_api::longhorn::{self, Engine, EngineStatus, RebuildStatus, SnapshotInfo};
use granary_api::wire::IntString;
use granary_instance::client::{EngineClient, ReplicaMode, Snapshot};
use jiff::Timestamp;
use kube::ResourceExt;

use super::controller::{Controller, client};
use crate::context::Failed;
use crate::process;

/// What an engine's replicas are to become.
#[derive(Debug, PartialEq, Eq)]
struct Changes {
    /// By address.
    add: Vec<String>,
    remove: Vec<String>,
}

pub async fn look_after(
    controller: &Arc<Controller>,
    engine: &Engine,
    mut status: EngineStatus,
) -> Result<EngineStatus, Failed> {
    let client = Arc::new(client(&controller.context, engine, &status.instance)?);
    let volume = client.volume().await?;
    let told = engine.spec.replica_address_map.clone().unwrap_or_default();
    let has: Vec<(String, ReplicaMode)> =
        client.replicas().await?.into_iter().map(|replica| (replica.address, replica.mode)).collect();

    let wanted_size = engine.spec.instance.volume_size.unwrap_or_default().bytes();
    if volume.size != 0 && wanted_size > volume.size {
        match client.expand(wanted_size).await {
            Ok(()) => status.last_expansion_error = None,
            Err(error) => {
                status.last_expansion_error = Some(error.to_string());
                status.last_expansion_failed_at = Some(process::time(Timestamp::now().as_second()));
            }
        }
    }
    let changes = changes(&told, &has);
    for address in &changes.remove {
        client.remove_replica(address).await?;
    }
    for address in changes.add {
        fill(controller, engine.name_any(), client.clone(), address);
    }

    let modes = modes(&told, &has);
    let now = process::time(Timestamp::now().as_second());
    status.replica_transition_time_map = Some(transitions(&status, &modes, &now));
    status.replica_mode_map = Some(modes);
    status.current_replica_address_map = Some(told.clone());
    status.current_size = Some(IntString(i64::try_from(volume.size).unwrap_or(i64::MAX)));
    status.endpoint = Some(volume.endpoint);
    let rebuilds = client.rebuilds().await?.into_iter().map(|rebuild| {
        let progress = RebuildStatus {
            is_rebuilding: Some(true),
            progress: Some(i64::from(rebuild.percent)),
            state: Some("in_progress".to_owned()),
            ..RebuildStatus::default()
        };
        (format!("tcp://{}", rebuild.address), progress)
    });
    status.rebuild_status = Some(rebuilds.collect());
    match client.snapshots().await {
        Ok(snapshots) => {
            let named = snapshots.into_iter().map(|snapshot| (snapshot.name.clone(), info(snapshot)));
            (status.snapshots, status.snapshots_error) = (Some(named.collect()), None);
        }
        Err(error) => status.snapshots_error = Some(error.to_string()),
    }
    Ok(status)
}

/// The call lasts until the replica has everything, so nobody waits for it here.
fn fill(
    controller: &Arc<Controller>,
    engine: String,
    client: Arc<impl EngineClient + 'static>,
    address: String,
) {
    let key = (engine, address);
    if !controller.filling.lock().insert(key.clone()) {
        return;
    }
    let controller = controller.clone();
    tokio::spawn(async move {
        match client.add_replica(&key.1).await {
            Ok(()) => tracing::info!(engine = key.0, replica = key.1, "a replica has been filled"),
            Err(error) => tracing::warn!(engine = key.0, replica = key.1, %error, "a replica was not filled"),
        }
        controller.filling.lock().remove(&key);
    });
}

fn changes(told: &BTreeMap<String, String>, has: &[(String, ReplicaMode)]) -> Changes {
    let add = told.values().filter(|address| !has.iter().any(|(held, _)| held == *address));
    let held = has.iter().map(|(held, _)| held);
    let remove = held.filter(|held| !told.values().any(|address| address == *held));
    Changes { add: add.cloned().collect(), remove: remove.cloned().collect() }
}

fn modes(
    told: &BTreeMap<String, String>,
    has: &[(String, ReplicaMode)],
) -> BTreeMap<String, longhorn::ReplicaMode> {
    let mode_of = |address: &String| has.iter().find(|(held, _)| held == address).map(|(_, mode)| *mode);
    let modes = told.iter().filter_map(|(name, address)| {
        let mode = match mode_of(address)? {
            ReplicaMode::ReadWrite => longhorn::ReplicaMode::ReadWrite,
            ReplicaMode::WriteOnly => longhorn::ReplicaMode::WriteOnly,
            ReplicaMode::Failed => longhorn::ReplicaMode::Error,
        };
        Some((name.clone(), mode))
    });
    modes.collect()
}

fn transitions(
    before: &EngineStatus,
    modes: &BTreeMap<String, longhorn::ReplicaMode>,
    now: &str,
) -> BTreeMap<String, String> {
    let old = |name: &String| before.replica_mode_map.as_ref().and_then(|modes| modes.get(name));
    let time = |name: &String| before.replica_transition_time_map.as_ref().and_then(|times| times.get(name));
    let times = modes.iter().map(|(name, mode)| {
        let known = time(name).filter(|_| old(name) == Some(mode));
        (name.clone(), known.cloned().unwrap_or_else(|| now.to_owned()))
    });
    times.collect()
}

fn info(snapshot: Snapshot) -> SnapshotInfo {
    SnapshotInfo {
        name: Some(snapshot.name),
        parent: Some(snapshot.parent),
        children: Some(snapshot.children.into_iter().map(|child| (child, true)).collect()),
        removed: Some(snapshot.removed),
        user_created: Some(snapshot.user_created),
        created: Some(snapshot.created),
        size: Some(snapshot.size.to_string()),
        labels: Some(snapshot.labels),
        ..SnapshotInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).to_owned(), format!("{name}:1"))).collect()
    }

    #[test]
    fn an_engine_gets_what_it_lacks_and_loses_what_it_should_not_have() {
        let has = ["b:1", "c:1"].map(|address| (address.to_owned(), ReplicaMode::ReadWrite));
        let changes = changes(&told(&["a", "b"]), &has);
        assert_eq!(changes, Changes { add: vec!["a:1".into()], remove: vec!["c:1".into()] });
    }

    #[test]
    fn modes_are_told_by_name_and_only_of_known_replicas() {
        let has = [("a:1".to_owned(), ReplicaMode::Failed), ("x:1".to_owned(), ReplicaMode::ReadWrite)];
        let modes = modes(&told(&["a", "b"]), &has);
        assert_eq!(modes, BTreeMap::from([("a".to_owned(), longhorn::ReplicaMode::Error)]));
    }

    #[test]
    fn a_mode_keeps_its_time_until_it_changes() {
        let mode = |mode: longhorn::ReplicaMode| BTreeMap::from([("a".to_owned(), mode)]);
        let before = EngineStatus {
            replica_mode_map: Some(mode(longhorn::ReplicaMode::ReadWrite)),
            replica_transition_time_map: Some(BTreeMap::from([("a".to_owned(), "then".to_owned())])),
            ..EngineStatus::default()
        };
        assert_eq!(transitions(&before, &mode(longhorn::ReplicaMode::ReadWrite), "now")["a"], "then");
        assert_eq!(transitions(&before, &mode(longhorn::ReplicaMode::Error), "now")["a"], "now");
    }
}
