//! Bringing the reference index in line with the backups that are listed.
//! Must never pretend to know: if one backup cannot be read, no block may be called unused.

use std::time::Duration;

use jiff::Timestamp;

use super::format::{CoveredBackup, References};
use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::layout;
use crate::names::BackupName;
use crate::store::Entry;

/// Foreign writers put an unfinished configuration there first. Older than this, its writer is gone.
const UNFINISHED_GRACE: Duration = Duration::from_hours(24);

/// Why unused blocks cannot be told from used ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsure {
    Unreadable(BackupName),
    InProgress(BackupName),
}

impl std::fmt::Display for Unsure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(name) => write!(out, "backup {name} cannot be read; delete it, then sweep"),
            Self::InProgress(name) => {
                write!(out, "backup {name} is still being made; sweep when it has ended")
            }
        }
    }
}

/// The references of all backups that could be read, and why there may be more.
#[derive(Debug, Default)]
pub struct Survey {
    pub references: References,
    pub unsure: Option<Unsure>,
}

/// Reads only what the stored index does not know yet. `leaving_out` is about to be deleted: that it cannot be
/// read is no reason to be unsure. To be called by whoever holds the volume alone.
pub async fn survey(
    catalog: &Catalog,
    backups: &[Entry],
    leaving_out: Option<&BackupName>,
    now: Timestamp,
) -> Result<Survey> {
    let stored = match catalog.store.get(&catalog.layout.references()).await? {
        Some(data) => References::decode(&data).unwrap_or_default(),
        None => References::default(),
    };
    let listed =
        |name: &BackupName| backups.iter().find(|entry| layout::backup_of(&entry.key).as_ref() == Some(name));
    let matches = |(name, backup): (&BackupName, &CoveredBackup)| {
        listed(name).is_some_and(|entry| entry.version == backup.version)
    };
    // What is counted but gone cannot be subtracted: its list is gone, too.
    let references = if stored.backups.iter().all(matches) { stored } else { References::default() };
    complete(catalog, references, backups, leaving_out, now).await
}

/// Reads every backup, whatever the stored index says.
pub async fn survey_all(catalog: &Catalog, backups: &[Entry], now: Timestamp) -> Result<Survey> {
    complete(catalog, References::default(), backups, None, now).await
}

async fn complete(
    catalog: &Catalog,
    references: References,
    backups: &[Entry],
    leaving_out: Option<&BackupName>,
    now: Timestamp,
) -> Result<Survey> {
    let mut survey = Survey { references, unsure: None };
    for entry in backups {
        let Some(name) = layout::backup_of(&entry.key) else { continue };
        if survey.references.backups.contains_key(&name) {
            continue;
        }
        let is_left_out = leaving_out == Some(&name);
        match catalog.load_backup(&name).await {
            Ok(backup) if backup.is_in_progress() => {
                let age = now.duration_since(entry.modified);
                if !is_left_out && age.unsigned_abs() < UNFINISHED_GRACE {
                    survey.unsure = Some(Unsure::InProgress(name));
                }
            }
            Ok(backup) => {
                let snapshot_created_at = backup.snapshot_created_at.clone();
                let covered = CoveredBackup { version: entry.version.clone(), snapshot_created_at };
                survey.references.add(name, covered, &backup.blocks);
            }
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => {
                tracing::warn!(backup = %name, volume = %catalog.layout.volume(), %error, "a backup cannot be read");
                if !is_left_out {
                    survey.unsure = Some(Unsure::Unreadable(name));
                }
            }
        }
    }
    Ok(survey)
}

/// Replaces the stored index as a whole.
pub async fn save(catalog: &Catalog, references: &References) -> Result<()> {
    let key = catalog.layout.references();
    let data =
        references.encode().map_err(|error| Error::Config { key: key.clone(), source: error.into() })?;
    Ok(catalog.store.put(&key, data).await?)
}
