//! Programs of others, as a test runs them: to their end, which must be a good one and come in time.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;

use crate::cluster::said;

/// Far more than any of them takes; only says that one hangs.
const LONGEST: Duration = Duration::from_secs(120);

/// All it printed. A program that is missing is told with the package that Debian has it in.
pub async fn run<I: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = I>) -> String {
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(LONGEST, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            panic!("{program} cannot run ({error}); scripts/need.sh {program} installs it")
        }
        Err(_) => panic!("{command:?} does not end"),
    };
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    said(&output)
}

/// Bytes that differ everywhere.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let words = (0..len / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.collect()
}
