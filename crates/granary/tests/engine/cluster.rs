//! Replicas and engines as processes in one directory. None outlives its test.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use granary_frontend::nbd::NbdClient;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub const MIB: u64 = 1 << 20;
/// Far more than anything here takes; only says that something hangs.
const HANGS: Duration = Duration::from_secs(60);

pub fn on_one_thread<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

pub struct Process {
    child: Child,
    /// What it said when it was ready.
    pub line: String,
}

impl Process {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let process = Self { child, line };
        assert!(process.line.starts_with("ready "), "not ready: {:?}", process.line);
        process
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert!(status.success(), "SIGTERM ends it in order, and not with {status}");
    }

    pub async fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < HANGS, "the process does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Three replicas of one volume, and where its engines live.
pub struct Cluster {
    home: tempfile::TempDir,
    size: String,
    pub addresses: Vec<String>,
    pub replicas: Vec<Option<Process>>,
}

impl Cluster {
    pub fn new(size: u64) -> Self {
        let home = tempfile::tempdir().unwrap();
        for (name, secret) in [("key", "a secret of the volume"), ("wrong-key", "another secret altogether")]
        {
            std::fs::write(home.path().join(name), secret).unwrap();
            std::fs::set_permissions(home.path().join(name), PermissionsExt::from_mode(0o600)).unwrap();
        }
        let mut cluster = Self { home, size: size.to_string(), addresses: Vec::new(), replicas: Vec::new() };
        for number in 0..3 {
            let process = Process::start(cluster.replica_command(number, "127.0.0.1:0"));
            cluster.addresses.push(process.line.split(' ').nth(1).unwrap().to_owned());
            cluster.replicas.push(Some(process));
        }
        cluster
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn granary(&self, role: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_granary"));
        command.arg(role).env("GRANARY_LOG", "warn").env_remove("GRANARY_CONTROL");
        command
    }

    pub fn replica_command(&self, number: usize, listen: &str) -> Command {
        let mut command = self.granary("replica");
        command.arg("--dir").arg(self.path(&format!("replica-{number}")));
        command.arg("--key-file").arg(self.path("key")).args(["--listen", listen]);
        if !self.path(&format!("replica-{number}")).exists() {
            command.args(["--size", &self.size]);
        }
        command
    }

    pub fn kill_replica(&mut self, number: usize) {
        self.replicas[number].take().unwrap().kill();
    }

    pub fn start_replica(&mut self, number: usize) {
        let process = Process::start(self.replica_command(number, &self.addresses[number]));
        self.replicas[number] = Some(process);
    }

    pub fn url(&self, name: &str) -> String {
        format!("unix://{}", self.path(&format!("{name}.ctl")).display())
    }

    pub fn nbd(&self, name: &str) -> String {
        format!("nbd+unix://{}", self.path(&format!("{name}.nbd")).display())
    }

    /// An engine with all replicas, reached by the name of its sockets.
    pub fn engine_command(&self, name: &str, flags: &[&str]) -> Command {
        let mut command = self.granary("engine");
        command.args(["--volume", "vol", "--replica-timeout", "2"]);
        command.args(["--frontend", &self.nbd(name)]);
        for address in &self.addresses {
            command.args(["--replica", address]);
        }
        if !flags.contains(&"--key-file") {
            command.arg("--key-file").arg(self.path("key"));
        }
        if !flags.contains(&"--control") {
            command.args(["--control", &self.url(name)]);
        }
        command.args(flags);
        command
    }

    pub fn engine(&self, name: &str, flags: &[&str]) -> Process {
        Process::start(self.engine_command(name, flags))
    }

    pub fn try_ctl(&self, name: &str, arguments: &[&str]) -> Output {
        let mut command = self.granary("engine-ctl");
        command.args(["--control", &self.url(name)]).args(arguments).output().unwrap()
    }

    /// What it answered, as people see it.
    pub fn ctl_text(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.try_ctl(name, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn ctl(&self, name: &str, arguments: &[&str]) -> Value {
        let text = self.ctl_text(name, &[arguments, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap()
    }

    pub fn states(&self, name: &str) -> Vec<String> {
        let replicas = self.ctl(name, &["replica", "list"]);
        let replicas = replicas["replicas"].as_array().unwrap();
        replicas.iter().map(|replica| replica["state"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn until_states(&self, name: &str, wanted: &[&str]) {
        let began = Instant::now();
        while self.states(name) != wanted {
            assert!(began.elapsed() < HANGS, "{}", self.ctl_text(name, &["status"]));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn assert_equal(&self, name: &str) {
        let verdict = self.ctl(name, &["verify"]);
        assert_eq!(verdict["equal"], true, "{verdict}");
        assert_eq!(verdict["checksums"].as_array().unwrap().len(), 3, "{verdict}");
    }

    pub async fn client(&self, name: &str) -> NbdClient {
        NbdClient::connect(&self.nbd(name).parse().unwrap(), None).await.unwrap()
    }
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
