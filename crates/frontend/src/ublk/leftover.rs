//! Devices that a process left behind when it was killed: found by a mark that the kernel keeps for us, so that they
//! are found without a file that could be lost or lie.

use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::abi::{Info, Parameters, State};
use super::{control, nodes};

/// How long the driver may take to notice that a process is gone. Kernels before 6.16 look only when a request has
/// waited for half a minute, if that process had taken all requests there can be.
const PATIENCE: Duration = Duration::from_secs(45);
const STEP: Duration = Duration::from_millis(10);

/// Tells the devices of one volume from all others. A path of the volume's own is hashed: eight bytes are all there is.
pub(super) fn mark_of(volume: &Path) -> u64 {
    let digest = ring::digest::digest(&ring::digest::SHA256, volume.as_os_str().as_encoded_bytes());
    let mut mark = [0; 8];
    mark.copy_from_slice(&digest.as_ref()[..8]);
    u64::from_be_bytes(mark)
}

/// What became of the device that another process served.
pub(super) enum Leftover {
    None,
    /// Its users wait; whoever opens its queue next serves them.
    Recovering(Info),
    /// Another process serves it, and goes on doing so.
    Served(Info),
}

/// Looks for a device with this mark and begins to recover it; one that cannot be, or differs from what is wanted now,
/// is removed.
pub(super) fn take(mark: u64, wanted: &Parameters) -> io::Result<Leftover> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Some(info) = find(mark)? else { return Ok(Leftover::None) };
        if info.state == State::Dead || !is_alike(&control::parameters(info.device)?, wanted) {
            tracing::info!(device = info.device, "removing a ublk device of a process that died");
            remove(info.device)?;
            continue;
        }
        match control::start_recovery(info.device) {
            Ok(()) => return Ok(Leftover::Recovering(info)),
            Err(error) if !is(&error, Errno::BUSY) => return Err(error),
            Err(_) if Instant::now() < deadline => sleep(STEP),
            Err(_) => return Ok(Leftover::Served(info)),
        }
    }
}

/// Begins to recover the device that the process before this one handed over; it ends about now.
pub(super) fn take_over(device: u32) -> io::Result<Info> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match control::start_recovery(device) {
            Ok(()) => return control::info(device),
            Err(error) if is(&error, Errno::BUSY) && Instant::now() < deadline => sleep(STEP),
            Err(error) => return Err(error),
        }
    }
}

/// Removes what was left of a volume that is now reached in another way.
pub(super) fn clear(mark: u64) -> io::Result<()> {
    while let Some(info) = find(mark)? {
        tracing::info!(device = info.device, "removing a ublk device of a process that died");
        remove(info.device)?;
    }
    Ok(())
}

pub(super) fn remove(device: u32) -> io::Result<()> {
    match control::delete(device) {
        // Somebody was faster.
        Err(error) if is(&error, Errno::NODEV) => Ok(()),
        result => result,
    }
}

fn find(mark: u64) -> io::Result<Option<Info>> {
    for device in nodes::devices()? {
        match control::info(device) {
            Ok(info) if info.mark == mark => return Ok(Some(info)),
            Err(error) if !is(&error, Errno::NODEV) => return Err(error),
            _ => {}
        }
    }
    Ok(None)
}

/// Whether users of the one would find what they expect in the other. A volume may have grown meanwhile.
fn is_alike(left: &Parameters, wanted: &Parameters) -> bool {
    let sectors = wanted.sectors;
    left.sectors <= sectors && Parameters { sectors, ..*left } == *wanted
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_recovered_unless_its_users_would_be_surprised() {
        let wanted = Parameters {
            attributes: 12,
            logical_block: 512,
            physical_block: 4096,
            max_io: 1 << 20,
            sectors: 100,
            max_zero_sectors: 1 << 20,
        };
        for (left, alike) in [
            (wanted, true),
            (Parameters { sectors: 50, ..wanted }, true),
            (Parameters { sectors: 200, ..wanted }, false),
            (Parameters { attributes: 13, ..wanted }, false),
            (Parameters { logical_block: 4096, ..wanted }, false),
        ] {
            assert_eq!(is_alike(&left, &wanted), alike, "{left:?}");
        }
    }

    #[test]
    fn volumes_have_marks_of_their_own() {
        assert_eq!(mark_of(Path::new("/run/a")), mark_of(Path::new("/run/a")));
        assert_ne!(mark_of(Path::new("/run/a")), mark_of(Path::new("/run/b")));
    }
}
