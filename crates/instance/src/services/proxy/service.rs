//! The proxy's calls, each passed to where it is answered. Nothing is decided here.

use tonic::{Request, Response, Status};

use super::engines::Engine;
use super::{Proxy, pending, replicas, snapshots, volume};
use crate::wire::imrpc::proxy_engine_service_server::ProxyEngineService;
use crate::wire::imrpc::*;

type Reply<T> = Result<Response<T>, Status>;

/// For each call: the engine it is meant for, and its request without what only says which engine that is.
macro_rules! meant_for {
    ($proxy:ident, $request:ident) => {{
        let (metadata, _, mut request) = $request.into_parts();
        let engine = $proxy.engines.find(&metadata, request.proxy_engine_request.take()).await?;
        (engine, request)
    }};
}

impl Proxy {
    async fn engine(&self, request: Request<ProxyEngineRequest>) -> Result<Engine, Status> {
        let (metadata, _, request) = request.into_parts();
        self.engines.find(&metadata, Some(request)).await
    }
}

#[tonic::async_trait]
impl ProxyEngineService for Proxy {
    async fn ping(&self, _: Request<()>) -> Reply<()> {
        Ok(Response::new(()))
    }

    async fn server_version_get(
        &self,
        request: Request<ProxyEngineRequest>,
    ) -> Reply<EngineVersionProxyResponse> {
        let version = Some(volume::version(self.engine(request).await?).await?);
        Ok(Response::new(EngineVersionProxyResponse { version }))
    }

    async fn volume_get(&self, request: Request<ProxyEngineRequest>) -> Reply<EngineVolumeGetProxyResponse> {
        let volume = Some(volume::get(self.engine(request).await?).await?);
        Ok(Response::new(EngineVolumeGetProxyResponse { volume }))
    }

    async fn volume_expand(&self, request: Request<EngineVolumeExpandRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        volume::expand(engine, request.expand.unwrap_or_default()).await.map(Response::new)
    }

    async fn volume_frontend_start(&self, request: Request<EngineVolumeFrontendStartRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        volume::start_frontend(engine, request.frontend_start.unwrap_or_default()).await.map(Response::new)
    }

    async fn volume_frontend_shutdown(&self, request: Request<ProxyEngineRequest>) -> Reply<()> {
        volume::stop_frontend(self.engine(request).await?).await.map(Response::new)
    }

    async fn volume_unmap_mark_snap_chain_removed_set(
        &self,
        request: Request<EngineVolumeUnmapMarkSnapChainRemovedSetRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        pending::unmap_mark(&engine, request.unmap_mark_snap.unwrap_or_default().enabled).map(Response::new)
    }

    async fn volume_snapshot_max_count_set(
        &self,
        request: Request<EngineVolumeSnapshotMaxCountSetRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::limit_count(engine, request.count.unwrap_or_default().count).await.map(Response::new)
    }

    async fn volume_snapshot_max_size_set(
        &self,
        request: Request<EngineVolumeSnapshotMaxSizeSetRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::limit_size(engine, request.size.unwrap_or_default().size).await.map(Response::new)
    }

    async fn volume_snapshot(
        &self,
        request: Request<EngineVolumeSnapshotRequest>,
    ) -> Reply<EngineVolumeSnapshotProxyResponse> {
        let (engine, request) = meant_for!(self, request);
        let snapshot = Some(snapshots::create(engine, request.snapshot_volume.unwrap_or_default()).await?);
        Ok(Response::new(EngineVolumeSnapshotProxyResponse { snapshot }))
    }

    async fn snapshot_list(
        &self,
        request: Request<ProxyEngineRequest>,
    ) -> Reply<EngineSnapshotListProxyResponse> {
        let disks = snapshots::list(self.engine(request).await?).await?;
        Ok(Response::new(EngineSnapshotListProxyResponse { disks }))
    }

    async fn snapshot_revert(&self, request: Request<EngineSnapshotRevertRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::revert(engine, request.name).await.map(Response::new)
    }

    async fn snapshot_purge(&self, request: Request<EngineSnapshotPurgeRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::purge(engine, request.skip_if_in_progress).await.map(Response::new)
    }

    async fn snapshot_purge_status(
        &self,
        request: Request<ProxyEngineRequest>,
    ) -> Reply<EngineSnapshotPurgeStatusProxyResponse> {
        let status = snapshots::purge_status(self.engine(request).await?).await?;
        Ok(Response::new(EngineSnapshotPurgeStatusProxyResponse { status }))
    }

    async fn snapshot_clone(&self, request: Request<EngineSnapshotCloneRequest>) -> Reply<()> {
        let (engine, _) = meant_for!(self, request);
        Err(pending::clone(&engine))
    }

    async fn snapshot_clone_status(
        &self,
        request: Request<ProxyEngineRequest>,
    ) -> Reply<EngineSnapshotCloneStatusProxyResponse> {
        Err(pending::clone(&self.engine(request).await?))
    }

    async fn snapshot_remove(&self, request: Request<EngineSnapshotRemoveRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::remove(engine, request.names).await.map(Response::new)
    }

    async fn snapshot_hash(&self, request: Request<EngineSnapshotHashRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        self.hashes.begin(engine, request.snapshot_name, request.rehash).await.map(Response::new)
    }

    async fn snapshot_hash_status(
        &self,
        request: Request<EngineSnapshotHashStatusRequest>,
    ) -> Reply<EngineSnapshotHashStatusProxyResponse> {
        let (engine, request) = meant_for!(self, request);
        let status = self.hashes.status(engine, &request.snapshot_name).await?;
        Ok(Response::new(EngineSnapshotHashStatusProxyResponse { status }))
    }

    async fn snapshot_backup(
        &self,
        request: Request<EngineSnapshotBackupRequest>,
    ) -> Reply<EngineSnapshotBackupProxyResponse> {
        let (engine, _) = meant_for!(self, request);
        Err(pending::backup(&engine.volume))
    }

    async fn snapshot_backup_status(
        &self,
        request: Request<EngineSnapshotBackupStatusRequest>,
    ) -> Reply<EngineSnapshotBackupStatusProxyResponse> {
        let (engine, _) = meant_for!(self, request);
        Err(pending::backup(&engine.volume))
    }

    async fn backup_restore(
        &self,
        request: Request<EngineBackupRestoreRequest>,
    ) -> Reply<EngineBackupRestoreProxyResponse> {
        let (engine, _) = meant_for!(self, request);
        Err(pending::backup(&engine.volume))
    }

    async fn backup_restore_status(
        &self,
        request: Request<ProxyEngineRequest>,
    ) -> Reply<EngineBackupRestoreStatusProxyResponse> {
        Err(pending::backup(&self.engine(request).await?.volume))
    }

    async fn backup_volume_list(
        &self,
        request: Request<EngineBackupVolumeListRequest>,
    ) -> Reply<EngineBackupVolumeListProxyResponse> {
        Err(pending::backup(&request.into_inner().volume_name))
    }

    async fn backup_volume_get(
        &self,
        _: Request<EngineBackupVolumeGetRequest>,
    ) -> Reply<EngineBackupVolumeGetProxyResponse> {
        Err(pending::backup(""))
    }

    async fn backup_get(&self, _: Request<EngineBackupGetRequest>) -> Reply<EngineBackupGetProxyResponse> {
        Err(pending::backup(""))
    }

    async fn backup_config_meta_get(
        &self,
        _: Request<EngineBackupConfigMetaGetRequest>,
    ) -> Reply<EngineBackupConfigMetaGetProxyResponse> {
        Err(pending::backup(""))
    }

    async fn backup_remove(&self, request: Request<EngineBackupRemoveRequest>) -> Reply<()> {
        Err(pending::backup(&request.into_inner().volume_name))
    }

    async fn replica_add(&self, request: Request<EngineReplicaAddRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::add(engine, request).await.map(Response::new)
    }

    async fn replica_list(
        &self,
        request: Request<ProxyEngineRequest>,
    ) -> Reply<EngineReplicaListProxyResponse> {
        let replica_list = Some(replicas::list(self.engine(request).await?).await?);
        Ok(Response::new(EngineReplicaListProxyResponse { replica_list }))
    }

    async fn replica_rebuilding_status(
        &self,
        request: Request<ProxyEngineRequest>,
    ) -> Reply<EngineReplicaRebuildStatusProxyResponse> {
        let status = replicas::rebuilding(self.engine(request).await?).await?;
        Ok(Response::new(EngineReplicaRebuildStatusProxyResponse { status }))
    }

    async fn replica_rebuilding_qos_set(
        &self,
        request: Request<EngineReplicaRebuildingQosSetRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::limit_rebuilds(engine, request.qos_limit_mbps).await.map(Response::new)
    }

    async fn replica_verify_rebuild(&self, request: Request<EngineReplicaVerifyRebuildRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::verify_rebuild(engine, &request.replica_address).await.map(Response::new)
    }

    async fn replica_remove(&self, request: Request<EngineReplicaRemoveRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::remove(engine, &request.replica_address).await.map(Response::new)
    }

    async fn replica_mode_update(&self, request: Request<EngineReplicaModeUpdateRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::set_mode(engine, &request).await.map(Response::new)
    }

    async fn metrics_get(
        &self,
        request: Request<ProxyEngineRequest>,
    ) -> Reply<EngineMetricsGetProxyResponse> {
        let metrics = Some(self.rates.of(self.engine(request).await?).await?);
        Ok(Response::new(EngineMetricsGetProxyResponse { metrics }))
    }
}
