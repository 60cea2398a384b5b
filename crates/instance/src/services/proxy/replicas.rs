//! The replicas of a volume, as managers know them: an address and one of three modes.

use std::collections::BTreeMap;
use std::time::Duration;

use granary_block::wire::address::Address;
use granary_enginectl::v1;
use tonic::Status;

use super::engines::Engine;
use super::pending;
use super::volume::status;
use crate::Refusal;
use crate::wire::imrpc::{EngineReplicaAddRequest, EngineReplicaModeUpdateRequest};
use crate::wire::ptypes::{
    ControllerReplica, ReplicaAddress, ReplicaListReply, ReplicaMode, ReplicaRebuildStatusResponse,
};

/// How often a rebuild that somebody waits for is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How long a replica that was just added may be out of reach.
const ARRIVAL: Duration = Duration::from_secs(30);
/// Rebuilds are limited in megabytes, of which each has this many bytes.
const MEGABYTE: u64 = 1 << 20;

/// As managers write it.
pub fn url(address: &str) -> String {
    if address.contains("://") { address.to_owned() } else { format!("tcp://{address}") }
}

fn parse(address: &str) -> Result<String, Refusal> {
    let parsed = address.parse::<Address>().map_err(|error| Refusal::Invalid(error.to_string()))?;
    Ok(parsed.to_string())
}

fn mode(replica: &v1::Replica) -> ReplicaMode {
    match replica.state.as_str() {
        "inSync" => ReplicaMode::Rw,
        "rebuilding" | "waiting" => ReplicaMode::Wo,
        _ => ReplicaMode::Err,
    }
}

pub async fn list(mut engine: Engine) -> Result<ReplicaListReply, Status> {
    let replicas = status(&mut engine).await?.replicas;
    let replicas = replicas.iter().map(|replica| ControllerReplica {
        address: Some(ReplicaAddress { address: url(&replica.address), instance_name: String::new() }),
        mode: mode(replica).into(),
    });
    Ok(ReplicaListReply { replicas: replicas.collect() })
}

/// Takes it in, and waits until it has everything. When the caller goes away, the rebuild goes on.
pub async fn add(mut engine: Engine, request: EngineReplicaAddRequest) -> Result<(), Status> {
    if request.restore {
        return Err(pending::add_while_restoring(&engine));
    }
    let address = parse(&request.replica_address)?;
    let size = status(&mut engine).await?.size;
    if let Some(other) = [request.current_size, request.size].into_iter().find(|given| *given > 0)
        && u64::try_from(other) != Ok(size)
    {
        let volume = &engine.volume;
        return Err(Refusal::Precondition(format!("volume {volume} has {size} bytes, not {other}")).into());
    }
    let added = engine.client.add_replica(v1::AddReplicaRequest { address: address.clone() }).await;
    added.map_err(|status| engine.told(&status))?;
    let filled = until_filled(&mut engine, &address);
    match u64::try_from(request.grpc_timeout_seconds) {
        Ok(seconds) if seconds > 0 => tokio::time::timeout(Duration::from_secs(seconds), filled)
            .await
            .unwrap_or_else(|_| Err(Status::deadline_exceeded(format!("{address} is still being rebuilt")))),
        _ => filled.await,
    }
}

async fn until_filled(engine: &mut Engine, address: &str) -> Result<(), Status> {
    let mut arrival = tokio::time::Instant::now() + ARRIVAL;
    loop {
        let replica = find(engine, address).await?;
        match mode(&replica) {
            ReplicaMode::Rw => return Ok(()),
            ReplicaMode::Wo => arrival = tokio::time::Instant::now() + ARRIVAL,
            ReplicaMode::Err if tokio::time::Instant::now() > arrival => {
                let (volume, reason) = (&engine.volume, &replica.reason);
                return Err(Refusal::Internal(format!(
                    "volume {volume}: {address} is not rebuilt: {reason}"
                ))
                .into());
            }
            ReplicaMode::Err => {}
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn find(engine: &mut Engine, address: &str) -> Result<v1::Replica, Status> {
    let wanted = parse(address)?;
    let replicas = status(engine).await?.replicas;
    let found = replicas.into_iter().find(|replica| replica.address == wanted);
    found.ok_or_else(|| {
        Refusal::NotFound(format!("volume {} has no replica at {wanted}", engine.volume)).into()
    })
}

pub async fn remove(mut engine: Engine, address: &str) -> Result<(), Status> {
    let request = v1::RemoveReplicaRequest { address: parse(address)? };
    engine.client.remove_replica(request).await.map(drop).map_err(|status| engine.told(&status))
}

pub async fn rebuilding(
    mut engine: Engine,
) -> Result<BTreeMap<String, ReplicaRebuildStatusResponse>, Status> {
    let replicas = status(&mut engine).await?.replicas;
    let sources: Vec<_> = replicas
        .iter()
        .filter(|replica| replica.state == "inSync")
        .map(|replica| url(&replica.address))
        .collect();
    Ok(replicas.iter().map(|replica| (url(&replica.address), rebuild(replica, &sources))).collect())
}

fn rebuild(replica: &v1::Replica, sources: &[String]) -> ReplicaRebuildStatusResponse {
    match (&replica.rebuild, mode(replica)) {
        (Some(rebuild), _) => ReplicaRebuildStatusResponse {
            is_rebuilding: true,
            progress: percent(rebuild),
            state: "in_progress".into(),
            from_replica_address_list: sources.to_vec(),
            ..Default::default()
        },
        (None, ReplicaMode::Err) => ReplicaRebuildStatusResponse {
            error: replica.reason.clone(),
            state: "error".into(),
            ..Default::default()
        },
        (None, _) => ReplicaRebuildStatusResponse::default(),
    }
}

fn percent(rebuild: &v1::Rebuild) -> i32 {
    let done = u128::from(rebuild.bytes_copied.max(rebuild.bytes_compared)) * 100;
    done.checked_div(u128::from(rebuild.bytes_total)).unwrap_or(0).min(100) as i32
}

pub async fn verify_rebuild(mut engine: Engine, address: &str) -> Result<(), Status> {
    let replica = find(&mut engine, address).await?;
    if mode(&replica) == ReplicaMode::Rw {
        return Ok(());
    }
    let (volume, state, reason) = (&engine.volume, &replica.state, &replica.reason);
    Err(Refusal::Precondition(format!("volume {volume}: {address} is {state}, not in sync; {reason}")).into())
}

pub async fn set_mode(mut engine: Engine, request: &EngineReplicaModeUpdateRequest) -> Result<(), Status> {
    let replica = find(&mut engine, &request.replica_address).await?;
    match (request.mode(), mode(&replica)) {
        (ReplicaMode::Wo, _) => {
            Err(Refusal::Invalid("a replica is set to RW or ERR, not to WO".into()).into())
        }
        (wanted, is) if wanted == is => Ok(()),
        (ReplicaMode::Err, _) => Err(pending::mark_failed(&engine, &request.replica_address)),
        (ReplicaMode::Rw, _) => Err(Refusal::Precondition(format!(
            "volume {}: {} is {}; it serves again when it has what it missed",
            engine.volume, request.replica_address, replica.state
        ))
        .into()),
    }
}

pub async fn limit_rebuilds(mut engine: Engine, megabytes: i64) -> Result<(), Status> {
    let rate = u64::try_from(megabytes).ok().and_then(|megabytes| megabytes.checked_mul(MEGABYTE));
    let rate = rate.ok_or_else(|| Refusal::Invalid(format!("{megabytes} MB/s is no limit; 0 means none")))?;
    let request = v1::SetRebuildRateRequest { bytes_per_second: rate };
    engine.client.set_rebuild_rate(request).await.map(drop).map_err(|status| engine.told(&status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_mode() {
        let replica = |state: &str| v1::Replica { state: state.into(), ..Default::default() };
        for (state, expected) in [
            ("inSync", ReplicaMode::Rw),
            ("rebuilding", ReplicaMode::Wo),
            ("waiting", ReplicaMode::Wo),
            ("away", ReplicaMode::Err),
        ] {
            assert_eq!(mode(&replica(state)), expected, "{state}");
        }
    }

    #[test]
    fn progress_is_a_percentage() {
        let rebuild =
            |bytes_copied, bytes_total| v1::Rebuild { bytes_copied, bytes_total, ..Default::default() };
        assert_eq!(
            [(0, 0), (1, 4), (u64::MAX, 2)].map(|(done, all)| percent(&rebuild(done, all))),
            [0, 25, 100]
        );
    }
}
