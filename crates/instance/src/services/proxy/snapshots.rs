//! Snapshots of a volume, as managers know them: a map with the volume itself as `volume-head`.

use std::collections::BTreeMap;

use granary_enginectl::{HEAD, v1};
use tonic::Status;

use super::engines::Engine;
use super::replicas::url;
use super::volume::status;
use crate::Refusal;
use crate::process::{check_name, sync_file_system};
use crate::wire::imrpc::EngineSnapshotDiskInfo;
use crate::wire::ptypes::{SnapshotPurgeStatusResponse, VolumeSnapshotReply, VolumeSnapshotRequest};

pub async fn create(
    mut engine: Engine,
    wanted: VolumeSnapshotRequest,
) -> Result<VolumeSnapshotReply, Status> {
    let name = if wanted.name.is_empty() { uuid::Uuid::new_v4().to_string() } else { wanted.name };
    check_name("snapshot", &name)?;
    if name == HEAD {
        return Err(
            Refusal::Invalid(format!("{HEAD} is the volume itself; name the snapshot otherwise")).into()
        );
    }
    // What applications have written must not be left behind in memory.
    for place in status(&mut engine).await?.frontends {
        if let Err(error) = sync_file_system(place.clone()).await {
            tracing::warn!(volume = engine.volume, place, %error, "a snapshot is taken of what is on disk");
        }
    }
    let request = v1::CreateSnapshotRequest { name, labels: wanted.labels, automatic: false };
    let made = engine.client.create_snapshot(request).await;
    let made = made.map_err(|status| engine.told(&status))?.into_inner();
    Ok(VolumeSnapshotReply { name: made.name })
}

async fn reply(engine: &mut Engine) -> Result<v1::ListSnapshotsReply, Status> {
    let listed = engine.client.list_snapshots(v1::ListSnapshotsRequest {}).await;
    Ok(listed.map_err(|status| engine.told(&status))?.into_inner())
}

pub async fn list(mut engine: Engine) -> Result<BTreeMap<String, EngineSnapshotDiskInfo>, Status> {
    let v1::ListSnapshotsReply { snapshots, head } = reply(&mut engine).await?;
    Ok(snapshots.into_iter().chain(head).map(|snapshot| (snapshot.name.clone(), disk(snapshot))).collect())
}

fn disk(snapshot: v1::Snapshot) -> EngineSnapshotDiskInfo {
    EngineSnapshotDiskInfo {
        name: snapshot.name,
        parent: snapshot.parent,
        children: snapshot.children.into_iter().map(|child| (child, true)).collect(),
        removed: snapshot.removed,
        user_created: snapshot.user_created,
        created: snapshot.created,
        size: snapshot.allocated.to_string(),
        labels: snapshot.labels,
    }
}

/// Under the feet of a mounted file system the content must not change.
pub async fn revert(mut engine: Engine, name: String) -> Result<(), Status> {
    if let Some(place) = status(&mut engine).await?.frontends.first() {
        return Err(Refusal::Precondition(format!(
            "volume {} is reached at {place}; shut its frontend down before it is turned back",
            engine.volume
        ))
        .into());
    }
    let reverted = engine.client.revert_snapshot(v1::RevertSnapshotRequest { name }).await;
    reverted.map(drop).map_err(|status| engine.told(&status))
}

/// All of them, or none when one is not there.
pub async fn remove(mut engine: Engine, names: Vec<String>) -> Result<(), Status> {
    let known: Vec<_> =
        reply(&mut engine).await?.snapshots.into_iter().map(|snapshot| snapshot.name).collect();
    if let Some(missing) = names.iter().find(|name| !known.contains(name)) {
        let volume = &engine.volume;
        return Err(Refusal::NotFound(format!(
            "volume {volume} has no snapshot {missing}; none was removed"
        ))
        .into());
    }
    for name in names {
        let removed = engine.client.remove_snapshot(v1::RemoveSnapshotRequest { name }).await;
        removed.map_err(|status| engine.told(&status))?;
    }
    Ok(())
}

pub async fn purge(mut engine: Engine, skip_if_in_progress: bool) -> Result<(), Status> {
    if status(&mut engine).await?.purging {
        let volume = &engine.volume;
        return match skip_if_in_progress {
            true => Ok(()),
            false => Err(Refusal::Precondition(format!("volume {volume} is being purged already")).into()),
        };
    }
    let begun = engine.client.purge_snapshots(v1::PurgeSnapshotsRequest {}).await;
    begun.map(drop).map_err(|status| engine.told(&status))
}

pub async fn purge_status(
    mut engine: Engine,
) -> Result<BTreeMap<String, SnapshotPurgeStatusResponse>, Status> {
    let status = status(&mut engine).await?;
    let (is_purging, progress) = (status.purging, if status.purging { 0 } else { 100 });
    let state = if is_purging { "in_progress" } else { "complete" };
    let each =
        SnapshotPurgeStatusResponse { is_purging, error: String::new(), progress, state: state.into() };
    let in_sync = status.replicas.iter().filter(|replica| replica.state == "inSync");
    Ok(in_sync.map(|replica| (url(&replica.address), each.clone())).collect())
}

pub async fn limit_count(engine: Engine, count: i32) -> Result<(), Status> {
    let count = u32::try_from(count).map_err(|_| nonsense(&engine, &count))?;
    limit(engine, v1::SetSnapshotLimitsRequest { max_snapshots: Some(count), max_snapshot_bytes: None }).await
}

pub async fn limit_size(engine: Engine, size: i64) -> Result<(), Status> {
    let size = u64::try_from(size).map_err(|_| nonsense(&engine, &size))?;
    limit(engine, v1::SetSnapshotLimitsRequest { max_snapshots: None, max_snapshot_bytes: Some(size) }).await
}

fn nonsense(engine: &Engine, limit: &dyn std::fmt::Display) -> Status {
    Refusal::Invalid(format!("volume {}: {limit} is no limit; 0 means none", engine.volume)).into()
}

async fn limit(mut engine: Engine, request: v1::SetSnapshotLimitsRequest) -> Result<(), Status> {
    engine.client.set_snapshot_limits(request).await.map(drop).map_err(|status| engine.told(&status))
}
