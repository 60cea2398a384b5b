//! One instance manager, followed for as long as its pod lives: every change of its processes becomes its status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use granary_api::longhorn::{
    InstanceManager, InstanceManagerState, InstanceManagerStatus, InstanceProcess, InstanceProcessSpec,
    InstanceProcessStatus, InstanceState, InstanceType,
};
use granary_instance::client::{Connection, Versions};
use granary_instance::wire::process::{ProcessListRequest, ProcessResponse};
use kube::Api;

use crate::context::{Context, Failed};
use crate::store;

const AGAIN: Duration = Duration::from_secs(2);
/// How often somebody else may write the same status first.
const CONFLICTS: usize = 5;

/// Ends only when it is dropped.
pub async fn follow(context: Arc<Context>, name: String, ip: String) {
    let connection = context.managers.connection(&ip);
    loop {
        if let Err(error) = until_lost(&context, &name, &ip, &connection).await {
            tracing::warn!(manager = name, %error, "an instance manager is out of reach");
        }
        let lost = |status: &mut InstanceManagerStatus| {
            status.current_state = Some(InstanceManagerState::Unknown);
        };
        if let Err(error) = tell(&context, &name, lost).await {
            tracing::warn!(manager = name, %error, "its state could not be told");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn until_lost(context: &Context, name: &str, ip: &str, connection: &Connection) -> Result<(), Failed> {
    connection.check().await?;
    let versions = connection.versions().await?;
    // The stream comes first, so that nothing is missed between it and the list.
    let changes = connection.processes()?.process_watch(()).await;
    let mut changes = changes.map_err(|status| connection.told(&status))?.into_inner();
    loop {
        let listed = connection.processes()?.process_list(ProcessListRequest {}).await;
        let listed = listed.map_err(|status| connection.told(&status))?.into_inner().processes;
        tell(context, name, |status| fill(status, ip, versions, listed.values())).await?;
        match changes.message().await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(status) => return Err(connection.told(&status).into()),
        }
    }
}

/// Changes the status as it is now; others may write to it as well.
async fn tell(
    context: &Context,
    name: &str,
    change: impl Fn(&mut InstanceManagerStatus),
) -> Result<(), Failed> {
    let managers: Api<InstanceManager> = context.api();
    let mut tries = 0;
    loop {
        let Some(mut manager) = managers.get_opt(name).await? else { return Ok(()) };
        let before = manager.status.clone().unwrap_or_default();
        let mut status = before.clone();
        change(&mut status);
        if status == before {
            return Ok(());
        }
        manager.status = Some(status);
        match store::status(&managers, &manager).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.is_conflict() && tries < CONFLICTS => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

fn fill<'a>(
    status: &mut InstanceManagerStatus,
    ip: &str,
    versions: Versions,
    processes: impl Iterator<Item = &'a ProcessResponse>,
) {
    let (mut engines, mut replicas) = (BTreeMap::new(), BTreeMap::new());
    for process in processes {
        let spec = process.spec.clone().unwrap_or_default();
        match spec.args.first().map(String::as_str) {
            Some("engine" | "controller") => {
                engines.insert(spec.name.clone(), instance(process, InstanceType::Engine));
            }
            Some("replica") => {
                replicas.insert(spec.name.clone(), instance(process, InstanceType::Replica));
            }
            _ => {}
        }
    }
    status.current_state = Some(InstanceManagerState::Running);
    status.ip = Some(ip.to_owned());
    (status.api_version, status.api_min_version) = (Some(versions.api), Some(versions.api_min));
    (status.proxy_api_version, status.proxy_api_min_version) =
        (Some(versions.proxy), Some(versions.proxy_min));
    (status.instance_engines, status.instance_replicas) = (Some(engines), Some(replicas));
}

fn instance(process: &ProcessResponse, kind: InstanceType) -> InstanceProcess {
    let spec = process.spec.clone().unwrap_or_default();
    let status = process.status.clone().unwrap_or_default();
    InstanceProcess {
        spec: Some(InstanceProcessSpec {
            name: Some(spec.name),
            data_engine: Some("v1".to_owned()),
            ..InstanceProcessSpec::default()
        }),
        status: Some(InstanceProcessStatus {
            state: Some(InstanceState::from(status.state.as_str())),
            error_msg: Some(status.error_msg),
            conditions: Some(status.conditions.into_iter().collect()),
            port_start: Some(status.port_start),
            port_end: Some(status.port_end),
            type_: Some(kind),
            uuid: Some(status.uuid),
            ..InstanceProcessStatus::default()
        }),
        ..InstanceProcess::default()
    }
}
