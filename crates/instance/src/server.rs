//! One instance manager: its processes, and the ports it answers at. Each port also tells its health and describes
//! itself. Stopping is in order: processes first, while questions are still answered.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use futures::stream;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::ServerTlsConfig;
use tonic_health::server::HealthReporter;

use crate::process::{Registry, Settings, StartError};
use crate::services::{Instances, Processes, Proxy};
use crate::tls::{self, TlsError};
use crate::wire::DEFINITIONS;
use crate::wire::imrpc::instance_service_server::InstanceServiceServer;
use crate::wire::imrpc::proxy_engine_service_server::ProxyEngineServiceServer;
use crate::wire::process::process_manager_service_server::ProcessManagerServiceServer;

/// The proxy and the instance service have their ports beside that of the process service.
pub const PROXY_OFFSET: u16 = 1;
pub const INSTANCE_OFFSET: u16 = 3;

/// A client that is gone without a word is noticed after this, and its watches end.
const STILL_THERE: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(20);
/// How long answers under way may take when everything else has stopped.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

pub struct Server {
    pub registry: Registry,
    /// Of the process service, with the port that was chosen.
    pub address: SocketAddr,
    serving: JoinSet<Result<(), tonic::transport::Error>>,
    health: HealthReporter,
    stop: CancellationToken,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Processes(#[from] StartError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the TLS files in {directory} cannot be used: {reason}")]
    Certificates { directory: PathBuf, reason: String },
    #[error("cannot listen at {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(
        "{0} can be reached from other machines, and whoever reaches it can start processes; give --tls-dir, or \
         --plaintext if the network is trusted"
    )]
    Exposed(SocketAddr),
    #[error("the definitions of the services cannot be read: {0}")]
    Definitions(String),
}

/// Where to answer, and to whom.
#[derive(Clone, Debug)]
pub struct Listen {
    pub address: SocketAddr,
    pub tls_dir: Option<PathBuf>,
    /// Answer everybody who reaches a port of ours, from other machines too.
    pub plaintext: bool,
}

impl Server {
    pub async fn start(settings: Settings, listen: &Listen) -> Result<Self, ServeError> {
        let exposed = !listen.address.ip().is_loopback() && listen.tls_dir.is_none();
        if exposed && !listen.plaintext {
            return Err(ServeError::Exposed(listen.address));
        }
        let tls = listen.tls_dir.as_deref().map(tls::server).transpose()?;
        let mut listeners = Vec::new();
        for offset in [0, PROXY_OFFSET, INSTANCE_OFFSET] {
            listeners.push(bind(listen.address, offset).await?);
        }
        // Ports first: somebody who already has them also has the processes.
        let registry = Registry::start(settings).await?;
        let address = listeners[0]
            .local_addr()
            .map_err(|source| ServeError::Listen { address: listen.address, source })?;
        let mut server = Self {
            registry: registry.clone(),
            address,
            serving: JoinSet::new(),
            health: HealthReporter::new(),
            stop: CancellationToken::new(),
        };
        let services = [
            (
                "ProcessManagerService",
                Routes::new(ProcessManagerServiceServer::new(Processes(registry.clone()))),
            ),
            ("imrpc.ProxyEngineService", Routes::new(ProxyEngineServiceServer::new(Proxy::new(&registry)))),
            ("imrpc.InstanceService", Routes::new(InstanceServiceServer::new(Instances(registry)))),
        ];
        for (listener, (name, routes)) in listeners.into_iter().zip(services) {
            server.serve(listener, name, routes, tls.clone(), listen).await?;
        }
        Ok(server)
    }

    async fn serve(
        &mut self,
        listener: TcpListener,
        name: &str,
        routes: Routes,
        tls: Option<ServerTlsConfig>,
        listen: &Listen,
    ) -> Result<(), ServeError> {
        use tonic_health::ServingStatus::Serving;
        self.health.set_service_status(name, Serving).await;
        let health = tonic_health::pb::health_server::HealthServer::new(
            tonic_health::server::HealthService::from_health_reporter(self.health.clone()),
        );
        let wrong = |error: tonic_reflection::server::Error| ServeError::Definitions(error.to_string());
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DEFINITIONS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
                .with_service_name(name)
                .with_service_name("grpc.health.v1.Health")
        };
        let routes = routes
            .add_service(health)
            .add_service(reflection().build_v1().map_err(wrong)?)
            .add_service(reflection().build_v1alpha().map_err(wrong)?);
        let mut builder = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(STILL_THERE))
            .http2_keepalive_timeout(Some(ANSWER))
            .tcp_nodelay(true);
        if let Some(tls) = tls {
            builder = builder.tls_config(tls).map_err(|error| ServeError::Certificates {
                directory: listen.tls_dir.clone().unwrap_or_default(),
                reason: innermost(&error),
            })?;
        }
        let stop = self.stop.clone();
        let router = builder.add_routes(routes);
        self.serving.spawn(async move {
            router.serve_with_incoming_shutdown(accepted(listener), stop.cancelled()).await
        });
        Ok(())
    }

    /// Stops every process, then answering.
    pub async fn stop(mut self) {
        for service in ["ProcessManagerService", "imrpc.ProxyEngineService", "imrpc.InstanceService", ""] {
            self.health.set_service_status(service, tonic_health::ServingStatus::NotServing).await;
        }
        self.registry.close().await;
        self.stop.cancel();
        let ended = async { while self.serving.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_ANSWERS, ended).await.is_err() {
            tracing::warn!("some clients did not take their last answers");
        }
    }

    /// Only if something goes wrong.
    pub async fn failed(&mut self) -> String {
        match self.serving.join_next().await {
            Some(Ok(Err(error))) => innermost(&error),
            Some(Err(error)) => error.to_string(),
            _ => "a port is not served any more".to_owned(),
        }
    }
}

async fn bind(address: SocketAddr, offset: u16) -> Result<TcpListener, ServeError> {
    let mut address = address;
    address.set_port(address.port().saturating_add(offset));
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

/// One connection that fails is no reason to stop answering.
fn accepted(listener: TcpListener) -> impl futures::Stream<Item = io::Result<TcpStream>> {
    stream::unfold(listener, |listener| async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection ended at once");
                    }
                    return Some((Ok(stream), listener));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    })
}

/// The layers above it only say "transport error".
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
