//! What every controller has at hand: the API, one namespace of it, and the ways to instance managers.

use std::path::PathBuf;
use std::sync::Arc;

use granary_api::longhorn::{InstanceManager, InstanceManagerState, Setting};
use granary_instance::client::{ClientError, Connection, Pool, Target};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};

use crate::manager;
use crate::setting::{Values, catalogue};

pub struct Context {
    pub client: Client,
    pub namespace: String,
    pub managers: Managers,
    /// Held from the choice of a disk until the replica that uses it exists.
    pub placing: tokio::sync::Mutex<()>,
}

/// How instance managers are reached.
pub struct Managers {
    pool: Pool,
    /// Of their process service.
    port: u16,
    tls_dir: Option<PathBuf>,
}

/// An instance manager that answers.
pub struct Reached {
    pub name: String,
    pub connection: Arc<Connection>,
    /// Where it answers.
    pub ip: String,
    /// Where data reaches its processes, or why it does not.
    pub storage_ip: Result<String, String>,
}

/// Why an object could not be brought to where it should be. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Manager(#[from] ClientError),
    #[error("{0} is incomplete: {1}")]
    Incomplete(String, &'static str),
}

impl Managers {
    pub fn new(port: u16, tls_dir: Option<PathBuf>) -> Self {
        Self { pool: Pool::default(), port, tls_dir }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn tls_dir(&self) -> Option<&std::path::Path> {
        self.tls_dir.as_deref()
    }

    pub fn connection(&self, host: &str) -> Arc<Connection> {
        let tls_dir = self.tls_dir.clone();
        self.pool.get(&Target { host: host.to_owned(), port: self.port, tls_dir })
    }
}

impl Context {
    pub fn new(client: Client, namespace: &str, managers: Managers) -> Self {
        Self { client, namespace: namespace.to_owned(), managers, placing: tokio::sync::Mutex::default() }
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The instance manager of a node, when it is known to answer.
    pub async fn manager_of(&self, node: &str) -> Result<Option<Reached>, Failed> {
        let managers = self.api::<InstanceManager>().list(&ListParams::default()).await?;
        let running = managers.items.into_iter().find_map(|manager| {
            let status = manager.status.as_ref()?;
            let answers = status.current_state == Some(InstanceManagerState::Running);
            let is_there = manager.spec.node_id.as_deref() == Some(node);
            let ip = status.ip.clone().filter(|ip| answers && is_there && !ip.is_empty())?;
            Some((manager.name_any(), ip))
        });
        let Some((name, ip)) = running else { return Ok(None) };
        let Some(pod) = self.api::<Pod>().get_opt(&name).await? else { return Ok(None) };
        let network = self.values().await?.text(catalogue::STORAGE_NETWORK).to_owned();
        let storage_ip = manager::storage_ip(&network, &pod, &ip);
        Ok(Some(Reached { connection: self.managers.connection(&ip), name, ip, storage_ip }))
    }

    pub async fn values(&self) -> Result<Values, Failed> {
        Ok(Values::of(&self.api::<Setting>().list(&ListParams::default()).await?.items))
    }
}
