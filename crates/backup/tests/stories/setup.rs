//! What the stories have in common: names, requests, a repository over any store.

use std::sync::Arc;
use std::time::Duration;

use granary_backup::{
    BLOCK_SIZE_PARAMETER, BackupName, BackupRequest, Job, LockTimings, Repository, RestoreOnto,
    RestoreRequest, Snapshot, Store, VolumeName,
};

use crate::disk::{Content, Volume};

/// Small blocks, so that a small disk has many.
pub const BLOCK: u64 = 4096;

/// For stories on the real clock.
pub const QUICK: LockTimings = LockTimings {
    settle: Duration::from_millis(20),
    refresh: Duration::from_secs(60),
    expiry: Duration::from_secs(150),
    wait: Duration::from_secs(60),
};

pub fn volume() -> VolumeName {
    VolumeName::new("pvc-1").unwrap()
}

pub fn name(backup: &str) -> BackupName {
    BackupName::new(backup).unwrap()
}

pub fn repository(store: Arc<dyn Store>) -> Repository {
    Repository::new(store, "file:///backups".parse().unwrap())
}

/// A backup of the snapshot of the same name with a number behind.
pub fn request(backup: &str) -> BackupRequest {
    let number: i64 = backup.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let created_at = jiff::Timestamp::from_second(1_700_000_000 + number).unwrap().to_string();
    let snapshot = Snapshot { name: format!("snapshot-of-{backup}"), created_at };
    let mut request = BackupRequest::new(volume(), name(backup), snapshot);
    request.parameters.insert(BLOCK_SIZE_PARAMETER.into(), BLOCK.to_string());
    request
}

pub async fn restore_and_compare(repository: &Repository, backup: &str, content: &Content, size: u64) {
    let target = Volume::dirty(size);
    let request = RestoreRequest { volume: volume(), backup: name(backup), onto: RestoreOnto::Anything };
    repository.restore(&request, &target, &Job::default()).await.unwrap();
    target.assert_holds(content);
}
