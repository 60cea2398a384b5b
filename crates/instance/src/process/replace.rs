//! A running process is replaced by another of the same name. An engine's users only wait a moment: the next one takes
//! over their connections, and until it has, the old one can go on.

use std::sync::Arc;

use granary_block::wire::address::Address;
use granary_enginectl::v1;

use super::instance::{Instance, View};
use super::plan::{Plan, Role};
use super::registry::Registry;
use super::spec::Spec;
use super::state::State;
use crate::Refusal;

/// The only order to leave that clients may give.
const SIGNAL: &str = "SIGHUP";

pub async fn run(registry: &Registry, spec: Spec, signal: &str) -> Result<View, Refusal> {
    spec.check()?;
    let name = spec.name.clone();
    if signal != SIGNAL {
        return Err(Refusal::Invalid(format!(
            "process {name} can be replaced with {SIGNAL}, not with {signal:?}"
        )));
    }
    let old = registry.find(&name)?;
    if old.spec().binary == spec.binary {
        return Ok(old.view());
    }
    let state = old.status().state;
    if state != State::Running {
        return Err(Refusal::Precondition(format!(
            "process {name} is {}: only one that runs is replaced",
            state.name()
        )));
    }
    registry.begin_replacing(&name)?;
    let replaced = exchange(registry, &old, spec).await;
    registry.end_replacing(&name);
    replaced
}

async fn exchange(registry: &Registry, old: &Arc<Instance>, spec: Spec) -> Result<View, Refusal> {
    let adapt = adaptation(old, &spec.name).await?;
    let new = registry.prepare(spec, Some(old.run()), adapt)?;
    check_same_volume(old, &new)?;
    new.start();
    let name = new.spec().name;
    match wait(registry, old, &new).await {
        Ok(()) => {}
        Err(why) if old.status().gone => {
            // The old one has let go; what is left of the process is the new one, whatever its state.
            tracing::error!(name, why, "the process that replaced another does not serve");
        }
        Err(why) => {
            new.kill();
            new.gone().await;
            new.forget();
            return Err(Refusal::Internal(format!("process {name} goes on as it was: {why}")));
        }
    }
    old.stop();
    // Who was asked to go meanwhile was the process, whichever that is now.
    let deleting = old.is_deleting();
    new.amend(|record| record.deleting = deleting);
    registry.enter(new.clone());
    let (leaving, staying) = (old.clone(), new.clone());
    tokio::spawn(async move {
        leaving.gone().await;
        leaving.forget();
        // As long as there are two records, a manager that starts must know which came after which.
        staying.amend(|record| record.replaces = None);
    });
    Ok(new.view())
}

/// What the newcomer's plan needs in order to go on where the old one is.
async fn adaptation(old: &Instance, name: &str) -> Result<impl FnOnce(Plan) -> Plan + use<>, Refusal> {
    let takeover = match old.plan().role {
        Role::Other => None,
        Role::Replica { .. } => {
            return Err(Refusal::Precondition(format!(
                "process {name} is a replica, whose directory only one process can have: delete it and create it \
                 anew; its engine gives it what it missed meanwhile"
            )));
        }
        Role::Engine { control: control @ Address::Tcp(_), .. } => {
            return Err(Refusal::Precondition(format!(
                "process {name} has its control at {control}: an engine is replaced only when that is a unix socket, \
                 as it is when --control is left out"
            )));
        }
        Role::Engine { control, .. } => {
            let unreachable =
                |error: &dyn std::fmt::Display| Refusal::Unavailable(format!("process {name}: {error}"));
            let mut engine =
                granary_enginectl::connect(&control).await.map_err(|error| unreachable(&error))?;
            let status = engine.status(v1::StatusRequest {}).await;
            let status = status.map_err(|status| unreachable(&status.message()))?.into_inner();
            Some((control, status.frontend_specs))
        }
    };
    Ok(move |plan: Plan| match takeover {
        Some((control, frontends)) => plan.taking_over(&control, &frontends),
        None => plan,
    })
}

fn check_same_volume(old: &Instance, new: &Instance) -> Result<(), Refusal> {
    let (old, new) = (old.plan(), new.plan());
    if std::mem::discriminant(&old.role) != std::mem::discriminant(&new.role) || old.volume() != new.volume()
    {
        return Err(Refusal::Invalid("an engine is replaced only by an engine of the same volume".into()));
    }
    Ok(())
}

/// Until the newcomer serves, or will not. Once the old one is gone there is nobody else, so it gets all the time
/// that any process has for its start.
async fn wait(registry: &Registry, old: &Instance, new: &Instance) -> Result<(), String> {
    let patience = registry.settings().replace_timeout;
    let decided = match tokio::time::timeout(patience, new.decided()).await {
        Ok(decided) => decided,
        Err(_) if old.status().gone => new.decided().await,
        Err(_) => return Err(format!("the new one did not serve within {} s", patience.as_secs())),
    };
    if decided.state == State::Running {
        return Ok(());
    }
    Err(format!("the new one is in state {}: {}", decided.state.name(), decided.error))
}
