//! Brings the process of one replica to where its object says, and tells what became of it.

use std::sync::Arc;
use std::time::Duration;

use granary_api::longhorn::{InstanceState, Replica, ReplicaStatus};
use granary_instance::wire::process::ProcessSpec;
use kube::ResourceExt;
use kube::runtime::controller::Action;

use crate::context::{Context, Failed};
use crate::process::{self, Wanted};
use crate::{finalizer, store};

/// Data is below this directory of a disk.
const DIRECTORY: &str = "replicas";
/// How long after the end of a process its instance manager may still speak of it.
const SOON: Duration = Duration::from_secs(1);

pub async fn reconcile(replica: Arc<Replica>, context: Arc<Context>) -> Result<Action, Failed> {
    let is_deleted = replica.metadata.deletion_timestamp.is_some();
    let before = replica.status.clone().unwrap_or_default().instance;
    let (name, node) = (replica.name_any(), replica.spec.instance.node_id.as_deref());
    let wanted = Wanted::of(&replica.spec.instance, is_deleted);
    let after = process::advance(&context, &name, node, wanted, &before, |ip| spec(&replica, ip)).await?;
    let has_ended = after.current_state == Some(InstanceState::Stopped);
    if is_deleted && (has_ended || before.uuid.is_none()) {
        finalizer::remove(&context.api::<Replica>(), &*replica).await?;
        return Ok(Action::await_change());
    }
    let is_passing = matches!(after.current_state, Some(InstanceState::Starting | InstanceState::Stopping));
    if after != before {
        let extra = replica.status.clone().unwrap_or_default().extra;
        let changed =
            Replica { status: Some(ReplicaStatus { instance: after, extra }), ..(*replica).clone() };
        store::status(&context.api(), &changed).await?;
    }
    Ok(if is_passing { Action::requeue(SOON) } else { Action::await_change() })
}

fn spec(replica: &Replica, ip: &str) -> Result<ProcessSpec, Failed> {
    let name = replica.name_any();
    let lacks = |what| Failed::Incomplete(format!("replica {name}"), what);
    let spec = &replica.spec;
    let volume = spec.instance.volume_name.as_deref().ok_or_else(|| lacks("volumeName"))?;
    let size = spec.instance.volume_size.ok_or_else(|| lacks("volumeSize"))?.bytes();
    let disk = spec.disk_path.as_deref().ok_or_else(|| lacks("diskPath"))?;
    let directory = spec.data_directory_name.as_deref().ok_or_else(|| lacks("dataDirectoryName"))?;
    let directory = format!("{}/{DIRECTORY}/{directory}", disk.trim_end_matches('/'));
    let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
    let args = ["replica", "--volume", volume, "--dir", &directory, "--size", &size.to_string()];
    Ok(ProcessSpec {
        name: name.clone(),
        binary: "granary".to_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        port_count: 1,
        port_args: vec![format!("--listen,{host}:")],
    })
}
