//! How an open volume is reached, changed while it stays open: a volume that nobody can reach can be turned back safely.

use granary_block::engine::CommandError;
use granary_frontend::{FrontendSpec, Frontends};

use super::serve::{LAST_REQUESTS, Process};
use super::volume::Served;

/// All of them, or none. Those that are there already are fine.
pub async fn start(process: &mut Process<'_>, asked: &[String]) -> Result<(), CommandError> {
    let specs = asked
        .iter()
        .map(|text| text.parse::<FrontendSpec>().map_err(|error| CommandError::Invalid(error.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    if specs.is_empty() {
        return Err(CommandError::Invalid(
            "no frontend is named; use e.g. nbd+unix:///PATH or device".into(),
        ));
    }
    if specs == process.specs {
        return Ok(());
    }
    if !process.specs.is_empty() {
        let own: Vec<_> = process.specs.iter().map(ToString::to_string).collect();
        return Err(CommandError::Busy(format!(
            "volume {} is reached by {} already; stop that first",
            process.arguments.volume,
            own.join(" ")
        )));
    }
    let volume = Served(process.running.volume());
    let started = Frontends::start(&specs, &process.identity, &volume).await;
    let (frontends, places) = started.map_err(|error| CommandError::Failed(error.to_string()))?;
    (process.frontends, process.specs) = (Some(frontends), specs);
    tracing::info!(frontends = places.join(","), "the volume can be reached");
    process.reached(places);
    Ok(())
}

/// What is in flight is answered. Nothing to stop is fine.
pub async fn stop(process: &mut Process<'_>) -> Result<(), CommandError> {
    process.specs.clear();
    process.reached(Vec::new());
    // A handover wants something to hand over, be it nothing.
    let Some(frontends) = process.frontends.replace(Frontends::none()) else { return Ok(()) };
    match tokio::time::timeout(LAST_REQUESTS, frontends.stop()).await {
        Ok(()) => {
            tracing::info!("the volume cannot be reached any more");
            Ok(())
        }
        Err(_) => Err(CommandError::Failed(
            "requests in flight did not end in time; their users were cut off".into(),
        )),
    }
}
