//! The connection to one instance manager: made once, looked after, and made anew when it is dead.

use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::model::ClientError;
use crate::server::{INSTANCE_OFFSET, PROXY_OFFSET};
use crate::tls;
use crate::version;
use crate::wire::imrpc::instance_service_client::InstanceServiceClient;
use crate::wire::imrpc::proxy_engine_service_client::ProxyEngineServiceClient;
use crate::wire::process::VersionResponse;
use crate::wire::process::process_manager_service_client::ProcessManagerServiceClient;

/// A machine that is there accepts at once.
const CONNECT: Duration = Duration::from_secs(5);
/// Servers allow no more than this.
const STILL_THERE: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(5);
/// The newest and the oldest API of instance managers that this client speaks.
const SPOKEN: std::ops::RangeInclusive<i64> = 1..=version::API;

/// Which instance manager, and by which certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub host: String,
    /// Of the process service.
    pub port: u16,
    pub tls_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub api: i64,
    pub api_min: i64,
    /// 0: it has no proxy.
    pub proxy: i64,
    pub proxy_min: i64,
}

/// One HTTP/2 connection for each of the three services, made when it is first needed.
#[derive(Clone)]
pub struct Channels {
    processes: Channel,
    proxy: Channel,
    instances: Channel,
}

pub struct Connection {
    target: Target,
    channels: Mutex<Option<Channels>>,
}

impl Connection {
    pub fn new(target: Target) -> Self {
        Self { target, channels: Mutex::default() }
    }

    pub fn processes(&self) -> Result<ProcessManagerServiceClient<Channel>, ClientError> {
        Ok(ProcessManagerServiceClient::new(self.channels()?.processes))
    }

    pub fn instances(&self) -> Result<InstanceServiceClient<Channel>, ClientError> {
        Ok(InstanceServiceClient::new(self.channels()?.instances))
    }

    pub fn proxy(&self) -> Result<ProxyEngineServiceClient<Channel>, ClientError> {
        Ok(ProxyEngineServiceClient::new(self.channels()?.proxy))
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether the instance manager answers and serves. A connection that is dead is made anew.
    pub async fn check(&self) -> Result<(), ClientError> {
        if self.is_serving().await? {
            return Ok(());
        }
        *self.channels.lock() = None;
        match self.is_serving().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.unavailable("it does not answer")),
            Err(error) => Err(error),
        }
    }

    /// False: nobody answers by this connection.
    async fn is_serving(&self) -> Result<bool, ClientError> {
        let mut health = HealthClient::new(self.channels()?.processes);
        let asked = health.check(HealthCheckRequest { service: "ProcessManagerService".to_owned() });
        match tokio::time::timeout(ANSWER, asked).await {
            Ok(Ok(answer)) if answer.get_ref().status == tonic_health::ServingStatus::Serving as i32 => {
                Ok(true)
            }
            Ok(Ok(_)) => Err(self.unavailable("it is stopping")),
            Ok(Err(_)) | Err(_) => Ok(false),
        }
    }

    /// Refuses to talk to an instance manager whose words mean something else.
    pub async fn versions(&self) -> Result<Versions, ClientError> {
        let reply = self.processes()?.version_get(()).await.map_err(|status| self.told(&status))?;
        let reply: VersionResponse = reply.into_inner();
        let versions = Versions {
            api: reply.instance_manager_api_version,
            api_min: reply.instance_manager_api_min_version,
            proxy: reply.instance_manager_proxy_api_version,
            proxy_min: reply.instance_manager_proxy_api_min_version,
        };
        check(versions)
            .map_err(|why| ClientError::Refused(format!("the instance manager at {} {why}", self.place())))?;
        Ok(versions)
    }

    pub fn told(&self, status: &Status) -> ClientError {
        let message = status.message().to_owned();
        // What somebody answered has no source; what became of the way there has.
        if std::error::Error::source(status).is_some() {
            return self.unavailable(&message);
        }
        match status.code() {
            tonic::Code::NotFound => ClientError::NotFound(message),
            tonic::Code::AlreadyExists => ClientError::Exists(message),
            tonic::Code::Unavailable => ClientError::Unavailable(message),
            _ => ClientError::Refused(message),
        }
    }

    fn place(&self) -> String {
        format!("{}:{}", self.target.host, self.target.port)
    }

    fn unavailable(&self, why: &str) -> ClientError {
        ClientError::Unavailable(format!("the instance manager at {} cannot be reached: {why}", self.place()))
    }

    fn channels(&self) -> Result<Channels, ClientError> {
        let mut channels = self.channels.lock();
        if let Some(channels) = &*channels {
            return Ok(channels.clone());
        }
        let fresh = Channels {
            processes: self.channel(0)?,
            proxy: self.channel(PROXY_OFFSET)?,
            instances: self.channel(INSTANCE_OFFSET)?,
        };
        Ok(channels.insert(fresh).clone())
    }

    fn channel(&self, offset: u16) -> Result<Channel, ClientError> {
        let refused = |why: &dyn std::fmt::Display| ClientError::Refused(format!("{}: {why}", self.place()));
        let host = &self.target.host;
        let host =
            if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.clone() };
        let scheme = if self.target.tls_dir.is_some() { "https" } else { "http" };
        let port = self.target.port.saturating_add(offset);
        let endpoint =
            Endpoint::from_shared(format!("{scheme}://{host}:{port}")).map_err(|error| refused(&error))?;
        let mut endpoint = endpoint
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(STILL_THERE)
            .keep_alive_timeout(ANSWER)
            .keep_alive_while_idle(true);
        if let Some(directory) = &self.target.tls_dir {
            let config = tls::client(directory).map_err(|error| refused(&error))?;
            endpoint = endpoint.tls_config(config).map_err(|error| refused(&error))?;
        }
        Ok(endpoint.connect_lazy())
    }
}

fn check(versions: Versions) -> Result<(), String> {
    if versions.api < *SPOKEN.start() {
        return Err(format!(
            "speaks API {}, which is older than {}: update it",
            versions.api,
            SPOKEN.start()
        ));
    }
    if versions.api_min > *SPOKEN.end() {
        return Err(format!(
            "speaks API {} and newer, not {}: update this program",
            versions.api_min,
            SPOKEN.end()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_that_overlap_are_spoken() {
        let versions = |api, api_min| Versions { api, api_min, proxy: 0, proxy_min: 0 };
        assert!(check(versions(1, 1)).is_ok() && check(versions(9, 6)).is_ok());
        assert!(check(versions(0, 0)).unwrap_err().contains("older"));
        assert!(check(versions(9, 7)).unwrap_err().contains("newer"));
    }
}
