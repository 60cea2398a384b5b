//! From a target's URL and a request's credentials to its store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::{DirectoryStore, S3Store, Store, StoreError};
use crate::credentials::{Credentials, InvalidCredentials};
use crate::layout::VOLUMES;
use crate::url::{TargetKind, TargetUrl};

/// A running job outlasts an outage of minutes, but who has just given a wrong address wants to know.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0} has to be mounted first; say where")]
    NotMounted(TargetUrl),
    #[error("{path} is not a directory; create it, or mount what belongs there")]
    NoDirectory { path: String, source: std::io::Error },
    #[error(transparent)]
    Credentials(#[from] InvalidCredentials),
    #[error("the HTTP client for {target} cannot be made")]
    Client { target: TargetUrl, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{target} cannot be reached with these credentials")]
    Unreachable { target: TargetUrl, source: StoreError },
}

/// Opens a target and looks at it once, so that wrong credentials are noticed here and not in the middle of a job.
/// `mounted` is where the caller has mounted an `nfs://` target.
pub async fn open(
    target: &TargetUrl,
    credentials: &Credentials,
    mounted: Option<&Path>,
) -> Result<Arc<dyn Store>, OpenError> {
    let store: Arc<dyn Store> = match target.kind() {
        TargetKind::Directory(path) => Arc::new(DirectoryStore::open(path)?),
        TargetKind::Nfs { .. } => {
            let path = mounted.ok_or_else(|| OpenError::NotMounted(target.clone()))?;
            Arc::new(DirectoryStore::open(path)?)
        }
        TargetKind::S3 { .. } => Arc::new(S3Store::open(target, credentials)?),
    };
    let unreachable = |source| OpenError::Unreachable { target: target.clone(), source };
    match timeout(PATIENCE, store.list(VOLUMES)).await {
        Ok(Ok(_)) => Ok(store),
        Ok(Err(error)) => Err(unreachable(error)),
        Err(late) => Err(unreachable(StoreError::new("list", VOLUMES, late))),
    }
}
