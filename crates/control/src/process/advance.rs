//! One step of a process towards what is wanted of it, on the instance manager of its node.

use granary_api::longhorn::{InstanceSpec, InstanceState, InstanceStatus};
use granary_instance::wire::process::ProcessSpec;
use jiff::Timestamp;

use super::lifecycle::{Step, Wanted, next};
use super::{create, delete, get, status};
use crate::context::{Context, Failed};

impl Wanted {
    /// What an object says; one that is deleted wants nothing.
    pub fn of(spec: &InstanceSpec, is_deleted: bool) -> Self {
        if spec.desire_state == Some(InstanceState::Running) && !is_deleted {
            Self::Running
        } else {
            Self::Stopped
        }
    }
}

/// What is known of process `name` after that. `spec` gets the address that data shall take.
pub async fn advance(
    context: &Context,
    name: &str,
    node: Option<&str>,
    wanted: Wanted,
    before: &InstanceStatus,
    spec: impl FnOnce(&str) -> Result<ProcessSpec, Failed>,
) -> Result<InstanceStatus, Failed> {
    let Some(manager) = context.manager_of(node.unwrap_or_default()).await? else {
        let is_known = before.uuid.is_some();
        return Ok(if is_known { status::unknown(before) } else { status::stopped() });
    };
    let now = Timestamp::now().as_second();
    let found = get(&manager.connection, name).await?;
    let was_started =
        before.uuid.is_some() && before.instance_manager_name.as_deref() == Some(manager.name.as_str());
    let step = next(wanted, found.as_ref(), was_started);
    let data = match (&step, manager.storage_ip) {
        (Step::Delete { .. } | Step::Stopping | Step::Stopped, _) => String::new(),
        (_, Ok(ip)) => ip,
        (_, Err(why)) => return Ok(status::failed(before, &why, now)),
    };
    let found = found.unwrap_or_default();
    Ok(match step {
        Step::Create => {
            let made = create(&manager.connection, spec(&data)?).await?;
            status::starting(&manager.name, &manager.ip, &data, &made)
        }
        Step::Delete { uuid } => {
            delete(&manager.connection, name, &uuid).await?;
            status::stopping(before)
        }
        Step::Starting => status::starting(&manager.name, &manager.ip, &data, &found),
        Step::Running => status::running(&manager.name, &manager.ip, &data, &found),
        Step::Stopping => status::stopping(before),
        Step::Stopped => status::stopped(),
        Step::Failed(why) => status::failed(before, &why, now),
    })
}
