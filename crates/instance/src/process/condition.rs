//! Whether the kernel has stopped writing to the file system on a volume, as it does after errors.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{major, minor};

pub const FILESYSTEM_READ_ONLY: &str = "FilesystemReadOnly";

pub fn is_read_only(device: &str) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    number(device).is_some_and(|number| mounts.lines().any(|line| is_read_only_mount(line, &number)))
}

/// Where the file system on this device is, if it is mounted.
fn mount_point(device: &str) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let number = number(device)?;
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&number))?;
    Some(line.split(' ').nth(4)?.replace("\\040", " ").into())
}

/// Writes out what the kernel holds in memory of the file system on this device; without one there is nothing to do.
pub async fn sync_file_system(device: String) -> std::io::Result<()> {
    let synced = tokio::task::spawn_blocking(move || match mount_point(&device) {
        Some(directory) => Ok(rustix::fs::syncfs(std::fs::File::open(directory)?)?),
        None => Ok(()),
    });
    synced.await?
}

/// MAJOR:MINOR
fn number(device: &str) -> Option<String> {
    let device = std::fs::metadata(device).ok()?.rdev();
    Some(format!("{}:{}", major(device), minor(device)))
}

/// How file systems say that they have given up: ext4 since Linux 6.15 by the second, or by the third when it was told to.
const GIVEN_UP: [&str; 3] = ["ro", "emergency_ro", "shutdown"];

/// Mounted for writing, while the file system itself has become read-only: one that was mounted to be read is fine.
fn is_read_only_mount(line: &str, device: &str) -> bool {
    let Some((mount, file_system)) = line.split_once(" - ") else { return false };
    let mut mount = mount.split(' ');
    let has = |options: Option<&str>, wanted: &[&str]| {
        options.is_some_and(|all| all.split(',').any(|one| wanted.contains(&one)))
    };
    mount.nth(2) == Some(device)
        && has(mount.nth(2), &["rw"])
        && has(file_system.split(' ').nth(2), &GIVEN_UP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_that_gave_up_is_told_from_one_that_is_only_read() {
        let line = |mount: &str, file_system: &str| {
            format!(
                "36 35 7:3 / /mnt/a {mount},noatime shared:1 - ext4 /dev/loop3 {file_system},errors=remount-ro"
            )
        };
        assert!(is_read_only_mount(&line("rw", "ro"), "7:3"));
        assert!(!is_read_only_mount(&line("rw", "rw"), "7:3"));
        assert!(!is_read_only_mount(&line("ro", "ro"), "7:3"));
        assert!(!is_read_only_mount(&line("rw", "ro"), "7:30"));
        assert!(is_read_only_mount(&line("rw", "rw,emergency_ro"), "7:3"));
        assert!(!is_read_only_mount("", "7:3"));
    }
}
