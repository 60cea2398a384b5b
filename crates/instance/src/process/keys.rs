//! The keys of volumes: one file `VOLUME.key` each, which whoever manages the cluster puts on every machine that has
//! an engine or a replica of the volume. A key is made here only when that was asked for.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};

use crate::Refusal;

/// Twice what a key needs, in hexadecimal digits.
const KEY_BYTES: usize = 32;

/// The volume's key file.
pub fn path(directory: &Path, create: bool, volume: &str) -> Result<PathBuf, Refusal> {
    let path = directory.join(format!("{volume}.key"));
    if path.exists() {
        return Ok(path);
    }
    if !create {
        return Err(Refusal::Precondition(format!(
            "volume {volume} has no key here: place {}, mode 0600, the same on every machine with an engine or replica \
             of the volume (or start the instance manager with --create-keys where there is only one)",
            path.display()
        )));
    }
    match make(directory, &path) {
        Ok(()) => Ok(path),
        // Somebody else was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(path),
        Err(error) => Err(Refusal::Internal(format!("cannot make the key {}: {error}", path.display()))),
    }
}

/// It appears under its name when it is whole.
fn make(directory: &Path, path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut secret = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut secret).map_err(|_| io::Error::other("no random bytes to be had"))?;
    let text: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let fresh = directory.join(format!(".{}", uuid::Uuid::new_v4()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = writeln!(file, "{text}").and_then(|()| file.sync_all());
    let placed = written.and_then(|()| std::fs::hard_link(&fresh, path));
    std::fs::remove_file(&fresh)?;
    placed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use granary_block::wire::key::Key;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_when_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let keys = home.path().join("keys");
        let refused = path(&keys, false, "v1").unwrap_err().to_string();
        assert!(refused.contains("v1.key") && refused.contains("--create-keys"), "{refused}");
        let made = path(&keys, true, "v1").unwrap();
        let content = std::fs::read(&made).unwrap();
        Key::read(&made).unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(path(&keys, false, "v1").unwrap(), made);
        assert_eq!(path(&keys, true, "v1").unwrap(), made);
        assert_eq!(std::fs::read(&made).unwrap(), content);
        assert_ne!(std::fs::read(path(&keys, true, "v2").unwrap()).unwrap(), content);
        assert_eq!(std::fs::read_dir(&keys).unwrap().count(), 2, "nothing else is left behind");
    }
}
