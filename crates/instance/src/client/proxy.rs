//! An engine, asked through the proxy of its instance manager.

use std::collections::BTreeMap;
use std::sync::Arc;

use granary_enginectl::HEAD;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::connection::Connection;
use super::engine::EngineClient;
use super::model::{ClientError, Rebuild, Replica, ReplicaMode, Snapshot, Volume};
use crate::wire::imrpc as im;
use crate::wire::imrpc::proxy_engine_service_client::ProxyEngineServiceClient;
use crate::wire::ptypes;

pub struct ProxyClient {
    connection: Arc<Connection>,
    engine: im::ProxyEngineRequest,
}

impl ProxyClient {
    /// The names make sure that nobody else is asked who has the address by now.
    pub fn new(connection: Arc<Connection>, address: &str, volume: &str, name: &str) -> Self {
        let engine = im::ProxyEngineRequest {
            address: address.to_owned(),
            volume_name: volume.to_owned(),
            engine_name: name.to_owned(),
            ..im::ProxyEngineRequest::default()
        };
        Self { connection, engine }
    }

    fn proxy(&self) -> Result<ProxyEngineServiceClient<Channel>, ClientError> {
        self.connection.proxy()
    }

    fn who(&self) -> Option<im::ProxyEngineRequest> {
        Some(self.engine.clone())
    }

    fn only_who(&self) -> Request<im::ProxyEngineRequest> {
        Request::new(self.engine.clone())
    }

    fn told(&self, status: &Status) -> ClientError {
        self.connection.told(status)
    }
}

fn number(size: u64) -> Result<i64, ClientError> {
    i64::try_from(size).map_err(|_| ClientError::Refused(format!("{size} is too large")))
}

/// Without the scheme that the proxy writes.
fn bare(address: &str) -> String {
    address.strip_prefix("tcp://").unwrap_or(address).to_owned()
}

#[tonic::async_trait]
impl EngineClient for ProxyClient {
    async fn version(&self) -> Result<String, ClientError> {
        let reply =
            self.proxy()?.server_version_get(self.only_who()).await.map_err(|status| self.told(&status))?;
        Ok(reply.into_inner().version.unwrap_or_default().version)
    }

    async fn volume(&self) -> Result<Volume, ClientError> {
        let reply = self.proxy()?.volume_get(self.only_who()).await.map_err(|status| self.told(&status))?;
        let volume = reply.into_inner().volume.unwrap_or_default();
        Ok(Volume {
            name: volume.name,
            size: u64::try_from(volume.size).unwrap_or(0),
            endpoint: volume.endpoint,
            replicas: usize::try_from(volume.replica_count).unwrap_or(0),
        })
    }

    async fn expand(&self, size: u64) -> Result<(), ClientError> {
        let expand = Some(ptypes::VolumeExpandRequest { size: number(size)? });
        let request = im::EngineVolumeExpandRequest { proxy_engine_request: self.who(), expand };
        self.proxy()?.volume_expand(request).await.map(drop).map_err(|status| self.told(&status))
    }

    async fn start_frontend(&self, frontend: &str) -> Result<(), ClientError> {
        let frontend_start = Some(ptypes::VolumeFrontendStartRequest { frontend: frontend.to_owned() });
        let request =
            im::EngineVolumeFrontendStartRequest { proxy_engine_request: self.who(), frontend_start };
        self.proxy()?.volume_frontend_start(request).await.map(drop).map_err(|status| self.told(&status))
    }

    async fn stop_frontend(&self) -> Result<(), ClientError> {
        let stopped = self.proxy()?.volume_frontend_shutdown(self.only_who()).await;
        stopped.map(drop).map_err(|status| self.told(&status))
    }

    async fn create_snapshot(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, ClientError> {
        let (name, labels) = (name.to_owned(), labels.clone());
        let snapshot_volume = Some(ptypes::VolumeSnapshotRequest { name, labels, freeze_filesystem: false });
        let request = im::EngineVolumeSnapshotRequest { proxy_engine_request: self.who(), snapshot_volume };
        let reply = self.proxy()?.volume_snapshot(request).await.map_err(|status| self.told(&status))?;
        Ok(reply.into_inner().snapshot.unwrap_or_default().name)
    }

    async fn snapshots(&self) -> Result<Vec<Snapshot>, ClientError> {
        let reply =
            self.proxy()?.snapshot_list(self.only_who()).await.map_err(|status| self.told(&status))?;
        let disks = reply.into_inner().disks.into_values().filter(|disk| disk.name != HEAD);
        let mut snapshots: Vec<_> = disks.map(snapshot).collect();
        snapshots.sort_by(|one, other| one.created.cmp(&other.created));
        Ok(snapshots)
    }

    async fn revert(&self, snapshot: &str) -> Result<(), ClientError> {
        let request =
            im::EngineSnapshotRevertRequest { proxy_engine_request: self.who(), name: snapshot.to_owned() };
        self.proxy()?.snapshot_revert(request).await.map(drop).map_err(|status| self.told(&status))
    }

    async fn remove_snapshot(&self, snapshot: &str) -> Result<(), ClientError> {
        let names = vec![snapshot.to_owned()];
        let request = im::EngineSnapshotRemoveRequest { proxy_engine_request: self.who(), names };
        self.proxy()?.snapshot_remove(request).await.map(drop).map_err(|status| self.told(&status))
    }

    async fn purge(&self) -> Result<(), ClientError> {
        let request =
            im::EngineSnapshotPurgeRequest { proxy_engine_request: self.who(), skip_if_in_progress: true };
        self.proxy()?.snapshot_purge(request).await.map(drop).map_err(|status| self.told(&status))
    }

    async fn is_purging(&self) -> Result<bool, ClientError> {
        let reply = self.proxy()?.snapshot_purge_status(self.only_who()).await;
        let reply = reply.map_err(|status| self.told(&status))?;
        Ok(reply.into_inner().status.into_values().any(|status| status.is_purging))
    }

    async fn replicas(&self) -> Result<Vec<Replica>, ClientError> {
        let reply = self.proxy()?.replica_list(self.only_who()).await.map_err(|status| self.told(&status))?;
        let replicas = reply.into_inner().replica_list.unwrap_or_default().replicas.into_iter();
        Ok(replicas
            .map(|replica| Replica {
                mode: match replica.mode() {
                    ptypes::ReplicaMode::Rw => ReplicaMode::ReadWrite,
                    ptypes::ReplicaMode::Wo => ReplicaMode::WriteOnly,
                    ptypes::ReplicaMode::Err => ReplicaMode::Failed,
                },
                address: bare(&replica.address.unwrap_or_default().address),
            })
            .collect())
    }

    async fn add_replica(&self, address: &str) -> Result<(), ClientError> {
        let request = im::EngineReplicaAddRequest {
            proxy_engine_request: self.who(),
            replica_address: address.to_owned(),
            ..im::EngineReplicaAddRequest::default()
        };
        self.proxy()?.replica_add(request).await.map(drop).map_err(|status| self.told(&status))
    }

    async fn remove_replica(&self, address: &str) -> Result<(), ClientError> {
        let request = im::EngineReplicaRemoveRequest {
            proxy_engine_request: self.who(),
            replica_address: address.to_owned(),
            replica_name: String::new(),
        };
        self.proxy()?.replica_remove(request).await.map(drop).map_err(|status| self.told(&status))
    }

    async fn rebuilds(&self) -> Result<Vec<Rebuild>, ClientError> {
        let reply = self.proxy()?.replica_rebuilding_status(self.only_who()).await;
        let status = reply.map_err(|status| self.told(&status))?.into_inner().status;
        let running = status.into_iter().filter(|(_, status)| status.is_rebuilding);
        let rebuild = |(address, status): (String, ptypes::ReplicaRebuildStatusResponse)| Rebuild {
            address: bare(&address),
            percent: u8::try_from(status.progress).unwrap_or(0),
        };
        Ok(running.map(rebuild).collect())
    }

    async fn limit_rebuilds(&self, megabytes: u64) -> Result<(), ClientError> {
        let request = im::EngineReplicaRebuildingQosSetRequest {
            proxy_engine_request: self.who(),
            qos_limit_mbps: number(megabytes)?,
        };
        self.proxy()?.replica_rebuilding_qos_set(request).await.map(drop).map_err(|status| self.told(&status))
    }
}

fn snapshot(disk: im::EngineSnapshotDiskInfo) -> Snapshot {
    Snapshot {
        name: disk.name,
        parent: disk.parent,
        children: disk.children.into_keys().collect(),
        removed: disk.removed,
        user_created: disk.user_created,
        created: disk.created,
        size: disk.size.parse().unwrap_or(0),
        labels: disk.labels,
    }
}
