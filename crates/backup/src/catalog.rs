//! One volume's documents in the store: loading, checking and saving them.
//! Must never hand out a document that contradicts the name it was found under.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::{BackupConfig, VolumeConfig};
use crate::error::{Error, Result};
use crate::layout::{self, Layout};
use crate::names::{BackupName, VolumeName};
use crate::store::{Entry, Store};

#[derive(Clone)]
pub struct Catalog {
    pub store: Arc<dyn Store>,
    pub layout: Layout,
}

impl Catalog {
    pub fn new(store: &Arc<dyn Store>, volume: &VolumeName) -> Self {
        Self { store: store.clone(), layout: Layout::new(volume) }
    }

    /// `None` if there is none.
    pub async fn find_volume(&self) -> Result<Option<VolumeConfig>> {
        let key = self.layout.volume_config();
        let Some(config) = self.read::<VolumeConfig>(&key).await? else { return Ok(None) };
        self.check_name(&key, &config.name, self.layout.volume().as_str())?;
        config.compression().map_err(|error| Error::Config { key, source: error.into() })?;
        Ok(Some(config))
    }

    pub async fn load_volume(&self) -> Result<VolumeConfig> {
        self.find_volume().await?.ok_or_else(|| Error::NoVolume(self.layout.volume().clone()))
    }

    pub async fn save_volume(&self, config: &VolumeConfig) -> Result<()> {
        let key = self.layout.volume_config();
        Ok(self.store.put(&key, encode(&key, config)?).await?)
    }

    /// The volume as it is, or as it is from now on.
    pub async fn load_or_add_volume(&self, config: VolumeConfig) -> Result<VolumeConfig> {
        if let Some(known) = self.find_volume().await? {
            return Ok(known);
        }
        let key = self.layout.volume_config();
        match self.store.put_if_absent(&key, encode(&key, &config)?).await? {
            true => Ok(config),
            // Somebody else's first backup was quicker.
            false => self.load_volume().await,
        }
    }

    pub async fn load_backup(&self, name: &BackupName) -> Result<BackupConfig> {
        let key = self.layout.backup_config(name);
        let invalid = |source| Error::Config { key: key.clone(), source };
        let missing = || Error::NoBackup { volume: self.layout.volume().clone(), backup: name.clone() };
        let mut config = self.read::<BackupConfig>(&key).await?.ok_or_else(missing)?;
        self.check_name(&key, &config.name, name.as_str())?;
        let block_size = config.block_size().map_err(|error| invalid(error.into()))?;
        config.compression().map_err(|error| invalid(error.into()))?;
        config.order_blocks(block_size).map_err(|error| invalid(error.into()))?;
        Ok(config)
    }

    pub async fn load_finished_backup(&self, name: &BackupName) -> Result<BackupConfig> {
        let config = self.load_backup(name).await?;
        if config.is_in_progress() {
            return Err(Error::InProgress { volume: self.layout.volume().clone(), backup: name.clone() });
        }
        Ok(config)
    }

    /// Makes a backup visible. `false` if there is one of that name.
    pub async fn add_backup(&self, name: &BackupName, config: &BackupConfig) -> Result<bool> {
        let key = self.layout.backup_config(name);
        let data = encode(&key, config)?;
        if self.store.put_if_absent(&key, data.clone()).await? {
            return Ok(true);
        }
        // A request whose answer got lost is sent again, and then finds what it has made itself.
        Ok(self.store.get(&key).await? == Some(data))
    }

    /// The configurations of all backups, also those that cannot be read.
    pub async fn list_backups(&self) -> Result<Vec<Entry>> {
        let listing = self.store.list(&self.layout.backups()).await?;
        Ok(listing.objects.into_iter().filter(|entry| layout::backup_of(&entry.key).is_some()).collect())
    }

    async fn read<T: DeserializeOwned + Send + 'static>(&self, key: &str) -> Result<Option<T>> {
        let Some(data) = self.store.get(key).await? else { return Ok(None) };
        // A large volume's list takes seconds to parse.
        let parsed = tokio::task::spawn_blocking(move || serde_json::from_slice(&data)).await?;
        parsed.map(Some).map_err(|error| Error::Config { key: key.to_owned(), source: error.into() })
    }

    fn check_name(&self, key: &str, inside: &str, outside: &str) -> Result<()> {
        if inside == outside {
            return Ok(());
        }
        let source = format!("it calls itself {inside:?}").into();
        Err(Error::Config { key: key.to_owned(), source })
    }
}

fn encode<T: Serialize>(key: &str, value: &T) -> Result<Bytes> {
    let encoded = serde_json::to_vec(value)
        .map_err(|error| Error::Config { key: key.to_owned(), source: error.into() });
    encoded.map(Bytes::from)
}
