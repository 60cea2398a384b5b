//! `volume.cfg`: what is known of a volume across its backups.
//! Must never drop a field that a newer writer has put there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::go;
use crate::compression::{Compression, UnknownCompression};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct VolumeConfig {
    pub name: String,
    #[serde(with = "go::number")]
    pub size: u64,
    #[serde(deserialize_with = "go::null_is_default")]
    pub labels: BTreeMap<String, String>,
    pub created_time: String,
    pub last_backup_name: String,
    /// When the snapshot of the last backup was taken, not the backup.
    pub last_backup_at: String,
    /// Distinct blocks in the store: exact after a deletion, counted upwards by backups.
    #[serde(with = "go::number")]
    pub block_count: u64,
    #[serde(with = "go::text")]
    pub backing_image_name: String,
    #[serde(with = "go::text")]
    pub backing_image_checksum: String,
    #[serde(with = "go::text")]
    pub compression_method: String,
    #[serde(with = "go::text")]
    pub storage_class_name: String,
    #[serde(with = "go::text")]
    pub data_engine: String,
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

impl VolumeConfig {
    pub fn compression(&self) -> Result<Compression, UnknownCompression> {
        self.compression_method.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::VolumeConfig;
    use crate::compression::Compression;

    /// As a current writer leaves it: numbers as strings, five strings quoted twice.
    const EXACT: &str = concat!(
        r#"{"Name":"pvc-1","Size":"10485760","Labels":{"app":"db"},"CreatedTime":"2026-01-02T03:04:05Z","#,
        r#""LastBackupName":"backup-1","LastBackupAt":"2026-01-02T03:00:00Z","BlockCount":"3","BackingImageName":"\"\"","#,
        r#""BackingImageChecksum":"\"\"","CompressionMethod":"\"lz4\"","StorageClassName":"\"fast\"","DataEngine":"\"v1\""}"#
    );

    #[test]
    fn the_exact_form_goes_round() {
        let config: VolumeConfig = serde_json::from_str(EXACT).unwrap();
        assert_eq!((config.size, config.block_count), (10 << 20, 3));
        assert_eq!(config.compression(), Ok(Compression::Lz4));
        assert_eq!((config.storage_class_name.as_str(), config.data_engine.as_str()), ("fast", "v1"));
        assert_eq!(serde_json::to_string(&config).unwrap(), EXACT);
    }

    #[test]
    fn plain_and_old_forms_are_read() {
        let plain = r#"{"Name":"pvc-1","Size":10485760,"Labels":null,"BlockCount":"","CompressionMethod":"none","Future":{"x":1}}"#;
        let config: VolumeConfig = serde_json::from_str(plain).unwrap();
        assert_eq!(config.size, 10 << 20);
        assert_eq!(config.compression(), Ok(Compression::None));
        let written = serde_json::to_value(&config).unwrap();
        assert_eq!(written["Future"]["x"], 1, "unknown fields stay");
        let old: VolumeConfig = serde_json::from_str(r#"{"Name":"v1","Size":"4096"}"#).unwrap();
        assert_eq!(old.compression(), Ok(Compression::Gzip), "before the method was recorded");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "[]", r#"{"Size":"-1"}"#, r#"{"Size":"many"}"#, r#"{"Size":[]}"#] {
            assert!(serde_json::from_str::<VolumeConfig>(text).is_err(), "{text}");
        }
    }
}
