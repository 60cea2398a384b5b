//! An engine, asked by running `granary engine-ctl` on its machine: for instance managers without a proxy.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use granary_block::wire::address::Address;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::engine::EngineClient;
use super::model::{ClientError, Rebuild, Replica, ReplicaMode, Snapshot, Volume};

/// How often a rebuild that somebody waits for is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How long a replica that was just added may be out of reach.
const ARRIVAL: Duration = Duration::from_secs(30);

pub struct Binary {
    program: PathBuf,
    control: Address,
}

/// What the program prints, as far as it is used here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    volume: String,
    size: u64,
    frontends: Vec<String>,
    replicas: Vec<StatusReplica>,
    purging: bool,
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusReplica {
    address: String,
    state: String,
    reason: String,
    rebuild: Option<StatusRebuild>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusRebuild {
    bytes_copied: u64,
    bytes_compared: u64,
    bytes_total: u64,
}

#[derive(Deserialize)]
struct Snapshots {
    snapshots: Vec<ListedSnapshot>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedSnapshot {
    name: String,
    created: String,
    user_created: bool,
    labels: BTreeMap<String, String>,
    parent: String,
    children: Vec<String>,
    allocated: u64,
    removed: bool,
}

#[derive(Deserialize)]
struct Made {
    name: String,
}

#[derive(Deserialize)]
struct Done {}

impl Binary {
    pub fn new(program: PathBuf, control: Address) -> Self {
        Self { program, control }
    }

    async fn run<T: DeserializeOwned>(&self, arguments: &[&str]) -> Result<T, ClientError> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(["engine-ctl", "--control", &self.control.to_string(), "--output", "json"])
            .args(arguments);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(|error| {
            ClientError::Unavailable(format!("{} cannot be run: {error}", self.program.display()))
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim().trim_start_matches("granary: ").to_owned();
            return Err(refusal(output.status.code(), said));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| {
            ClientError::Refused(format!("the answer of {arguments:?} is not understood: {error}"))
        })
    }

    async fn order(&self, arguments: &[&str]) -> Result<(), ClientError> {
        self.run::<Done>(arguments).await.map(drop)
    }

    async fn status(&self) -> Result<Status, ClientError> {
        self.run(&["status"]).await
    }
}

/// The program's exit codes, as `granary --help` lists them.
fn refusal(code: Option<i32>, said: String) -> ClientError {
    match code {
        Some(3) => ClientError::NotFound(said),
        Some(4) => ClientError::Exists(said),
        Some(6 | 7) => ClientError::Unavailable(said),
        _ => ClientError::Refused(said),
    }
}

fn mode(state: &str) -> ReplicaMode {
    match state {
        "inSync" => ReplicaMode::ReadWrite,
        "rebuilding" | "waiting" => ReplicaMode::WriteOnly,
        _ => ReplicaMode::Failed,
    }
}

#[tonic::async_trait]
impl EngineClient for Binary {
    async fn version(&self) -> Result<String, ClientError> {
        Ok(self.status().await?.version)
    }

    async fn volume(&self) -> Result<Volume, ClientError> {
        let status = self.status().await?;
        Ok(Volume {
            name: status.volume,
            size: status.size,
            endpoint: status.frontends.into_iter().next().unwrap_or_default(),
            replicas: status.replicas.len(),
        })
    }

    async fn expand(&self, size: u64) -> Result<(), ClientError> {
        self.order(&["expand", &size.to_string()]).await
    }

    async fn start_frontend(&self, frontend: &str) -> Result<(), ClientError> {
        self.order(&["frontend", "start", "--", frontend]).await
    }

    async fn stop_frontend(&self) -> Result<(), ClientError> {
        self.order(&["frontend", "stop"]).await
    }

    async fn create_snapshot(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, ClientError> {
        let labels: Vec<_> = labels.iter().map(|(name, value)| format!("--label={name}={value}")).collect();
        let mut arguments = vec!["snapshot", "create"];
        arguments.extend(labels.iter().map(String::as_str));
        if !name.is_empty() {
            arguments.extend(["--", name]);
        }
        Ok(self.run::<Made>(&arguments).await?.name)
    }

    async fn snapshots(&self) -> Result<Vec<Snapshot>, ClientError> {
        let listed: Snapshots = self.run(&["snapshot", "list"]).await?;
        let snapshot = |listed: ListedSnapshot| Snapshot {
            name: listed.name,
            parent: listed.parent,
            children: listed.children,
            removed: listed.removed,
            user_created: listed.user_created,
            created: listed.created,
            size: listed.allocated,
            labels: listed.labels,
        };
        Ok(listed.snapshots.into_iter().map(snapshot).collect())
    }

    async fn revert(&self, snapshot: &str) -> Result<(), ClientError> {
        let status = self.status().await?;
        if let Some(place) = status.frontends.first() {
            return Err(ClientError::Refused(format!(
                "volume {} is reached at {place}; shut its frontend down before it is turned back",
                status.volume
            )));
        }
        self.order(&["snapshot", "revert", "--", snapshot]).await
    }

    async fn remove_snapshot(&self, snapshot: &str) -> Result<(), ClientError> {
        self.order(&["snapshot", "remove", "--", snapshot]).await
    }

    async fn purge(&self) -> Result<(), ClientError> {
        if self.is_purging().await? {
            return Ok(());
        }
        self.order(&["snapshot", "purge"]).await
    }

    async fn is_purging(&self) -> Result<bool, ClientError> {
        Ok(self.status().await?.purging)
    }

    async fn replicas(&self) -> Result<Vec<Replica>, ClientError> {
        let replicas = self.status().await?.replicas.into_iter();
        Ok(replicas.map(|replica| Replica { mode: mode(&replica.state), address: replica.address }).collect())
    }

    async fn add_replica(&self, address: &str) -> Result<(), ClientError> {
        self.order(&["replica", "add", "--", address]).await?;
        let mut arrival = tokio::time::Instant::now() + ARRIVAL;
        loop {
            let replicas = self.status().await?.replicas;
            let Some(replica) = replicas.into_iter().find(|replica| replica.address == address) else {
                return Err(ClientError::NotFound(format!(
                    "{address} was removed while it was being filled"
                )));
            };
            match mode(&replica.state) {
                ReplicaMode::ReadWrite => return Ok(()),
                ReplicaMode::WriteOnly => arrival = tokio::time::Instant::now() + ARRIVAL,
                ReplicaMode::Failed if tokio::time::Instant::now() > arrival => {
                    return Err(ClientError::Refused(format!(
                        "{address} is not rebuilt: {}",
                        replica.reason
                    )));
                }
                ReplicaMode::Failed => {}
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn remove_replica(&self, address: &str) -> Result<(), ClientError> {
        self.order(&["replica", "remove", "--", address]).await
    }

    async fn rebuilds(&self) -> Result<Vec<Rebuild>, ClientError> {
        let rebuild = |replica: StatusReplica| {
            let rebuild = replica.rebuild?;
            let done = u128::from(rebuild.bytes_copied.max(rebuild.bytes_compared)) * 100;
            let percent = done.checked_div(u128::from(rebuild.bytes_total)).unwrap_or(0).min(100) as u8;
            Some(Rebuild { address: replica.address, percent })
        };
        Ok(self.status().await?.replicas.into_iter().filter_map(rebuild).collect())
    }

    async fn limit_rebuilds(&self, megabytes: u64) -> Result<(), ClientError> {
        self.order(&["rebuild-rate", &format!("{megabytes}MiB")]).await
    }
}
