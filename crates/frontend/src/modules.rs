//! Loading a driver of the kernel that is built and not there yet. Waits for it, so not for the thread of a volume.

use std::process::Command;

/// Tries to; whoever needs the driver sees whether it is there, and says so better.
pub(crate) fn load(driver: &str) {
    match Command::new("modprobe").args(["-q", driver]).output() {
        Ok(output) if output.status.success() => tracing::info!(driver, "loaded a driver of the kernel"),
        Ok(output) => tracing::debug!(driver, status = %output.status, "modprobe could not load a driver"),
        Err(error) => tracing::debug!(driver, %error, "there is no modprobe to load a driver with"),
    }
}
