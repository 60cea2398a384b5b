//! One data directory, one process: the lock, and who holds it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;

use anyhow::{Context, bail};

/// Held for as long as the process runs; the kernel lets go of it even after `kill -9`.
#[derive(Debug)]
pub struct DataDirLock(File);

impl DataDirLock {
    pub fn take(data_dir: &Path) -> anyhow::Result<Self> {
        let path = data_dir.join("lock");
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).with_context(
                || {
                    let dir = data_dir.display();
                    format!("data directory {dir} cannot be written to; choose another with --data-dir")
                },
            )?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(std::fs::TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).ok();
                let holder = holder.trim();
                let holder = if holder.is_empty() { "another process" } else { holder };
                bail!(
                    "{} is in use by {holder}; stop it, or choose another directory with --data-dir",
                    data_dir.display()
                );
            }
            Err(std::fs::TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("lock file {}", path.display()))
            }
        }
    }

    /// Tells others who we are.
    pub fn describe(&mut self, text: &str) -> std::io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        writeln!(self.0, "{text}")?;
        self.0.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::DataDirLock;

    #[test]
    fn the_second_one_is_told_who_was_first() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = DataDirLock::take(dir.path()).unwrap();
        first.describe("granary up (pid 42)").unwrap();
        let error = DataDirLock::take(dir.path()).unwrap_err().to_string();
        assert!(error.contains("granary up (pid 42)"), "{error}");
        drop(first);
        DataDirLock::take(dir.path()).unwrap();
    }
}
