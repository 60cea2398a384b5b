//! A `granary up` of its own for each test: started, talked to, stopped or killed, and never left behind.

// Every test file is a program of its own and uses another part of this.
#![allow(dead_code)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes this long; it only keeps a mistake from hanging the run.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Settings of the developer must not reach the program under test.
const FOREIGN: &[&str] =
    &["GRANARY_DATA_DIR", "GRANARY_LISTEN", "GRANARY_CONFIG", "GRANARY_LOG", "KUBECONFIG"];

/// The program, with an environment that does not depend on who runs the test.
pub fn granary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary"));
    for name in FOREIGN {
        command.env_remove(name);
    }
    command
}

/// `granary up` on a free port.
pub fn up(data_dir: &Path) -> Command {
    let mut command = granary();
    command.arg("--data-dir").arg(data_dir).args(["up", "--listen", "127.0.0.1:0"]);
    command
}

/// A running `granary up`; dropping it ends it.
pub struct Server {
    child: Child,
    data_dir: PathBuf,
    log: PathBuf,
    /// What it printed until it was ready.
    pub announcement: String,
}

impl Server {
    /// Starts on this data directory and waits until it is ready.
    pub fn start(data_dir: &Path) -> Self {
        Self::start_as(up(data_dir), data_dir)
    }

    pub fn start_as(command: Command, data_dir: &Path) -> Self {
        Self::try_start(command, data_dir)
            .unwrap_or_else(|failure| panic!("granary up did not start: {failure}"))
    }

    /// The error is what it wrote to standard error.
    pub fn try_start(mut command: Command, data_dir: &Path) -> Result<Self, String> {
        let log = tempfile::Builder::new().prefix("granary-log-").tempfile().unwrap();
        let (log_file, log) = log.keep().unwrap();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .expect("the program was built with this test");
        let mut announcement = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        while !announcement.contains("Ctrl-C stops it") {
            if out.read_line(&mut announcement).unwrap() == 0 {
                let status = child.wait().unwrap();
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                std::fs::remove_file(&log).ok();
                return Err(format!("{status}: {said}"));
            }
        }
        Ok(Self { child, data_dir: data_dir.into(), log, announcement })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The address clients use.
    pub fn url(&self) -> String {
        let config = Kubeconfig::read_from(self.data_dir.join("kubeconfig")).unwrap();
        config.clusters[0].cluster.as_ref().unwrap().server.clone().unwrap()
    }

    /// A client as a user has one: over TLS, with the kubeconfig of the data directory.
    pub async fn client(&self) -> kube::Client {
        rustls::crypto::ring::default_provider().install_default().ok();
        let file = Kubeconfig::read_from(self.data_dir.join("kubeconfig")).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(file, &options).await.unwrap();
        // A test wants to see each answer, not a second try.
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(5));
        kube::Client::try_from(config).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a child has a pid");
        kill_process(pid, signal).unwrap();
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.wait()
    }

    pub fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "granary does not end:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already in most tests.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!("--- log of granary up (pid {})\n{}", self.child.id(), self.log());
        }
        std::fs::remove_file(&self.log).ok();
    }
}

/// Numbers from a seed, so that a failure can be had again.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed that the environment asks for, or a fresh one; either way it is printed.
    pub fn from_env(variable: &str) -> Self {
        let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let asked = std::env::var(variable).ok().map(|text| text.parse().expect("a seed is a number"));
        let seed = asked.unwrap_or_else(|| clock().as_nanos() as u64);
        println!("{variable}={seed}");
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
