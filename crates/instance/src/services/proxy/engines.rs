//! Who is meant by a request, and the one connection to each engine. An address alone is not trusted: it may be that
//! of an engine that has ended, whose port another one has by now.

use std::collections::HashMap;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use granary_block::wire::address::Address;
use granary_enginectl::Client;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::Refusal;
use crate::process::{Instance, Registry, Role};
use crate::wire::imrpc::{DataEngine, ProxyEngineRequest};

/// An engine on this machine answers at once, or hangs.
const CONNECT: Duration = Duration::from_secs(3);

pub struct Engines {
    registry: Registry,
    connections: Mutex<HashMap<String, Client>>,
}

/// An engine that a request is meant for.
pub struct Engine {
    pub volume: String,
    pub client: Client,
    /// As the request has it.
    pub address: String,
    pub run: String,
    pub instance: Arc<Instance>,
}

impl Engines {
    pub fn start(registry: &Registry) -> Arc<Self> {
        let engines = Arc::new(Self { registry: registry.clone(), connections: Mutex::default() });
        let (kept, mut changes) = (Arc::downgrade(&engines), registry.watch());
        tokio::spawn(async move {
            loop {
                let gone = match changes.recv().await {
                    Ok(view) => view.status.gone || view.deleted,
                    Err(RecvError::Lagged(_)) => true,
                    Err(RecvError::Closed) => return,
                };
                let Some(engines) = kept.upgrade() else { return };
                if gone {
                    engines.forget_the_gone();
                }
            }
        });
        engines
    }

    pub async fn find(
        &self,
        metadata: &MetadataMap,
        request: Option<ProxyEngineRequest>,
    ) -> Result<Engine, Status> {
        let request = request.ok_or_else(|| Refusal::Invalid("proxy_engine_request is missing".into()))?;
        if request.data_engine != DataEngine::V1 as i32 {
            return Err(Refusal::Unimplemented("only data engine v1 is run here".into()).into());
        }
        let address = request.address.clone();
        let instance = self.registry.engine_at(local_port(&address)?).ok_or_else(|| nobody(&address))?;
        let (name, plan) = (instance.spec().name, instance.plan());
        let Role::Engine { volume, control } = plan.role else { return Err(nobody(&address).into()) };
        let asked = [
            ("volume", &volume, request.volume_name.as_str()),
            ("volume", &volume, text(metadata, "volume-name")?),
            ("engine", &name, request.engine_name.as_str()),
            ("engine", &name, text(metadata, "instance-name")?),
        ];
        for (what, own, wanted) in asked {
            if !wanted.is_empty() && wanted != own {
                return Err(Refusal::Precondition(format!(
                    "{address} is {what} {own}, not {wanted}; nothing was changed: look up the address again"
                ))
                .into());
            }
        }
        let run = instance.run();
        let client = self.connection(&run, &control, &address).await?;
        Ok(Engine { volume, client, address, run, instance })
    }

    /// The one there is, or a new one. It finds its way again by itself when it was cut off.
    async fn connection(&self, run: &str, control: &Address, address: &str) -> Result<Client, Refusal> {
        if let Some(client) = self.connections.lock().get(run) {
            return Ok(client.clone());
        }
        let unreachable = |reason: &dyn std::fmt::Display| {
            Refusal::Unavailable(format!("the engine at {address} does not answer: {reason}"))
        };
        let connected = tokio::time::timeout(CONNECT, granary_enginectl::connect(control)).await;
        let client =
            connected.map_err(|_| unreachable(&"it took too long"))?.map_err(|error| unreachable(&error))?;
        Ok(self.connections.lock().entry(run.to_owned()).or_insert(client).clone())
    }

    fn forget_the_gone(&self) {
        let runs: Vec<_> =
            self.registry.list().into_iter().filter(|view| !view.status.gone).map(|view| view.run).collect();
        self.connections.lock().retain(|run, _| runs.contains(run));
    }
}

impl Engine {
    /// What went wrong on the way is told with the address; what the engine said is passed on.
    pub fn told(&self, status: &Status) -> Status {
        if std::error::Error::source(status).is_none() {
            return Status::new(status.code(), status.message());
        }
        let (volume, address) = (&self.volume, &self.address);
        Status::unavailable(format!(
            "the engine of volume {volume} at {address} was cut off: {}",
            status.message()
        ))
    }
}

fn nobody(address: &str) -> Refusal {
    Refusal::Unavailable(format!(
        "no engine of this instance manager is at {address}; look up the address again"
    ))
}

fn text<'a>(metadata: &'a MetadataMap, name: &str) -> Result<&'a str, Refusal> {
    let value = metadata.get(name).map(|value| value.to_str()).transpose();
    Ok(value.map_err(|_| Refusal::Invalid(format!("the metadata {name} is not text")))?.unwrap_or_default())
}

/// Engines of other machines are asked through their own instance managers.
fn local_port(address: &str) -> Result<u16, Refusal> {
    let parsed = address.parse::<Address>();
    let Ok(Address::Tcp(target)) = parsed else {
        return Err(Refusal::Invalid(format!("{address:?} is no engine's address: write HOST:PORT")));
    };
    let (host, port) = target.rsplit_once(':').unwrap_or_default();
    let is_local = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        // Only an address of this machine can be bound to.
        Ok(ip) => ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok(),
        Err(_) => host == "localhost",
    };
    if !is_local {
        return Err(nobody(address));
    }
    port.parse().map_err(|_| nobody(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_other_machines_are_not_ours() {
        assert_eq!(local_port("127.0.0.1:10000"), Ok(10000));
        assert_eq!(local_port("tcp://localhost:10000"), Ok(10000));
        for elsewhere in ["192.0.2.1:10000", "[2001:db8::1]:10000", "node-7:10000"] {
            let refused = local_port(elsewhere);
            assert!(
                matches!(&refused, Err(Refusal::Unavailable(why)) if why.contains(elsewhere)),
                "{refused:?}"
            );
        }
        for nonsense in ["", "10000", "unix:///etc/passwd", "127.0.0.1:99999"] {
            assert!(matches!(local_port(nonsense), Err(Refusal::Invalid(_))), "{nonsense}");
        }
    }
}
