//! How much memory the server's processes hold, read from /proc.
//!
//! Only reads (and resets the kernel's high-water mark); never touches the processes themselves.

use std::fs;

use anyhow::Context;

/// Resident memory of all processes together, now, in MiB.
pub fn resident_mib(pids: &[u32]) -> anyhow::Result<f64> {
    sum(pids, "VmRSS:")
}

/// The most that each process held since the last `reset_peak`, added up, in MiB.
pub fn peak_mib(pids: &[u32]) -> anyhow::Result<f64> {
    sum(pids, "VmHWM:")
}

/// Makes the kernel forget earlier peaks. Needs the same user as the process, or root.
pub fn reset_peak(pids: &[u32]) -> anyhow::Result<()> {
    for pid in pids {
        let path = format!("/proc/{pid}/clear_refs");
        fs::write(&path, "5").with_context(|| format!("write {path}"))?;
    }
    Ok(())
}

fn sum(pids: &[u32], field: &str) -> anyhow::Result<f64> {
    let mut total = 0.0;
    for pid in pids {
        let path = format!("/proc/{pid}/status");
        let status = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        total += kib(&status, field).with_context(|| format!("{path} has no {field}"))? / 1024.0;
    }
    Ok(total)
}

fn kib(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_field_of_the_status_file() {
        let status = "Name:\tx\nVmHWM:\t  4096 kB\nVmRSS:\t    2048 kB\n";
        assert_eq!(kib(status, "VmRSS:"), Some(2048.0));
        assert_eq!(kib(status, "VmHWM:"), Some(4096.0));
        assert_eq!(kib(status, "VmSwap:"), None);
    }

    #[test]
    fn we_ourselves_hold_some_memory() {
        assert!(resident_mib(&[std::process::id()]).unwrap() > 0.1);
    }
}
