//! The proxy's calls, each passed to where it is answered. Nothing is decided here.

use tonic::{Request, Response, Status};

use super::engines::Engine;
use super::{Proxy, pending, replicas, snapshots, volume};
use crate::wire::imrpc as im;
use crate::wire::imrpc::proxy_engine_service_server::ProxyEngineService;

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
    async fn engine(&self, request: Request<im::ProxyEngineRequest>) -> Result<Engine, Status> {
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
        request: Request<im::ProxyEngineRequest>,
    ) -> Reply<im::EngineVersionProxyResponse> {
        let version = Some(volume::version(self.engine(request).await?).await?);
        Ok(Response::new(im::EngineVersionProxyResponse { version }))
    }

    async fn volume_get(
        &self,
        request: Request<im::ProxyEngineRequest>,
    ) -> Reply<im::EngineVolumeGetProxyResponse> {
        let volume = Some(volume::get(self.engine(request).await?).await?);
        Ok(Response::new(im::EngineVolumeGetProxyResponse { volume }))
    }

    async fn volume_expand(&self, request: Request<im::EngineVolumeExpandRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        volume::expand(engine, request.expand.unwrap_or_default()).await.map(Response::new)
    }

    async fn volume_frontend_start(
        &self,
        request: Request<im::EngineVolumeFrontendStartRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        volume::start_frontend(engine, request.frontend_start.unwrap_or_default()).await.map(Response::new)
    }

    async fn volume_frontend_shutdown(&self, request: Request<im::ProxyEngineRequest>) -> Reply<()> {
        volume::stop_frontend(self.engine(request).await?).await.map(Response::new)
    }

    async fn volume_unmap_mark_snap_chain_removed_set(
        &self,
        request: Request<im::EngineVolumeUnmapMarkSnapChainRemovedSetRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        pending::unmap_mark(&engine, request.unmap_mark_snap.unwrap_or_default().enabled).map(Response::new)
    }

    async fn volume_snapshot_max_count_set(
        &self,
        request: Request<im::EngineVolumeSnapshotMaxCountSetRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::limit_count(engine, request.count.unwrap_or_default().count).await.map(Response::new)
    }

    async fn volume_snapshot_max_size_set(
        &self,
        request: Request<im::EngineVolumeSnapshotMaxSizeSetRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::limit_size(engine, request.size.unwrap_or_default().size).await.map(Response::new)
    }

    async fn volume_snapshot(
        &self,
        request: Request<im::EngineVolumeSnapshotRequest>,
    ) -> Reply<im::EngineVolumeSnapshotProxyResponse> {
        let (engine, request) = meant_for!(self, request);
        let snapshot = Some(snapshots::create(engine, request.snapshot_volume.unwrap_or_default()).await?);
        Ok(Response::new(im::EngineVolumeSnapshotProxyResponse { snapshot }))
    }

    async fn snapshot_list(
        &self,
        request: Request<im::ProxyEngineRequest>,
    ) -> Reply<im::EngineSnapshotListProxyResponse> {
        let disks = snapshots::list(self.engine(request).await?).await?;
        Ok(Response::new(im::EngineSnapshotListProxyResponse { disks }))
    }

    async fn snapshot_revert(&self, request: Request<im::EngineSnapshotRevertRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::revert(engine, request.name).await.map(Response::new)
    }

    async fn snapshot_purge(&self, request: Request<im::EngineSnapshotPurgeRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::purge(engine, request.skip_if_in_progress).await.map(Response::new)
    }

    async fn snapshot_purge_status(
        &self,
        request: Request<im::ProxyEngineRequest>,
    ) -> Reply<im::EngineSnapshotPurgeStatusProxyResponse> {
        let status = snapshots::purge_status(self.engine(request).await?).await?;
        Ok(Response::new(im::EngineSnapshotPurgeStatusProxyResponse { status }))
    }

    async fn snapshot_clone(&self, request: Request<im::EngineSnapshotCloneRequest>) -> Reply<()> {
        let (engine, _) = meant_for!(self, request);
        Err(pending::clone(&engine))
    }

    async fn snapshot_clone_status(
        &self,
        request: Request<im::ProxyEngineRequest>,
    ) -> Reply<im::EngineSnapshotCloneStatusProxyResponse> {
        Err(pending::clone(&self.engine(request).await?))
    }

    async fn snapshot_remove(&self, request: Request<im::EngineSnapshotRemoveRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        snapshots::remove(engine, request.names).await.map(Response::new)
    }

    async fn snapshot_hash(&self, request: Request<im::EngineSnapshotHashRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        self.hashes.begin(engine, request.snapshot_name, request.rehash).await.map(Response::new)
    }

    async fn snapshot_hash_status(
        &self,
        request: Request<im::EngineSnapshotHashStatusRequest>,
    ) -> Reply<im::EngineSnapshotHashStatusProxyResponse> {
        let (engine, request) = meant_for!(self, request);
        let status = self.hashes.status(engine, &request.snapshot_name).await?;
        Ok(Response::new(im::EngineSnapshotHashStatusProxyResponse { status }))
    }

    async fn snapshot_backup(
        &self,
        request: Request<im::EngineSnapshotBackupRequest>,
    ) -> Reply<im::EngineSnapshotBackupProxyResponse> {
        let (engine, _) = meant_for!(self, request);
        Err(pending::backup(&engine.volume))
    }

    async fn snapshot_backup_status(
        &self,
        request: Request<im::EngineSnapshotBackupStatusRequest>,
    ) -> Reply<im::EngineSnapshotBackupStatusProxyResponse> {
        let (engine, _) = meant_for!(self, request);
        Err(pending::backup(&engine.volume))
    }

    async fn backup_restore(
        &self,
        request: Request<im::EngineBackupRestoreRequest>,
    ) -> Reply<im::EngineBackupRestoreProxyResponse> {
        let (engine, _) = meant_for!(self, request);
        Err(pending::backup(&engine.volume))
    }

    async fn backup_restore_status(
        &self,
        request: Request<im::ProxyEngineRequest>,
    ) -> Reply<im::EngineBackupRestoreStatusProxyResponse> {
        Err(pending::backup(&self.engine(request).await?.volume))
    }

    async fn backup_volume_list(
        &self,
        request: Request<im::EngineBackupVolumeListRequest>,
    ) -> Reply<im::EngineBackupVolumeListProxyResponse> {
        Err(pending::backup(&request.into_inner().volume_name))
    }

    async fn backup_volume_get(
        &self,
        _: Request<im::EngineBackupVolumeGetRequest>,
    ) -> Reply<im::EngineBackupVolumeGetProxyResponse> {
        Err(pending::backup(""))
    }

    async fn backup_get(
        &self,
        _: Request<im::EngineBackupGetRequest>,
    ) -> Reply<im::EngineBackupGetProxyResponse> {
        Err(pending::backup(""))
    }

    async fn backup_config_meta_get(
        &self,
        _: Request<im::EngineBackupConfigMetaGetRequest>,
    ) -> Reply<im::EngineBackupConfigMetaGetProxyResponse> {
        Err(pending::backup(""))
    }

    async fn backup_remove(&self, request: Request<im::EngineBackupRemoveRequest>) -> Reply<()> {
        Err(pending::backup(&request.into_inner().volume_name))
    }

    async fn replica_add(&self, request: Request<im::EngineReplicaAddRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::add(engine, request).await.map(Response::new)
    }

    async fn replica_list(
        &self,
        request: Request<im::ProxyEngineRequest>,
    ) -> Reply<im::EngineReplicaListProxyResponse> {
        let replica_list = Some(replicas::list(self.engine(request).await?).await?);
        Ok(Response::new(im::EngineReplicaListProxyResponse { replica_list }))
    }

    async fn replica_rebuilding_status(
        &self,
        request: Request<im::ProxyEngineRequest>,
    ) -> Reply<im::EngineReplicaRebuildStatusProxyResponse> {
        let status = replicas::rebuilding(self.engine(request).await?).await?;
        Ok(Response::new(im::EngineReplicaRebuildStatusProxyResponse { status }))
    }

    async fn replica_rebuilding_qos_set(
        &self,
        request: Request<im::EngineReplicaRebuildingQosSetRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::limit_rebuilds(engine, request.qos_limit_mbps).await.map(Response::new)
    }

    async fn replica_verify_rebuild(
        &self,
        request: Request<im::EngineReplicaVerifyRebuildRequest>,
    ) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::verify_rebuild(engine, &request.replica_address).await.map(Response::new)
    }

    async fn replica_remove(&self, request: Request<im::EngineReplicaRemoveRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::remove(engine, &request.replica_address).await.map(Response::new)
    }

    async fn replica_mode_update(&self, request: Request<im::EngineReplicaModeUpdateRequest>) -> Reply<()> {
        let (engine, request) = meant_for!(self, request);
        replicas::set_mode(engine, &request).await.map(Response::new)
    }

    async fn metrics_get(
        &self,
        request: Request<im::ProxyEngineRequest>,
    ) -> Reply<im::EngineMetricsGetProxyResponse> {
        let metrics = Some(self.rates.of(self.engine(request).await?).await?);
        Ok(Response::new(im::EngineMetricsGetProxyResponse { metrics }))
    }
}
