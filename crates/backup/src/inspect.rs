//! Looking around in a target, without locks: what is listed is complete, and what vanishes meanwhile is left out.

use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;

use crate::config::{BlockSize, VolumeConfig};
use crate::error::{Error, Result};
use crate::info::{BackupInfo, ERROR_MESSAGE, VolumeInfo};
use crate::layout::{self, VOLUMES};
use crate::names::{BackupName, VolumeName};
use crate::repository::Repository;

/// How many listings or documents are asked for at a time.
const PARALLEL: usize = 16;

impl Repository {
    /// The names of all volumes that have backups here, or had.
    pub async fn list_volumes(&self) -> Result<Vec<VolumeName>> {
        let first = self.directories(vec![VOLUMES.to_owned()]).await?;
        let second = self.directories(first).await?;
        let volumes = self.directories(second).await?;
        let name = |path: &String| path.rsplit('/').next().and_then(|name| VolumeName::new(name).ok());
        let mut names: Vec<_> = volumes.iter().filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    async fn directories(&self, parents: Vec<String>) -> Result<Vec<String>> {
        let listings = parents.into_iter().map(|parent| async move {
            let children = self.store.list(&parent).await?.directories;
            Result::<_>::Ok(
                children.into_iter().map(move |child| format!("{parent}/{child}")).collect::<Vec<_>>(),
            )
        });
        let found: Vec<Vec<String>> =
            stream::iter(listings.collect::<Vec<_>>()).buffer_unordered(PARALLEL).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The names of a volume's backups, also of those that cannot be read.
    pub async fn list_backups(&self, volume: &VolumeName) -> Result<Vec<BackupName>> {
        let listed = self.catalog(volume).list_backups().await?;
        let mut names: Vec<_> = listed.iter().filter_map(|entry| layout::backup_of(&entry.key)).collect();
        names.sort();
        Ok(names)
    }

    /// A volume without its backups. One of which only parts are there is told with an error message.
    pub async fn inspect_volume(&self, volume: &VolumeName) -> Result<VolumeInfo> {
        let catalog = self.catalog(volume);
        match catalog.load_volume().await {
            Ok(config) => {
                let block_size = self.block_size(volume, &config).await?;
                Ok(VolumeInfo::new(config, block_size))
            }
            Err(error @ Error::Store(_)) => Err(error),
            Err(error @ Error::NoVolume(_)) if self.list_backups(volume).await?.is_empty() => Err(error),
            Err(error) => Ok(VolumeInfo {
                name: volume.to_string(),
                messages: [(ERROR_MESSAGE.to_owned(), describe(&error))].into(),
                ..VolumeInfo::default()
            }),
        }
    }

    /// A volume with all its backups, each with what could not be read as a message.
    pub async fn inspect_volume_with_backups(&self, volume: &VolumeName) -> Result<VolumeInfo> {
        let mut info = self.inspect_volume(volume).await?;
        let names = self.list_backups(volume).await?;
        let inspections = names.into_iter().map(|name| async move {
            let info = match self.inspect_backup(volume, &name).await {
                Err(Error::NoBackup { .. }) => None,
                Err(error @ Error::Store(_)) => return Err(error),
                Err(error) => Some(BackupInfo::unreadable(&self.url(volume, &name), describe(&error))),
                Ok(info) => Some(info),
            };
            Ok(info.map(|info| (name.to_string(), info)))
        });
        let found: Vec<_> =
            stream::iter(inspections.collect::<Vec<_>>()).buffer_unordered(PARALLEL).try_collect().await?;
        info.backups = found.into_iter().flatten().collect();
        Ok(info)
    }

    pub async fn inspect_backup(&self, volume: &VolumeName, backup: &BackupName) -> Result<BackupInfo> {
        let catalog = self.catalog(volume);
        let config = catalog.load_finished_backup(backup).await?;
        // The backup counts even if the volume's own document is lost.
        let volume_config = catalog
            .find_volume()
            .await?
            .unwrap_or_else(|| VolumeConfig { name: volume.to_string(), ..VolumeConfig::default() });
        Ok(BackupInfo::new(config, &volume_config, &self.url(volume, backup)))
    }

    /// When the document of a volume, or of one of its backups, was written last.
    pub async fn modified(&self, volume: &VolumeName, backup: Option<&BackupName>) -> Result<Timestamp> {
        let layout = layout::Layout::new(volume);
        let (key, missing) = match backup {
            None => (layout.volume_config(), Error::NoVolume(volume.clone())),
            Some(backup) => (
                layout.backup_config(backup),
                Error::NoBackup { volume: volume.clone(), backup: backup.clone() },
            ),
        };
        Ok(self.store.head(&key).await?.ok_or(missing)?.modified)
    }

    /// Block counts are in the volume's document, their size only in its backups'.
    async fn block_size(&self, volume: &VolumeName, config: &VolumeConfig) -> Result<BlockSize> {
        let Ok(last) = BackupName::new(config.last_backup_name.as_str()) else {
            return Ok(BlockSize::DEFAULT);
        };
        match self.catalog(volume).load_backup(&last).await {
            Ok(backup) => Ok(backup.block_size()?),
            Err(error @ Error::Store(_)) => Err(error),
            Err(_) => Ok(BlockSize::DEFAULT),
        }
    }
}

/// The whole chain, because only this text travels on.
fn describe(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
