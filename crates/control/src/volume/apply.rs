//! A decision, carried out: each action is a write to one object, and doing it twice does no more than once.

use std::collections::BTreeMap;

use granary_api::constants::longhorn::{ENGINE_SUFFIX, FINALIZER, NODE_LABEL, REPLICA_SUFFIX, VOLUME_LABEL};
use granary_api::longhorn::{
    self, Engine, EngineSpec, InstanceSpec, InstanceState, Replica, ReplicaSpec, Volume,
};
use granary_api::wire::IntString;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Resource, ResourceExt};

use super::decision::Action;
use super::view::Parts;
use crate::context::{Context, Failed};
use crate::schedule::{self, Copy, NoPlace, Request, Rules, place};
use crate::{finalizer, process, store};

/// Does everything; gives why a replica has no place, if one has none.
pub async fn apply(
    context: &Context,
    parts: &Parts<'_>,
    actions: &[Action],
    now: i64,
) -> Result<Option<NoPlace>, Failed> {
    let mut no_place = None;
    for action in actions {
        match action {
            Action::CreateEngine => create_engine(context, parts.volume).await?,
            // When one has no place, the next has none either.
            Action::CreateReplica if no_place.is_some() => {}
            Action::CreateReplica => no_place = create_replica(context, parts).await?.err(),
            Action::StartEngine { node, replicas } => {
                change_engine(context, parts, |spec| {
                    spec.instance.node_id = Some(node.clone());
                    spec.instance.desire_state = Some(InstanceState::Running);
                    spec.instance.volume_size = parts.volume.spec.size;
                    spec.replica_address_map = Some(replicas.clone());
                    spec.frontend = parts.volume.spec.frontend;
                    spec.disable_frontend = parts.volume.spec.disable_frontend;
                })
                .await?;
            }
            Action::StopEngine => {
                change_engine(context, parts, |spec| {
                    spec.instance.desire_state = Some(InstanceState::Stopped);
                })
                .await?;
            }
            Action::SetReplicas(replicas) => {
                change_engine(context, parts, |spec| spec.replica_address_map = Some(replicas.clone()))
                    .await?;
            }
            Action::Expand(size) => {
                let size = IntString(i64::try_from(*size).unwrap_or(i64::MAX));
                change_engine(context, parts, |spec| spec.instance.volume_size = Some(size)).await?;
            }
            Action::DeleteEngine => {
                if let Some(engine) = parts.engine {
                    delete(&context.api::<Engine>(), engine).await?;
                }
            }
            Action::Salvage(names) => {
                for name in names {
                    change_replica(context, parts, name, |spec| spec.failed_at = None).await?;
                }
            }
            Action::DeleteReplica(name) => {
                if let Some(replica) = find(parts, name) {
                    delete(&context.api::<Replica>(), replica).await?;
                }
            }
            Action::Release => finalizer::remove(&context.api(), parts.volume).await?,
            Action::StartReplica(name)
            | Action::StopReplica(name)
            | Action::MarkHealthy(name)
            | Action::MarkFailed(name)
            | Action::Retry(name) => {
                change_replica(context, parts, name, |spec| change(spec, action, &process::time(now)))
                    .await?;
            }
        }
    }
    Ok(no_place)
}

fn change(spec: &mut ReplicaSpec, action: &Action, now: &str) {
    match action {
        Action::StartReplica(_) => spec.instance.desire_state = Some(InstanceState::Running),
        Action::StopReplica(_) => spec.instance.desire_state = Some(InstanceState::Stopped),
        Action::MarkHealthy(_) => {
            (spec.healthy_at, spec.last_healthy_at) = (Some(now.to_owned()), Some(now.to_owned()));
            spec.rebuild_retry_count = Some(0);
        }
        Action::MarkFailed(_) => {
            (spec.failed_at, spec.last_failed_at) = (Some(now.to_owned()), Some(now.to_owned()));
            spec.instance.desire_state = Some(InstanceState::Stopped);
        }
        Action::Retry(_) => {
            (spec.failed_at, spec.healthy_at) = (None, None);
            spec.rebuild_retry_count = Some(spec.rebuild_retry_count.unwrap_or(0) + 1);
        }
        _ => {}
    }
}

fn find<'a>(parts: &Parts<'a>, name: &str) -> Option<&'a Replica> {
    parts.replicas.iter().find(|replica| replica.name_any() == name)
}

/// Several actions of one decision may be about one object, so it is read again.
async fn change_replica(
    context: &Context,
    parts: &Parts<'_>,
    name: &str,
    change: impl FnOnce(&mut ReplicaSpec),
) -> Result<(), Failed> {
    if find(parts, name).is_none() {
        return Ok(());
    }
    let replicas: Api<Replica> = context.api();
    let before = replicas.get(name).await?;
    let mut after = before.clone();
    change(&mut after.spec);
    if after != before {
        store::spec(&replicas, &after).await?;
    }
    Ok(())
}

async fn change_engine(
    context: &Context,
    parts: &Parts<'_>,
    change: impl FnOnce(&mut EngineSpec),
) -> Result<(), Failed> {
    let Some(engine) = parts.engine else { return Ok(()) };
    let mut after = engine.clone();
    change(&mut after.spec);
    if after != *engine {
        store::spec(&context.api(), &after).await?;
    }
    Ok(())
}

async fn delete<K>(api: &Api<K>, object: &K) -> Result<(), Failed>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    if object.meta().deletion_timestamp.is_some() {
        return Ok(());
    }
    match api.delete(&object.name_any(), &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn metadata(volume: &Volume, name: String, labels: &[(&str, &str)]) -> ObjectMeta {
    let name_of_volume = volume.name_any();
    let labels = labels.iter().copied().chain([(VOLUME_LABEL, name_of_volume.as_str())]);
    ObjectMeta {
        name: Some(name),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        owner_references: volume.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

fn instance(volume: &Volume) -> InstanceSpec {
    InstanceSpec {
        volume_name: Some(volume.name_any()),
        volume_size: volume.spec.size,
        image: volume.spec.image.clone(),
        desire_state: Some(InstanceState::Stopped),
        data_engine: volume.spec.data_engine,
        ..InstanceSpec::default()
    }
}

async fn create_engine(context: &Context, volume: &Volume) -> Result<(), Failed> {
    let mut engine = Engine::new("", EngineSpec::default());
    engine.metadata = metadata(volume, format!("{}{ENGINE_SUFFIX}-0", volume.name_any()), &[]);
    engine.spec.instance = instance(volume);
    engine.spec.frontend = volume.spec.frontend;
    engine.spec.active = Some(true);
    match context.api().create(&PostParams::default(), &engine).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn create_replica(context: &Context, parts: &Parts<'_>) -> Result<Result<(), NoPlace>, Failed> {
    let placing = context.placing.lock().await;
    let all = context.api::<Replica>().list(&ListParams::default()).await?.items;
    let nodes = context.api::<longhorn::Node>().list(&ListParams::default()).await?.items;
    let nodes = with_promises(nodes.iter().map(schedule::Node::from).collect(), &all);
    let name = parts.volume.name_any();
    let siblings = all.iter().filter(|replica| replica.spec.instance.volume_name.as_deref() == Some(&name));
    let copies: Vec<Copy> = siblings.filter_map(Copy::of).collect();
    let rules = Rules::of(parts.values, parts.volume);
    let found = match place(&Request::from(parts.volume), &rules, &nodes, &copies) {
        Ok(found) => found,
        Err(no_place) => return Ok(Err(no_place)),
    };
    let random = uuid::Uuid::new_v4().simple().to_string();
    let replica_name = format!("{name}{REPLICA_SUFFIX}-{}", &random[..8]);
    let mut replica = Replica::new("", ReplicaSpec::default());
    replica.metadata = metadata(parts.volume, replica_name, &[(NODE_LABEL, &found.node)]);
    replica.spec.instance = InstanceSpec { node_id: Some(found.node), ..instance(parts.volume) };
    replica.spec.engine_name = Some(format!("{name}{ENGINE_SUFFIX}-0"));
    replica.spec.disk_id = Some(found.disk);
    replica.spec.disk_path = Some(found.path);
    replica.spec.data_directory_name = Some(format!("{name}-{}", &random[8..16]));
    replica.spec.active = Some(true);
    context.api().create(&PostParams::default(), &replica).await?;
    drop(placing);
    Ok(Ok(()))
}

/// Promises are counted from the replicas there are: a node tells them later than the next one is placed.
fn with_promises(mut nodes: Vec<schedule::Node>, replicas: &[Replica]) -> Vec<schedule::Node> {
    let mut promised: BTreeMap<&str, u64> = BTreeMap::new();
    for replica in replicas {
        let disk = replica.spec.disk_id.as_deref().unwrap_or_default();
        *promised.entry(disk).or_default() += replica.spec.instance.volume_size.unwrap_or_default().bytes();
    }
    for disk in nodes.iter_mut().flat_map(|node| &mut node.disks) {
        disk.scheduled = disk.scheduled.max(promised.get(disk.id.as_str()).copied().unwrap_or(0));
    }
    nodes
}
