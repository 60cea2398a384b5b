//! All controllers, each woken by the objects it looks at, until they are told to stop.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use granary_api::constants::longhorn::VOLUME_LABEL;
use granary_api::longhorn::{Engine, InstanceManager, Node, Replica, Setting, Volume};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, Failed};
use crate::{engine, manager, node, replica, setting, volume};

/// A write that was overtaken by another is tried again soon; so is an instance manager that does not answer.
const AGAIN: Duration = Duration::from_millis(500);

/// Makes the settings and runs every controller until `stopping` fires.
pub async fn run(context: Arc<Context>, stopping: CancellationToken) -> kube::Result<()> {
    setting::ensure(&context.api::<Setting>()).await?;
    let managers = Arc::new(manager::Controller::new(context.clone()));
    let engines = Arc::new(engine::Controller::new(context.clone()));
    let config = watcher::Config::default;

    let manager =
        Controller::new(context.api::<InstanceManager>(), config()).owns(context.api::<Pod>(), config());
    let known = manager.store();
    let manager = manager.watches(context.api::<Setting>(), config(), move |_| all(&known.state()));
    let node = Controller::new(context.api::<Node>(), config())
        .owns(context.api::<InstanceManager>(), config())
        .watches(context.api::<Replica>(), config(), |replica| {
            let node = replica.spec.instance.node_id.as_deref()?;
            Some(ObjectRef::new(node).within(replica.namespace().as_deref().unwrap_or_default()))
        });
    let replica = Controller::new(context.api::<Replica>(), config());
    let known = replica.store();
    let replica = replica.watches(context.api::<InstanceManager>(), config(), move |manager| {
        on_node(&known.state(), &manager, |replica| replica.spec.instance.node_id.as_deref())
    });
    let engine = Controller::new(context.api::<Engine>(), config());
    let known = engine.store();
    let engine = engine.watches(context.api::<InstanceManager>(), config(), move |manager| {
        on_node(&known.state(), &manager, |engine| engine.spec.instance.node_id.as_deref())
    });
    let volume = Controller::new(context.api::<Volume>(), config())
        .watches(context.api::<Engine>(), config(), |engine| of_volume(&engine))
        .watches(context.api::<Replica>(), config(), |replica| of_volume(&replica));
    let known = volume.store();
    // Any of these may be what a volume waits for.
    let everyone = move || all(&known.state());
    let (by_manager, by_node, by_setting) = (everyone.clone(), everyone.clone(), everyone);
    let volume = volume
        .watches(context.api::<InstanceManager>(), config(), move |_| by_manager())
        .watches(context.api::<Node>(), config(), move |_| by_node())
        .watches(context.api::<Setting>(), config(), move |_| by_setting());

    tokio::join!(
        drive("node", node, node::reconcile, context.clone(), &stopping),
        drive("instance-manager", manager, manager::reconcile, managers, &stopping),
        drive("replica", replica, replica::reconcile, context.clone(), &stopping),
        drive("engine", engine, engine::reconcile, engines, &stopping),
        drive("volume", volume, volume::reconcile, context.clone(), &stopping),
    );
    Ok(())
}

async fn drive<K, C, F>(
    name: &'static str,
    controller: Controller<K>,
    reconcile: impl FnMut(Arc<K>, Arc<C>) -> F,
    context: Arc<C>,
    stopping: &CancellationToken,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    F: Future<Output = Result<Action, Failed>> + Send + 'static,
{
    let stopping = stopping.clone();
    let retry = move |object: Arc<K>, error: &Failed, _: Arc<C>| {
        let is_conflict = matches!(error, Failed::Api(kube::Error::Api(status)) if status.is_conflict());
        if !is_conflict {
            tracing::warn!(controller = name, object = object.name_any(), %error, "not done; tried again");
        }
        Action::requeue(AGAIN)
    };
    let stopped = async move { stopping.cancelled().await };
    controller.graceful_shutdown_on(stopped).run(reconcile, retry, context).for_each(|_| async {}).await;
}

fn all<K: Resource<DynamicType = ()>>(objects: &[Arc<K>]) -> Vec<ObjectRef<K>> {
    objects.iter().map(|object| ObjectRef::from_obj(&**object)).collect()
}

/// The objects whose processes an instance manager has.
fn on_node<K>(
    objects: &[Arc<K>],
    manager: &InstanceManager,
    node: impl Fn(&K) -> Option<&str>,
) -> Vec<ObjectRef<K>>
where
    K: Resource<DynamicType = ()>,
{
    let there = objects.iter().filter(|object| node(object) == manager.spec.node_id.as_deref());
    there.map(|object| ObjectRef::from_obj(&**object)).collect()
}

fn of_volume<K>(part: &K) -> Option<ObjectRef<Volume>>
where
    K: Resource,
{
    let volume = part.labels().get(VOLUME_LABEL)?;
    Some(ObjectRef::new(volume).within(part.namespace().as_deref().unwrap_or_default()))
}
