//! Where things lie in a target: every object key is made here, from names that were checked before.
//! Must never change: the layout is shared with Longhorn's backup stores.
//!
//! ```text
//! backupstore/volumes/<c[0:2]>/<c[2:4]>/<volume>/   c = checksum of the volume's name
//!     volume.cfg
//!     backups/backup_<name>.cfg
//!     blocks/<h[0:2]>/<h[2:4]>/<h>.blk              h = checksum of the block's data
//!     locks/lock-<id>.lck
//!     granary-references.idx                        ours; derived from the backups
//! ```

use crate::checksum::Checksum;
use crate::names::{BackupName, VolumeName};

pub const VOLUMES: &str = "backupstore/volumes";

const BACKUP_PREFIX: &str = "backup_";
const BACKUP_SUFFIX: &str = ".cfg";
const BLOCK_SUFFIX: &str = ".blk";
const LOCK_SUFFIX: &str = ".lck";

/// The keys of one volume.
#[derive(Debug, Clone)]
pub struct Layout {
    volume: VolumeName,
    root: String,
}

impl Layout {
    pub fn new(volume: &VolumeName) -> Self {
        let checksum = Checksum::of(volume.as_str().as_bytes()).to_hex();
        let root = format!("{VOLUMES}/{}/{}/{volume}", &checksum[0..2], &checksum[2..4]);
        Self { volume: volume.clone(), root }
    }

    pub fn volume(&self) -> &VolumeName {
        &self.volume
    }

    /// Everything of the volume lies below.
    pub fn root(&self) -> &str {
        &self.root
    }

    pub fn volume_config(&self) -> String {
        format!("{}/volume.cfg", self.root)
    }

    pub fn references(&self) -> String {
        format!("{}/granary-references.idx", self.root)
    }

    pub fn backups(&self) -> String {
        format!("{}/backups", self.root)
    }

    pub fn backup_config(&self, backup: &BackupName) -> String {
        format!("{}/backups/{BACKUP_PREFIX}{backup}{BACKUP_SUFFIX}", self.root)
    }

    pub fn blocks(&self) -> String {
        format!("{}/blocks", self.root)
    }

    pub fn block(&self, checksum: Checksum) -> String {
        let hex = checksum.to_hex();
        format!("{}/blocks/{}/{}/{hex}{BLOCK_SUFFIX}", self.root, &hex[0..2], &hex[2..4])
    }

    pub fn locks(&self) -> String {
        format!("{}/locks", self.root)
    }

    pub fn lock(&self, name: &str) -> String {
        format!("{}/locks/{name}{LOCK_SUFFIX}", self.root)
    }
}

fn file_name(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

/// The backup whose configuration this is; `None` for what else may lie beside it.
pub fn backup_of(key: &str) -> Option<BackupName> {
    let name = file_name(key).strip_prefix(BACKUP_PREFIX)?.strip_suffix(BACKUP_SUFFIX)?;
    BackupName::new(name).ok()
}

pub fn block_of(key: &str) -> Option<Checksum> {
    file_name(key).strip_suffix(BLOCK_SUFFIX)?.parse().ok()
}

pub fn is_lock(key: &str) -> bool {
    key.ends_with(LOCK_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::{Layout, backup_of, block_of};
    use crate::checksum::Checksum;
    use crate::names::{BackupName, VolumeName};

    #[test]
    fn keys_are_those_of_existing_stores() {
        let layout = Layout::new(&VolumeName::new("abc").unwrap());
        let backup = BackupName::new("b-1").unwrap();
        let block = Checksum::of(b"abc");
        assert_eq!(layout.volume_config(), "backupstore/volumes/dd/af/abc/volume.cfg");
        assert_eq!(layout.backup_config(&backup), "backupstore/volumes/dd/af/abc/backups/backup_b-1.cfg");
        assert_eq!(layout.block(block), format!("backupstore/volumes/dd/af/abc/blocks/dd/af/{block}.blk"));
        assert_eq!(layout.lock("lock-1"), "backupstore/volumes/dd/af/abc/locks/lock-1.lck");
        assert_eq!(backup_of(&layout.backup_config(&backup)), Some(backup));
        assert_eq!(block_of(&layout.block(block)), Some(block));
    }

    #[test]
    fn strangers_are_not_taken_for_ours() {
        for key in
            ["backups/backup_.cfg", "backups/x.cfg", "backups/backup_b-1.cfg.tmp.17", "backups/backup_-x.cfg"]
        {
            assert_eq!(backup_of(key), None, "{key}");
        }
        assert_eq!(block_of("blocks/00/00/readme.blk"), None);
    }
}
