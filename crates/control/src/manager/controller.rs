//! Keeps the pod of one instance manager, and follows whoever answers in it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use granary_api::constants::cni::NETWORKS_ANNOTATION;
use granary_api::longhorn::{InstanceManager, InstanceManagerState, InstanceManagerStatus, InstanceProcess};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use tokio::task::AbortHandle;

use super::follow::follow;
use super::pod::{Shape, pod};
use crate::context::{Context, Failed};
use crate::setting::catalogue;
use crate::store;

pub struct Controller {
    pub context: Arc<Context>,
    /// Who is followed, and where.
    followed: parking_lot::Mutex<HashMap<String, (String, AbortHandle)>>,
}

impl Controller {
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, followed: parking_lot::Mutex::default() }
    }

    fn follow(&self, name: &str, ip: &str) {
        let mut followed = self.followed.lock();
        if followed.get(name).is_some_and(|(known, _)| known == ip) {
            return;
        }
        let task = tokio::spawn(follow(self.context.clone(), name.to_owned(), ip.to_owned()));
        if let Some((_, old)) = followed.insert(name.to_owned(), (ip.to_owned(), task.abort_handle())) {
            old.abort();
        }
    }

    fn leave(&self, name: &str) {
        if let Some((_, task)) = self.followed.lock().remove(name) {
            task.abort();
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        for (_, task) in self.followed.lock().values() {
            task.abort();
        }
    }
}

pub async fn reconcile(manager: Arc<InstanceManager>, controller: Arc<Controller>) -> Result<Action, Failed> {
    let (context, name) = (&controller.context, manager.name_any());
    if manager.metadata.deletion_timestamp.is_some() {
        controller.leave(&name);
        return Ok(Action::await_change());
    }
    let pods: Api<Pod> = context.api();
    let wanted = wanted_pod(context, &manager).await?;
    let Some(pod) = pods.get_opt(&name).await? else {
        controller.leave(&name);
        pods.create(&PostParams::default(), &wanted).await?;
        return tell(context, &manager, InstanceManagerState::Starting).await;
    };
    let networks = |pod: &Pod| pod.annotations().get(NETWORKS_ANNOTATION).cloned();
    if networks(&pod) != networks(&wanted) && is_idle(&manager) {
        tracing::info!(manager = name, "made anew for another storage network");
        pods.delete(&name, &DeleteParams::default()).await?;
        return Ok(Action::await_change());
    }
    let status = pod.status.clone().unwrap_or_default();
    let ip = status.pod_ip.unwrap_or_default();
    match status.phase.as_deref() {
        Some("Running") if !ip.is_empty() => {
            controller.follow(&name, &ip);
            Ok(Action::await_change())
        }
        Some("Failed" | "Succeeded") => {
            controller.leave(&name);
            // The next one finds the processes of this one and goes on with them.
            pods.delete(&name, &DeleteParams::default()).await?;
            tell(context, &manager, InstanceManagerState::Error).await
        }
        _ => {
            controller.leave(&name);
            tell(context, &manager, InstanceManagerState::Starting).await
        }
    }
}

/// Nothing runs there that would notice.
fn is_idle(manager: &InstanceManager) -> bool {
    let Some(status) = &manager.status else { return true };
    let is_empty = |processes: &Option<BTreeMap<String, InstanceProcess>>| {
        processes.as_ref().is_none_or(BTreeMap::is_empty)
    };
    is_empty(&status.instance_engines) && is_empty(&status.instance_replicas)
}

async fn wanted_pod(context: &Context, manager: &InstanceManager) -> Result<Pod, Failed> {
    let values = context.values().await?;
    let shape = Shape {
        port: context.managers.port(),
        tls_dir: context.managers.tls_dir().map(|directory| directory.display().to_string()),
        data_path: values.text(catalogue::DATA_PATH).to_owned(),
        storage_network: values.text(catalogue::STORAGE_NETWORK).to_owned(),
    };
    Ok(pod(manager, &shape).map_err(kube::Error::SerdeError)?)
}

async fn tell(
    context: &Context,
    manager: &InstanceManager,
    state: InstanceManagerState,
) -> Result<Action, Failed> {
    let before = manager.status.clone().unwrap_or_default();
    if before.current_state.as_ref() != Some(&state) {
        let status = InstanceManagerStatus { current_state: Some(state), ip: None, ..before };
        store::status(&context.api(), &InstanceManager { status: Some(status), ..manager.clone() }).await?;
    }
    Ok(Action::await_change())
}
