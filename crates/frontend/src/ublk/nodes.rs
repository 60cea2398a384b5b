//! A device's names: its nodes in /dev, and what sysfs tells and takes.
//! The kernel makes the nodes wherever /dev is its own; in a container we make them.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat, stat};
use rustix::io::Errno;

use super::abi::SECTOR;

/// What its users open.
pub(super) fn block_node(device: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkb{device}"))
}

/// What we open.
pub(super) fn queue_node(device: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkc{device}"))
}

/// The numbers of all devices there are.
pub(super) fn devices() -> io::Result<Vec<u32>> {
    let entries = match std::fs::read_dir("/sys/class/ublk-char") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut devices = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("ublkc"));
        devices.extend(number.and_then(|number| number.parse::<u32>().ok()));
    }
    Ok(devices)
}

/// Whether there is a driver to control; loads it if need be.
pub(super) fn ensure_control() -> bool {
    let control = Path::new(super::abi::CONTROL);
    let there = || {
        control.exists() || ensure(control, "/sys/class/misc/ublk-control", FileType::CharacterDevice).is_ok()
    };
    there() || {
        crate::modules::load("ublk_drv");
        there()
    }
}

pub(super) fn ensure_queue(device: u32) -> io::Result<()> {
    let class = format!("/sys/class/ublk-char/ublkc{device}");
    ensure(&queue_node(device), &class, FileType::CharacterDevice)
}

/// Makes a device that was started ready for its users.
pub(super) fn publish(device: u32, depth: u16) -> io::Result<()> {
    if let Err(error) = leave_one_free(device, depth) {
        tracing::debug!(device, %error, "users of a ublk device can take all its tags");
    }
    ensure(&block_node(device), &format!("/sys/block/ublkb{device}"), FileType::BlockDevice)
}

/// The size of the block device as its users see it, in bytes.
pub(super) fn size(device: u32) -> io::Result<u64> {
    let sectors = std::fs::read_to_string(format!("/sys/block/ublkb{device}/size"))?;
    sectors.trim().parse::<u64>().map(|sectors| sectors * SECTOR).map_err(io::Error::other)
}

/// Keeps one tag of the queue free. When a process dies that holds all of them, kernels before 6.16 notice only after
/// half a minute. The scheduler has nothing to do in any case: the order on the way to replicas is not that of a disk.
fn leave_one_free(device: u32, depth: u16) -> io::Result<()> {
    let queue = PathBuf::from(format!("/sys/block/ublkb{device}/queue"));
    std::fs::write(queue.join("scheduler"), "none")?;
    std::fs::write(queue.join("nr_requests"), (depth - 1).to_string())
}

/// A node left over from another device would lead to somebody else's data, so its number is compared.
fn ensure(node: &Path, sysfs: &str, kind: FileType) -> io::Result<()> {
    let numbers = std::fs::read_to_string(Path::new(sysfs).join("dev"))?;
    let (major, minor) = numbers.trim().split_once(':').ok_or(io::ErrorKind::InvalidData)?;
    let number = |text: &str| text.parse::<u32>().map_err(io::Error::other);
    let wanted = makedev(number(major)?, number(minor)?);
    match stat(node) {
        Ok(found) if found.st_rdev == wanted => return Ok(()),
        Ok(_) => std::fs::remove_file(node)?,
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(mknodat(CWD, node, kind, Mode::RUSR | Mode::WUSR, wanted)?)
}
