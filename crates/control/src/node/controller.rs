//! Keeps the instance manager of one node, and the node's accounts.

use std::sync::Arc;

use granary_api::constants::longhorn::{
    DATA_ENGINE_LABEL, INSTANCE_MANAGER_PREFIX, INSTANCE_MANAGER_TYPE_LABEL, NODE_LABEL,
};
use granary_api::longhorn::{InstanceManager, InstanceManagerSpec, InstanceManagerType, Node, Replica};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::runtime::controller::Action;
use kube::{Api, Resource, ResourceExt};

use super::accounts::with_promises;
use crate::context::{Context, Failed};
use crate::store;

pub async fn reconcile(node: Arc<Node>, context: Arc<Context>) -> Result<Action, Failed> {
    if node.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    ensure_manager(&context, &node).await?;
    let replicas = context.api::<Replica>().list(&ListParams::default()).await?.items;
    let status = with_promises(&node, &replicas);
    if node.status.as_ref().is_some_and(|before| *before != status) {
        store::status(&context.api(), &Node { status: Some(status), ..(*node).clone() }).await?;
    }
    Ok(Action::await_change())
}

async fn ensure_manager(context: &Context, node: &Node) -> Result<(), Failed> {
    let managers: Api<InstanceManager> = context.api();
    let name = node.name_any();
    let known = managers.list(&ListParams::default()).await?.items;
    if known.iter().any(|manager| manager.spec.node_id.as_deref() == Some(&name)) {
        return Ok(());
    }
    let labels =
        [(NODE_LABEL, name.as_str()), (INSTANCE_MANAGER_TYPE_LABEL, "aio"), (DATA_ENGINE_LABEL, "v1")];
    let mut manager = InstanceManager::new("", InstanceManagerSpec::default());
    manager.metadata = ObjectMeta {
        name: Some(format!("{INSTANCE_MANAGER_PREFIX}{name}")),
        labels: Some(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()),
        owner_references: node.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    manager.spec.node_id = Some(name);
    manager.spec.type_ = Some(InstanceManagerType::AllInOne);
    manager.spec.data_engine = Some("v1".to_owned());
    match managers.create(&PostParams::default(), &manager).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
