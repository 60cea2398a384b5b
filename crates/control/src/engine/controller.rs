//! Brings the process of one engine to where its object says, and tells what became of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use granary_api::longhorn::{Engine, EngineStatus, Frontend, InstanceState, InstanceStatus, Volume};
use granary_instance::client::ProxyClient;
use granary_instance::wire::process::ProcessSpec;
use kube::ResourceExt;
use kube::runtime::controller::Action;

use super::running;
use crate::context::{Context, Failed};
use crate::process::{self, Wanted};
use crate::setting::catalogue;
use crate::{finalizer, store};

/// How long after the end of a process its instance manager may still speak of it.
const SOON: Duration = Duration::from_secs(1);
/// An engine tells nothing by itself, so it is asked.
const ASK_AGAIN: Duration = Duration::from_secs(3);

/// What outlives one look at an engine.
pub struct Controller {
    pub context: Arc<Context>,
    /// Replicas that are being filled, by engine and address.
    pub(super) filling: parking_lot::Mutex<BTreeSet<(String, String)>>,
}

impl Controller {
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, filling: parking_lot::Mutex::default() }
    }
}

pub async fn reconcile(engine: Arc<Engine>, controller: Arc<Controller>) -> Result<Action, Failed> {
    let context = &controller.context;
    let is_deleted = engine.metadata.deletion_timestamp.is_some();
    let before = engine.status.clone().unwrap_or_default();
    let (name, node) = (engine.name_any(), engine.spec.instance.node_id.as_deref());
    let wanted = Wanted::of(&engine.spec.instance, is_deleted);
    let limits = limits(context, &engine).await?;
    let instance =
        process::advance(context, &name, node, wanted, &before.instance, |_| spec(&engine, &limits)).await?;
    let state = instance.current_state.clone();
    if is_deleted && (state == Some(InstanceState::Stopped) || before.instance.uuid.is_none()) {
        finalizer::remove(&context.api::<Engine>(), &*engine).await?;
        return Ok(Action::await_change());
    }
    let after = match state {
        Some(InstanceState::Running) => {
            let status = EngineStatus { instance, ..before.clone() };
            running::look_after(&controller, &engine, status).await?
        }
        // What is known of replicas is only true while it runs; its size stays.
        Some(InstanceState::Unknown) => EngineStatus { instance, ..before.clone() },
        _ => EngineStatus {
            instance,
            current_size: before.current_size,
            extra: before.extra.clone(),
            ..EngineStatus::default()
        },
    };
    let again = match after.instance.current_state {
        Some(InstanceState::Running) => Action::requeue(ASK_AGAIN),
        Some(InstanceState::Starting | InstanceState::Stopping) => Action::requeue(SOON),
        _ => Action::await_change(),
    };
    if after != before {
        store::status(&context.api(), &Engine { status: Some(after), ..(*engine).clone() }).await?;
    }
    Ok(again)
}

/// The engine behind the proxy of its instance manager.
pub(super) fn client(
    context: &Context,
    engine: &Engine,
    status: &InstanceStatus,
) -> Result<ProxyClient, Failed> {
    let name = engine.name_any();
    let lacks = |what| Failed::Incomplete(format!("engine {name}"), what);
    let ip = status.ip.as_deref().ok_or_else(|| lacks("status.ip"))?;
    let volume = engine.spec.instance.volume_name.as_deref().ok_or_else(|| lacks("volumeName"))?;
    let address = process::address(status).ok_or_else(|| lacks("status.port"))?;
    Ok(ProxyClient::new(context.managers.connection(ip), &address, volume, &name))
}

/// What an engine is told besides what its object says.
struct Limits {
    /// With three replicas, writes need two of them, and in return the volume starts without a node that died: any
    /// two know what was acknowledged. With fewer, the one that is away may know more than the rest.
    quorum: u32,
    /// Seconds of silence after which a replica counts as failed.
    patience: u64,
}

async fn limits(context: &Context, engine: &Engine) -> Result<Limits, Failed> {
    let name = engine.spec.instance.volume_name.as_deref().unwrap_or_default();
    let volume = context.api::<Volume>().get_opt(name).await?;
    let values = context.values().await?;
    let replicas = volume.and_then(|volume| volume.spec.number_of_replicas).filter(|count| *count > 0);
    let default = i64::try_from(values.number(catalogue::REPLICA_COUNT)).unwrap_or(1);
    let quorum = if replicas.unwrap_or(default) >= 3 { 2 } else { 1 };
    Ok(Limits { quorum, patience: values.number(catalogue::ENGINE_REPLICA_TIMEOUT) })
}

fn spec(engine: &Engine, limits: &Limits) -> Result<ProcessSpec, Failed> {
    let name = engine.name_any();
    let lacks = |what| Failed::Incomplete(format!("engine {name}"), what);
    let spec = &engine.spec;
    let volume = spec.instance.volume_name.as_deref().ok_or_else(|| lacks("volumeName"))?;
    let mut args = vec!["engine".to_owned(), "--volume".to_owned(), volume.to_owned()];
    args.extend(["--min-in-sync".to_owned(), limits.quorum.to_string()]);
    args.extend(["--replica-timeout".to_owned(), limits.patience.to_string()]);
    for address in spec.replica_address_map.iter().flatten().map(|(_, address)| address) {
        args.extend(["--replica".to_owned(), address.clone()]);
    }
    match (spec.disable_frontend, spec.frontend) {
        (Some(true), _) | (_, None | Some(Frontend::Unset)) => {}
        (_, Some(Frontend::BlockDev)) => {
            args.extend(["--frontend".to_owned(), format!("device:///dev/longhorn/{volume}")]);
        }
        (_, Some(_)) => return Err(lacks("a frontend that there is: blockdev, or none")),
    }
    Ok(ProcessSpec {
        name: name.clone(),
        binary: "granary".to_owned(),
        args,
        port_count: 1,
        port_args: Vec::new(),
    })
}
