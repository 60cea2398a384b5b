//! `backup_<name>.cfg`: one backup with the list of all its blocks, so that it restores without any other backup.
//! Must never be written before every block of the list is in the store: its appearance is what makes a backup.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BlockSize, InvalidBlockSize, go};
use crate::checksum::Checksum;
use crate::compression::{Compression, UnknownCompression};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BlockMapping {
    pub offset: u64,
    pub block_checksum: Checksum,
}

/// The field is always there for readers of single-file backups; ours are never that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SingleFile {
    pub file_path: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct BackupConfig {
    pub name: String,
    pub volume_name: String,
    pub snapshot_name: String,
    pub snapshot_created_at: String,
    /// Empty while a foreign writer is still at work on it.
    pub created_time: String,
    #[serde(with = "go::number")]
    pub size: u64,
    #[serde(deserialize_with = "go::null_is_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "go::null_is_default")]
    pub parameters: BTreeMap<String, String>,
    pub is_incremental: bool,
    pub compression_method: String,
    #[serde(with = "go::number")]
    pub newly_uploaded_data_size: u64,
    #[serde(with = "go::number")]
    pub re_uploaded_data_size: u64,
    /// A writer's private state; null in what is finished.
    pub processing_blocks: Option<Value>,
    #[serde(deserialize_with = "go::null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockMapping>,
    #[serde(deserialize_with = "go::null_is_default")]
    pub single_file: SingleFile,
}

/// Why a block list cannot be worked with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBlocks {
    #[error("offset {offset} is not a multiple of the block size {block_size}")]
    Unaligned { offset: u64, block_size: BlockSize },
    #[error("offset {0} is listed twice")]
    Repeated(u64),
    #[error("offset {0} is out of range")]
    OutOfRange(u64),
}

impl BackupConfig {
    pub fn is_in_progress(&self) -> bool {
        self.created_time.is_empty()
    }

    pub fn compression(&self) -> Result<Compression, UnknownCompression> {
        self.compression_method.parse()
    }

    pub fn block_size(&self) -> Result<BlockSize, InvalidBlockSize> {
        BlockSize::from_parameters(&self.parameters)
    }

    /// Brings the list into order and checks that it describes a volume.
    pub fn order_blocks(&mut self, block_size: BlockSize) -> Result<(), InvalidBlocks> {
        if !self.blocks.is_sorted_by_key(|block| block.offset) {
            self.blocks.sort_by_key(|block| block.offset);
        }
        for block in &self.blocks {
            if !block.offset.is_multiple_of(block_size.bytes()) {
                return Err(InvalidBlocks::Unaligned { offset: block.offset, block_size });
            }
            if block.offset > i64::MAX as u64 - block_size.bytes() {
                return Err(InvalidBlocks::OutOfRange(block.offset));
            }
        }
        match self.blocks.windows(2).find(|pair| pair[0].offset == pair[1].offset) {
            Some(pair) => Err(InvalidBlocks::Repeated(pair[0].offset)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BackupConfig, InvalidBlocks};
    use crate::checksum::Checksum;
    use crate::compression::Compression;
    use crate::config::BlockSize;

    fn exact() -> String {
        let block = Checksum::of(b"abc");
        format!(
            concat!(
                r#"{{"Name":"backup-1","VolumeName":"pvc-1","SnapshotName":"snap-1","SnapshotCreatedAt":"2026-01-02T03:00:00Z","#,
                r#""CreatedTime":"2026-01-02T03:04:05Z","Size":"2097152","Labels":{{}},"Parameters":{{}},"IsIncremental":false,"#,
                r#""CompressionMethod":"lz4","NewlyUploadedDataSize":"17","ReUploadedDataSize":"0","ProcessingBlocks":null,"#,
                r#""Blocks":[{{"Offset":2097152,"BlockChecksum":"{block}"}}],"SingleFile":{{"FilePath":""}}}}"#
            ),
            block = block
        )
    }

    #[test]
    fn the_exact_form_goes_round() {
        let mut config: BackupConfig = serde_json::from_str(&exact()).unwrap();
        assert_eq!(config.blocks[0].block_checksum, Checksum::of(b"abc"));
        assert_eq!(config.compression(), Ok(Compression::Lz4));
        assert_eq!(config.order_blocks(BlockSize::DEFAULT), Ok(()));
        assert_eq!(serde_json::to_string(&config).unwrap(), exact());
    }

    #[test]
    fn what_a_writer_leaves_while_at_work_is_told_from_the_finished() {
        let text = r#"{"Name":"b1","VolumeName":"v1","CreatedTime":"","Size":"0","Labels":null,"Parameters":null,"ProcessingBlocks":{},"SingleFile":{"FilePath":""}}"#;
        let config: BackupConfig = serde_json::from_str(text).unwrap();
        assert!(config.is_in_progress());
        assert_eq!(config.compression(), Ok(Compression::Gzip));
        assert!(config.blocks.is_empty());
    }

    #[test]
    fn hostile_lists_are_refused() {
        let with = |from: &str, to: &str| exact().replace(from, to);
        for text in [
            with("ddaf", "../."),
            with(r#""Offset":2097152"#, r#""Offset":-1"#),
            with(r#""Size":"2"#, r#""Size":"-2"#),
        ] {
            assert!(serde_json::from_str::<BackupConfig>(&text).is_err(), "{text}");
        }
        let ordered = |offsets: &[u64]| {
            let mut config: BackupConfig = serde_json::from_str(&exact()).unwrap();
            let block = config.blocks[0];
            config.blocks =
                offsets.iter().map(|offset| super::BlockMapping { offset: *offset, ..block }).collect();
            config
                .order_blocks(BlockSize::DEFAULT)
                .map(|()| config.blocks.iter().map(|block| block.offset).collect::<Vec<_>>())
        };
        assert_eq!(ordered(&[4 << 20, 0]), Ok(vec![0, 4 << 20]));
        assert_eq!(ordered(&[0, 4 << 20, 0]), Err(InvalidBlocks::Repeated(0)));
        assert!(matches!(ordered(&[4096]), Err(InvalidBlocks::Unaligned { .. })));
        assert!(matches!(ordered(&[u64::MAX - (2 << 20) + 1]), Err(InvalidBlocks::OutOfRange(_))));
    }
}
