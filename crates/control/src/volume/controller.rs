//! One volume: everything that belongs to it is read, decided on, and changed. What it waits for is in its conditions.

use std::sync::Arc;

use granary_api::constants::longhorn::{FINALIZER, VOLUME_LABEL};
use granary_api::longhorn::{Condition, Engine, InstanceManager, Replica, Volume, VolumeStatus};
use granary_api::wire::ConditionStatus;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::controller::Action;

use super::apply::apply;
use super::decision::Decision;
use super::state::step;
use super::view::{Parts, seen};
use crate::context::{Context, Failed};
use crate::schedule::NoPlace;
use crate::{process, store};

pub async fn reconcile(volume: Arc<Volume>, context: Arc<Context>) -> Result<Action, Failed> {
    let is_deleted = volume.metadata.deletion_timestamp.is_some();
    if !is_deleted && !volume.finalizers().iter().any(|name| name == FINALIZER) {
        let mut kept = (*volume).clone();
        kept.finalizers_mut().push(FINALIZER.to_owned());
        store::spec(&context.api(), &kept).await?;
        return Ok(Action::await_change());
    }
    let own = ListParams::default().labels(&format!("{VOLUME_LABEL}={}", volume.name_any()));
    let engines = context.api::<Engine>().list(&own).await?.items;
    let replicas = context.api::<Replica>().list(&own).await?.items;
    let managers = context.api::<InstanceManager>().list(&ListParams::default()).await?.items;
    let values = context.values().await?;
    let parts = Parts {
        volume: &volume,
        engine: engines.first(),
        replicas: &replicas,
        managers: &managers,
        values: &values,
    };
    let now = Timestamp::now().as_second();
    let decision = step(&seen(&parts, now));
    // Told before it is done: a person who looks sees what is being attempted.
    let status = tell(&volume, &decision, None, now);
    let current = write(&context, &volume, status).await?;
    let no_place = apply(&context, &parts, &decision.actions, now).await?;
    if no_place.is_some() {
        let status = tell(&current, &decision, no_place.as_ref(), now);
        write(&context, &current, status).await?;
    }
    // A disk may become free without anybody telling.
    let wait = no_place.map(|_| std::time::Duration::from_secs(30));
    let again = [decision.look_again, wait].into_iter().flatten().min();
    Ok(again.map_or_else(Action::await_change, Action::requeue))
}

async fn write(context: &Context, volume: &Volume, status: VolumeStatus) -> Result<Volume, Failed> {
    if volume.status.as_ref() == Some(&status) {
        return Ok(volume.clone());
    }
    let changed = Volume { status: Some(status), ..volume.clone() };
    Ok(store::status(&context.api(), &changed).await?)
}

fn tell(volume: &Volume, decision: &Decision, no_place: Option<&NoPlace>, now: i64) -> VolumeStatus {
    let mut status = volume.status.clone().unwrap_or_default();
    status.state = Some(decision.state.clone());
    status.robustness = Some(decision.robustness.clone());
    status.expansion_required = Some(decision.needs_expansion);
    status.last_degraded_at = decision.degraded_since.map(process::time);
    let is_attached = decision.state == granary_api::longhorn::VolumeState::Attached;
    let node = volume.spec.node_id.clone().filter(|_| is_attached);
    status.current_node_id = Some(node.unwrap_or_default());
    let mut conditions = status.conditions.take().unwrap_or_default();
    let settled = decision.waiting.as_ref().map(|reason| (reason.name(), reason.to_string()));
    set(&mut conditions, "Settled", settled, now);
    let placing = decision.actions.contains(&super::decision::Action::CreateReplica);
    match no_place {
        Some(why) => {
            set(&mut conditions, "Scheduled", Some(("ReplicaSchedulingFailure", why.to_string())), now);
        }
        // Whether it can be placed is known after it was tried.
        None if placing => {}
        None => set(&mut conditions, "Scheduled", None, now),
    }
    status.conditions = Some(conditions);
    status
}

/// A problem makes the condition false; without one it is true.
fn set(conditions: &mut Vec<Condition>, kind: &str, problem: Option<(&str, String)>, now: i64) {
    let status = if problem.is_some() { ConditionStatus::False } else { ConditionStatus::True };
    let (reason, message) = problem.unwrap_or(("", String::new()));
    let index = conditions.iter().position(|condition| condition.type_.as_deref() == Some(kind));
    let before = index.map(|index| conditions.remove(index)).unwrap_or_default();
    let since = before.last_transition_time.clone().filter(|_| before.status.as_ref() == Some(&status));
    let condition = Condition {
        type_: Some(kind.to_owned()),
        status: Some(status),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: Some(since.unwrap_or_else(|| process::time(now))),
        ..before
    };
    conditions.insert(index.unwrap_or(conditions.len()), condition);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_changes_its_time_only_with_its_status() {
        let mut conditions = Vec::new();
        set(&mut conditions, "Settled", Some(("A", "a".into())), 1);
        set(&mut conditions, "Settled", Some(("B", "b".into())), 2);
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].last_transition_time, Some(process::time(1)));
        assert_eq!(conditions[0].message.as_deref(), Some("b"));
        set(&mut conditions, "Settled", None, 3);
        assert_eq!(conditions[0].last_transition_time, Some(process::time(3)));
        assert_eq!(conditions[0].status, Some(ConditionStatus::True));
    }
}
