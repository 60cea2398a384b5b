//! What a manager asks of a running engine.

use std::collections::BTreeMap;

use super::model::{ClientError, Rebuild, Replica, Snapshot, Volume};

#[tonic::async_trait]
pub trait EngineClient: Send + Sync {
    /// The release that the engine is of.
    async fn version(&self) -> Result<String, ClientError>;
    async fn volume(&self) -> Result<Volume, ClientError>;
    async fn expand(&self, size: u64) -> Result<(), ClientError>;
    /// As after `granary engine --frontend`.
    async fn start_frontend(&self, frontend: &str) -> Result<(), ClientError>;
    async fn stop_frontend(&self) -> Result<(), ClientError>;

    /// Its name; one is chosen when `name` is empty.
    async fn create_snapshot(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, ClientError>;
    /// Without the volume itself; oldest first where that is told.
    async fn snapshots(&self) -> Result<Vec<Snapshot>, ClientError>;
    /// Only while nobody can reach the volume.
    async fn revert(&self, snapshot: &str) -> Result<(), ClientError>;
    async fn remove_snapshot(&self, snapshot: &str) -> Result<(), ClientError>;
    /// Begins to free the space of removed snapshots. One that is running already is fine.
    async fn purge(&self) -> Result<(), ClientError>;
    async fn is_purging(&self) -> Result<bool, ClientError>;

    async fn replicas(&self) -> Result<Vec<Replica>, ClientError>;
    /// Waits until it has everything.
    async fn add_replica(&self, address: &str) -> Result<(), ClientError>;
    async fn remove_replica(&self, address: &str) -> Result<(), ClientError>;
    async fn rebuilds(&self) -> Result<Vec<Rebuild>, ClientError>;
    /// In MiB per second; 0: no limit.
    async fn limit_rebuilds(&self, megabytes: u64) -> Result<(), ClientError>;
}
