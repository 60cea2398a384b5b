//! Replicas and engines as processes in one directory. None outlives its test.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use granary_frontend::nbd::NbdClient;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::lab::Lab;

pub const MIB: u64 = 1 << 20;
/// Far more than anything here takes; only says that something hangs.
pub const HANGS: Duration = Duration::from_secs(90);
/// How much of a log is told when a test fails.
const LAST_LINES: usize = 60;

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

    /// One that says nothing before it ends.
    pub fn start_silent(mut command: Command) -> Self {
        Self { child: command.stdout(Stdio::piped()).spawn().unwrap(), line: String::new() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The most memory it ever had.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
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
    // In this order they end: nobody loses the ground under his feet.
    pub replicas: Vec<Option<Process>>,
    pub lab: Option<Lab>,
    pub addresses: Vec<String>,
    /// Where control is, when it is not at the engine's own socket.
    pub control: Option<String>,
    flags: Vec<String>,
    home: tempfile::TempDir,
}

impl Cluster {
    pub fn new(size: u64) -> Self {
        Self::with_flags(3, &["--size", &size.to_string()])
    }

    /// So many replicas, with these flags for each.
    pub fn with_flags(replicas: usize, flags: &[&str]) -> Self {
        let mut cluster = Self::prepare(flags);
        for number in 0..replicas {
            let process = Process::start(cluster.replica_command(number, "127.0.0.1:0"));
            cluster.addresses.push(process.line.split(' ').nth(1).unwrap().to_owned());
            cluster.replicas.push(Some(process));
        }
        cluster
    }

    /// Each replica behind a cable of its own and on a disk of its own.
    pub fn in_lab(size: u64) -> Self {
        let mut cluster = Self::prepare(&["--size", &size.to_string()]);
        let lab = cluster.lab.insert(Lab::build(cluster.home.path(), 3));
        cluster.addresses = (0..3).map(|number| lab.listen(number)).collect();
        for number in 0..3 {
            let command = cluster.replica_command(number, &cluster.addresses[number]);
            cluster.replicas.push(Some(Process::start(command)));
        }
        cluster
    }

    fn prepare(flags: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        for (name, secret) in [("key", "a secret of the volume"), ("wrong-key", "another secret altogether")]
        {
            std::fs::write(home.path().join(name), secret).unwrap();
            std::fs::set_permissions(home.path().join(name), PermissionsExt::from_mode(0o600)).unwrap();
        }
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Self { replicas: Vec::new(), lab: None, addresses: Vec::new(), control: None, flags, home }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn lab(&self) -> &Lab {
        self.lab.as_ref().expect("the test made its cluster in a lab")
    }

    fn granary(&self, role: &str) -> Command {
        self.granary_by(Command::new(env!("CARGO_BIN_EXE_granary")), role)
    }

    fn granary_by(&self, mut command: Command, role: &str) -> Command {
        command.arg(role).env("GRANARY_LOG", "warn").env_remove("GRANARY_CONTROL");
        command
    }

    /// In a lab much goes wrong on purpose: what is said about that is kept for when something really does.
    fn logged(&self, mut command: Command, name: &str) -> Command {
        let log = std::fs::File::options().create(true).append(true).open(self.path(name)).unwrap();
        command.env("GRANARY_LOG", "info").stderr(log);
        command
    }

    pub fn directory(&self, number: usize) -> PathBuf {
        match &self.lab {
            Some(lab) => lab.directory(number),
            None => self.path(&format!("replica-{number}")),
        }
    }

    pub fn replica_command(&self, number: usize, listen: &str) -> Command {
        self.replica_with_key(number, listen, "key")
    }

    pub fn replica_with_key(&self, number: usize, listen: &str, key: &str) -> Command {
        let mut command = match &self.lab {
            Some(lab) => {
                let command = self.granary_by(lab.at(number, env!("CARGO_BIN_EXE_granary")), "replica");
                self.logged(command, &format!("replica-{number}.log"))
            }
            None => self.granary("replica"),
        };
        command.arg("--dir").arg(self.directory(number));
        command.arg("--key-file").arg(self.path(key)).args(["--listen", listen]);
        // The size is only for a new one: it may have grown since.
        let given =
            self.flags.chunks(2).filter(|flag| flag[0] != "--size" || !self.directory(number).exists());
        command.args(given.flatten());
        command
    }

    /// What a replica's files take on its disk.
    pub fn disk_usage(&self, number: usize) -> u64 {
        let files = std::fs::read_dir(self.directory(number)).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().blocks() * 512).sum()
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
        let mut command = match &self.lab {
            Some(lab) => {
                let command = self.granary_by(lab.at_hub(env!("CARGO_BIN_EXE_granary")), "engine");
                self.logged(command, &format!("engine-{name}.log"))
            }
            None => self.granary("engine"),
        };
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

    pub fn ctl_command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = self.granary("engine-ctl");
        let control = self.control.clone().unwrap_or_else(|| self.url(name));
        command.args(["--control", &control]).args(arguments);
        command
    }

    pub fn try_ctl(&self, name: &str, arguments: &[&str]) -> Output {
        self.ctl_command(name, arguments).output().unwrap()
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

/// What was kept back is told when the test fails.
impl Drop for Cluster {
    fn drop(&mut self) {
        if self.lab.is_none() || !std::thread::panicking() {
            return;
        }
        for entry in std::fs::read_dir(self.home.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let lines: Vec<_> = text.lines().collect();
                let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
                eprintln!("--- {}\n{}", path.display(), last.join("\n"));
            }
        }
    }
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
