//! An opened backup target: the way in to everything that can be done with it, one file per verb.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::credentials::Credentials;
use crate::error::Result;
use crate::lock::{Lease, LockKind, LockTimings};
use crate::names::{BackupName, VolumeName};
use crate::store::{self, OpenError, Store};
use crate::url::{BackupUrl, TargetUrl};

#[derive(Clone)]
pub struct Repository {
    pub(crate) store: Arc<dyn Store>,
    target: TargetUrl,
    timings: LockTimings,
}

impl Repository {
    /// Opens a target with one request's credentials. `mounted` is where an `nfs://` target is mounted.
    pub async fn open(
        target: &TargetUrl,
        credentials: &Credentials,
        mounted: Option<&Path>,
    ) -> Result<Self, OpenError> {
        Ok(Self::new(store::open(target, credentials, mounted).await?, target.clone()))
    }

    /// For a store of one's own; `target` is what backups' URLs begin with.
    pub fn new(store: Arc<dyn Store>, target: TargetUrl) -> Self {
        Self { store, target, timings: LockTimings::default() }
    }

    pub fn with_lock_timings(mut self, timings: LockTimings) -> Self {
        self.timings = timings;
        self
    }

    pub fn target(&self) -> &TargetUrl {
        &self.target
    }

    pub(crate) fn catalog(&self, volume: &VolumeName) -> Catalog {
        Catalog::new(&self.store, volume)
    }

    pub(crate) fn url(&self, volume: &VolumeName, backup: &BackupName) -> BackupUrl {
        BackupUrl { target: self.target.clone(), volume: volume.clone(), backup: Some(backup.clone()) }
    }

    pub(crate) async fn lock(
        &self,
        catalog: &Catalog,
        kind: LockKind,
        cancel: &CancellationToken,
    ) -> Result<Lease> {
        Lease::acquire(&self.store, &catalog.layout, kind, self.timings, cancel).await
    }
}
