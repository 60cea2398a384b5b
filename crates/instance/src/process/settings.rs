//! How one instance manager is set up. Read once, at the start.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Our own executable, which engines and replicas are run with.
    pub program: PathBuf,
    /// Directories whose programs may be run, too.
    pub binaries: Vec<PathBuf>,
    /// What is known of running processes, and where engines are controlled.
    pub state_dir: PathBuf,
    pub logs_dir: PathBuf,
    pub keys_dir: PathBuf,
    /// Make the key of a volume that has none.
    pub create_keys: bool,
    pub ports: RangeInclusive<u16>,
    /// How long a process may take until it serves.
    pub start_timeout: Duration,
    /// How long one may take to stop before it is killed.
    pub stop_timeout: Duration,
    /// How long the process that replaces another may take while the other still serves.
    pub replace_timeout: Duration,
    /// A log becomes about twice as large as this, and no larger.
    pub log_limit: u64,
}

impl Settings {
    /// Everything in one directory, and otherwise the defaults.
    pub fn new(program: PathBuf, home: &Path) -> Self {
        Self {
            program,
            binaries: Vec::new(),
            state_dir: home.join("state"),
            logs_dir: home.join("logs"),
            keys_dir: home.join("keys"),
            create_keys: false,
            ports: 10_000..=20_000,
            start_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(60),
            replace_timeout: Duration::from_secs(30),
            log_limit: 8 << 20,
        }
    }

    /// Short, because the path of a socket has 107 bytes at most.
    pub fn control_socket(&self, id: &str) -> PathBuf {
        self.state_dir.join(format!("{id}.ctl"))
    }

    pub fn log_file(&self, name: &str) -> PathBuf {
        self.logs_dir.join(format!("{name}.log"))
    }
}
