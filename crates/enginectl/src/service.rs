//! The API's server side. It runs wherever gRPC does and passes what is asked to the engine's own thread.

use granary_block::engine::event::Status as VolumeStatus;
use granary_block::engine::{Command, CommandError, CommandReply};
use granary_block::wire::address::Address;
use granary_block::wire::message::SnapshotSpec;
use tokio::sync::{mpsc, oneshot, watch};
use tonic::{Request, Response, Status};

use crate::limits::SnapshotLimits;
use crate::v1::engine_server::Engine;
use crate::{snapshots, translate, v1};

/// Something for the engine's thread to do.
#[derive(Debug)]
pub enum Ask {
    Command { command: Command, answer: oneshot::Sender<Result<CommandReply, CommandError>> },
    StartFrontends { frontends: Vec<String>, answer: oneshot::Sender<Result<(), CommandError>> },
    StopFrontends { answer: oneshot::Sender<Result<(), CommandError>> },
    Close { answer: oneshot::Sender<Result<(), CommandError>> },
    Handover { request: v1::HandoverRequest, answer: oneshot::Sender<Result<(), CommandError>> },
}

/// How a volume is reached: as it was asked for, and where that turned out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    pub specs: Vec<String>,
    pub places: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Service {
    asks: mpsc::Sender<Ask>,
    frontends: watch::Receiver<Reached>,
    limits: watch::Sender<SnapshotLimits>,
}

type Reply<T> = Result<Response<T>, Status>;

impl Service {
    /// `frontends`: where the volume is reached, once it is.
    pub fn new(frontends: watch::Receiver<Reached>, limits: SnapshotLimits) -> (Self, mpsc::Receiver<Ask>) {
        let (asks, asked) = mpsc::channel(16);
        (Self { asks, frontends, limits: watch::Sender::new(limits) }, asked)
    }

    async fn ask<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, CommandError>>) -> Ask,
    ) -> Result<T, Status> {
        let (answer, answered) = oneshot::channel();
        let ended = || Status::unavailable("the engine has ended");
        self.asks.send(make(answer)).await.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?.map_err(translate::refusal)
    }

    async fn command(&self, command: Command) -> Result<CommandReply, Status> {
        self.ask(|answer| Ask::Command { command, answer }).await
    }

    async fn order(&self, command: Command) -> Reply<v1::Done> {
        self.command(command).await.map(|_| Response::new(v1::Done {}))
    }

    async fn volume(&self) -> Result<VolumeStatus, Status> {
        match self.command(Command::Status).await? {
            CommandReply::Status(status) => Ok(*status),
            other => Err(unexpected(&other)),
        }
    }
}

fn unexpected(reply: &CommandReply) -> Status {
    Status::internal(format!("the engine answered something else: {reply:?}"))
}

fn checked(address: &str) -> Result<String, Status> {
    let parsed: Result<Address, _> = address.parse();
    Ok(parsed.map_err(|error| Status::invalid_argument(error.to_string()))?.to_string())
}

#[tonic::async_trait]
impl Engine for Service {
    async fn status(&self, _: Request<v1::StatusRequest>) -> Reply<v1::StatusReply> {
        let volume = self.volume().await?;
        Ok(Response::new(translate::status(volume, self.frontends.borrow().clone(), *self.limits.borrow())))
    }

    async fn metrics(&self, _: Request<v1::MetricsRequest>) -> Reply<v1::MetricsReply> {
        match self.command(Command::Metrics).await? {
            CommandReply::Metrics(metrics) => Ok(Response::new(translate::metrics(*metrics))),
            other => Err(unexpected(&other)),
        }
    }

    async fn create_snapshot(
        &self,
        request: Request<v1::CreateSnapshotRequest>,
    ) -> Reply<v1::CreateSnapshotReply> {
        let v1::CreateSnapshotRequest { name, labels, automatic } = request.into_inner();
        let created = jiff::Timestamp::now();
        let name = if name.is_empty() { format!("snap-{}", created.as_millisecond()) } else { name };
        let limits = *self.limits.borrow();
        if limits != SnapshotLimits::default() {
            let volume = self.volume().await?;
            let head = snapshots::head(&volume.layers, volume.head).map_or(0, |head| head.allocated);
            limits.admit(&snapshots::list(&volume.layers), head).map_err(Status::resource_exhausted)?;
        }
        let snapshot = SnapshotSpec { name: name.clone(), created, user_created: !automatic, labels };
        self.order(Command::CreateSnapshot { snapshot }).await?;
        Ok(Response::new(v1::CreateSnapshotReply { name }))
    }

    async fn list_snapshots(&self, _: Request<v1::ListSnapshotsRequest>) -> Reply<v1::ListSnapshotsReply> {
        let VolumeStatus { layers, head, .. } = self.volume().await?;
        let (snapshots, head) = (snapshots::list(&layers), snapshots::head(&layers, head));
        Ok(Response::new(v1::ListSnapshotsReply { snapshots, head }))
    }

    async fn revert_snapshot(&self, request: Request<v1::RevertSnapshotRequest>) -> Reply<v1::Done> {
        self.order(Command::Revert { name: request.into_inner().name }).await
    }

    async fn remove_snapshot(&self, request: Request<v1::RemoveSnapshotRequest>) -> Reply<v1::Done> {
        self.order(Command::RemoveSnapshot { name: request.into_inner().name }).await
    }

    async fn purge_snapshots(&self, _: Request<v1::PurgeSnapshotsRequest>) -> Reply<v1::Done> {
        self.order(Command::Purge).await
    }

    async fn add_replica(&self, request: Request<v1::AddReplicaRequest>) -> Reply<v1::Done> {
        self.order(Command::AddReplica { address: checked(&request.into_inner().address)? }).await
    }

    async fn remove_replica(&self, request: Request<v1::RemoveReplicaRequest>) -> Reply<v1::Done> {
        self.order(Command::RemoveReplica { address: checked(&request.into_inner().address)? }).await
    }

    async fn list_replicas(&self, _: Request<v1::ListReplicasRequest>) -> Reply<v1::ListReplicasReply> {
        let replicas = self.volume().await?.replicas.into_iter().map(translate::replica).collect();
        Ok(Response::new(v1::ListReplicasReply { replicas }))
    }

    async fn rebuild_status(&self, _: Request<v1::RebuildStatusRequest>) -> Reply<v1::ListReplicasReply> {
        let replicas = self.volume().await?.replicas.into_iter();
        let rebuilt = replicas.filter(|replica| replica.rebuild.is_some()).map(translate::replica);
        Ok(Response::new(v1::ListReplicasReply { replicas: rebuilt.collect() }))
    }

    async fn set_rebuild_rate(&self, request: Request<v1::SetRebuildRateRequest>) -> Reply<v1::Done> {
        let bytes_per_second = request.into_inner().bytes_per_second;
        self.order(Command::SetRebuildRate { bytes_per_second }).await
    }

    async fn expand(&self, request: Request<v1::ExpandRequest>) -> Reply<v1::Done> {
        self.order(Command::Expand { size: request.into_inner().size }).await
    }

    async fn set_qos(&self, request: Request<v1::SetQosRequest>) -> Reply<v1::Done> {
        let v1::SetQosRequest { iops, bandwidth } = request.into_inner();
        self.order(Command::SetQos { iops, bandwidth }).await
    }

    async fn set_snapshot_limits(&self, request: Request<v1::SetSnapshotLimitsRequest>) -> Reply<v1::Done> {
        let v1::SetSnapshotLimitsRequest { max_snapshots, max_snapshot_bytes } = request.into_inner();
        self.limits.send_modify(|limits| {
            limits.count = max_snapshots.unwrap_or(limits.count);
            limits.bytes = max_snapshot_bytes.unwrap_or(limits.bytes);
        });
        Ok(Response::new(v1::Done {}))
    }

    async fn start_frontends(&self, request: Request<v1::StartFrontendsRequest>) -> Reply<v1::Done> {
        let frontends = request.into_inner().frontends;
        self.ask(|answer| Ask::StartFrontends { frontends, answer }).await?;
        Ok(Response::new(v1::Done {}))
    }

    async fn stop_frontends(&self, _: Request<v1::StopFrontendsRequest>) -> Reply<v1::Done> {
        self.ask(|answer| Ask::StopFrontends { answer }).await?;
        Ok(Response::new(v1::Done {}))
    }

    async fn verify(&self, request: Request<v1::VerifyRequest>) -> Reply<v1::VerifyReply> {
        let snapshot = Some(request.into_inner().snapshot).filter(|name| !name.is_empty());
        match self.command(Command::Verify { snapshot }).await? {
            CommandReply::Checksums(checksums) => Ok(Response::new(translate::verdict(checksums))),
            other => Err(unexpected(&other)),
        }
    }

    async fn close(&self, _: Request<v1::CloseRequest>) -> Reply<v1::Done> {
        self.ask(|answer| Ask::Close { answer }).await?;
        Ok(Response::new(v1::Done {}))
    }

    async fn handover(&self, request: Request<v1::HandoverRequest>) -> Reply<v1::HandoverReply> {
        let request = request.into_inner();
        self.ask(|answer| Ask::Handover { request, answer }).await?;
        Ok(Response::new(v1::HandoverReply { frontends: self.frontends.borrow().places.clone() }))
    }
}
