//! The volume itself: what it is, its size, and how it is reached.

use granary_enginectl::v1;
use granary_frontend::FrontendSpec;
use tonic::Status;

use super::engines::Engine;
use crate::wire::ptypes::{VersionOutput, Volume, VolumeExpandRequest, VolumeFrontendStartRequest};
use crate::{Refusal, frontend, version};

pub async fn status(engine: &mut Engine) -> Result<v1::StatusReply, Status> {
    let asked = engine.client.status(v1::StatusRequest {}).await;
    Ok(asked.map_err(|status| engine.told(&status))?.into_inner())
}

pub async fn version(mut engine: Engine) -> Result<VersionOutput, Status> {
    Ok(VersionOutput {
        version: status(&mut engine).await?.version,
        git_commit: String::new(),
        build_date: String::new(),
        cli_api_version: version::CLI_API,
        cli_api_min_version: version::CLI_API_MIN,
        controller_api_version: version::CONTROLLER_API,
        controller_api_min_version: version::CONTROLLER_API_MIN,
        data_format_version: version::DATA_FORMAT,
        data_format_min_version: version::DATA_FORMAT,
    })
}

pub async fn get(mut engine: Engine) -> Result<Volume, Status> {
    let status = status(&mut engine).await?;
    let spec = status.frontend_specs.first().and_then(|text| text.parse::<FrontendSpec>().ok());
    let place = status.frontends.first().map(String::as_str).unwrap_or_default();
    Ok(Volume {
        name: status.volume,
        size: i64::try_from(status.size).unwrap_or(i64::MAX),
        replica_count: status.replicas.len() as i32,
        endpoint: spec.as_ref().map(|spec| frontend::endpoint(spec, place)).unwrap_or_default(),
        frontend_state: if spec.is_some() { "up" } else { "down" }.to_owned(),
        frontend: spec.as_ref().map(frontend::name).unwrap_or_default(),
        // The engine expands while the caller waits, so there is nothing left to tell afterwards.
        is_expanding: false,
        last_expansion_error: String::new(),
        last_expansion_failed_at: String::new(),
        unmap_mark_snap_chain_removed: false,
        snapshot_max_count: i32::try_from(status.max_snapshots).unwrap_or(i32::MAX),
        snapshot_max_size: i64::try_from(status.max_snapshot_bytes).unwrap_or(i64::MAX),
    })
}

pub async fn expand(mut engine: Engine, wanted: VolumeExpandRequest) -> Result<(), Status> {
    let size = u64::try_from(wanted.size).ok().filter(|size| *size > 0);
    let size = size.ok_or_else(|| {
        Refusal::Invalid(format!("volume {}: {} is no size for a volume", engine.volume, wanted.size))
    })?;
    let expanded = engine.client.expand(v1::ExpandRequest { size }).await;
    expanded.map(drop).map_err(|status| engine.told(&status))
}

pub async fn start_frontend(mut engine: Engine, wanted: VolumeFrontendStartRequest) -> Result<(), Status> {
    let spec = frontend::parse(&wanted.frontend, &engine.volume)?;
    let spec =
        spec.ok_or_else(|| Refusal::Invalid(format!("volume {}: no frontend is named", engine.volume)))?;
    let request = v1::StartFrontendsRequest { frontends: vec![spec.to_string()] };
    engine.client.start_frontends(request).await.map_err(|status| engine.told(&status))?;
    remember_places(engine).await
}

pub async fn stop_frontend(mut engine: Engine) -> Result<(), Status> {
    let stopped = engine.client.stop_frontends(v1::StopFrontendsRequest {}).await;
    stopped.map_err(|status| engine.told(&status))?;
    remember_places(engine).await
}

/// Whoever looks after the process looks at the file system there.
async fn remember_places(mut engine: Engine) -> Result<(), Status> {
    let places = status(&mut engine).await?.frontends;
    engine.instance.amend(|record| record.places = places);
    Ok(())
}
