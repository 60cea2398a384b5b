//! One instance manager as a process, and what it is asked to run. Nothing of it outlives its test.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use granary_frontend::nbd::NbdClient;
use granary_instance::client::{Connection, EngineAt, Pool, Target};
use granary_instance::wire::imrpc::ProxyEngineRequest;
use granary_instance::wire::process::{
    ProcessCreateRequest, ProcessDeleteRequest, ProcessGetRequest, ProcessListRequest, ProcessResponse,
    ProcessSpec,
};
use rustix::process::{Pid, Signal, kill_process};
use tonic::Status;

pub const GRANARY: &str = env!("CARGO_BIN_EXE_granary");
pub const MIB: u64 = 1 << 20;
/// Far more than anything here takes; only says that something hangs.
pub const HANGS: Duration = Duration::from_secs(90);
/// Each instance manager gets as many ports, its own three included.
const BLOCK: u16 = 64;

pub fn on_one_thread<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

pub struct Manager {
    child: Child,
    /// What it said when it was ready.
    pub line: String,
    port: u16,
    flags: Vec<String>,
    pool: Pool,
    home: tempfile::TempDir,
}

impl Manager {
    pub fn new() -> Self {
        Self::with_flags(&["--create-keys"])
    }

    pub fn with_flags(flags: &[&str]) -> Self {
        Self::in_home(tempfile::tempdir().unwrap(), flags)
    }

    pub fn in_home(home: tempfile::TempDir, flags: &[&str]) -> Self {
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let port = free_ports();
        let (child, line) = start(home.path(), port, &flags);
        assert!(line.starts_with("ready "), "not ready: {line:?}");
        Self { child, line, port, flags, pool: Pool::default(), home }
    }

    /// The first of the ports that its processes get.
    pub fn first_port(&self) -> u16 {
        self.port + 4
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn target(&self) -> Target {
        let tls = self.path("tls");
        Target { host: "127.0.0.1".into(), port: self.port, tls_dir: tls.exists().then_some(tls) }
    }

    pub fn connection(&self) -> Arc<Connection> {
        self.pool.get(&self.target())
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Another one in its place, with the same directories and ports.
    pub fn restart(&mut self) {
        (self.child, self.line) = start(self.home.path(), self.port, &self.flags);
        assert!(self.line.starts_with("ready "), "not ready: {:?}", self.line);
    }

    pub fn terminate(&mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "it stops in order, and not with {status}");
                return;
            }
            assert!(began.elapsed() < HANGS, "it does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub async fn create(&self, spec: ProcessSpec) -> Result<ProcessResponse, Status> {
        let request = ProcessCreateRequest { spec: Some(spec) };
        Ok(self.connection().processes().unwrap().process_create(request).await?.into_inner())
    }

    pub async fn get(&self, name: &str) -> Result<ProcessResponse, Status> {
        let request = ProcessGetRequest { name: name.into() };
        Ok(self.connection().processes().unwrap().process_get(request).await?.into_inner())
    }

    pub async fn delete(&self, name: &str, uuid: &str) -> Result<ProcessResponse, Status> {
        let request = ProcessDeleteRequest { name: name.into(), uuid: uuid.into() };
        Ok(self.connection().processes().unwrap().process_delete(request).await?.into_inner())
    }

    pub async fn names(&self) -> Vec<String> {
        let listed =
            self.connection().processes().unwrap().process_list(ProcessListRequest {}).await.unwrap();
        listed.into_inner().processes.into_keys().collect()
    }

    pub async fn until(&self, name: &str, state: &str) -> ProcessResponse {
        let began = Instant::now();
        loop {
            let response = self.get(name).await.unwrap();
            if response.status.as_ref().unwrap().state == state {
                return response;
            }
            assert!(began.elapsed() < HANGS, "{name} does not become {state}: {response:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn until_gone(&self, name: &str) {
        let began = Instant::now();
        while self.get(name).await.is_ok() {
            assert!(began.elapsed() < HANGS, "{name} is not gone: {:?}", self.get(name).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Replicas `VOLUME-r0…` and their addresses.
    pub async fn replicas(&self, volume: &str, count: usize) -> Vec<String> {
        let mut addresses = Vec::new();
        for number in 0..count {
            addresses.push(self.replica(volume, number).await);
        }
        addresses
    }

    pub async fn replica(&self, volume: &str, number: usize) -> String {
        let name = format!("{volume}-r{number}");
        let dir = self.path(&name).display().to_string();
        let args = ["replica", "--volume", volume, "--dir", &dir, "--size", "64MiB"];
        let response = self.create(spec(&name, &args, &["--listen,127.0.0.1:"])).await.unwrap();
        self.until(&name, "running").await;
        format!("127.0.0.1:{}", response.status.unwrap().port_start)
    }

    /// Engine `VOLUME-e`, once it serves.
    pub async fn engine(&self, volume: &str, replicas: &[String], flags: &[&str]) -> ProcessResponse {
        let name = format!("{volume}-e");
        self.create(engine_spec(volume, replicas, flags)).await.unwrap();
        self.until(&name, "running").await
    }

    pub fn nbd(&self, volume: &str) -> String {
        format!("nbd+unix://{}", self.path(&format!("{volume}.nbd")).display())
    }

    pub async fn client(&self, volume: &str) -> NbdClient {
        NbdClient::connect(&self.nbd(volume).parse().unwrap(), None).await.unwrap()
    }

    /// The program of an engine, and where it is controlled.
    pub fn process_of(&self, run: &str) -> (u32, String) {
        let record = std::fs::read(self.path("state").join(format!("{run}.json"))).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
        let control = record["plan"]["role"]["engine"]["control"].as_str().unwrap_or_default().to_owned();
        (record["process"][0].as_u64().unwrap() as u32, control)
    }

    pub fn engine_at(&self, volume: &str, engine: &ProcessResponse) -> EngineAt {
        let status = engine.status.as_ref().unwrap();
        EngineAt {
            name: format!("{volume}-e"),
            volume: volume.into(),
            address: format!("127.0.0.1:{}", status.port_start),
            control: self.process_of(&status.uuid).1.parse().unwrap(),
            program: GRANARY.into(),
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            kill_process(Pid::from_child(&self.child), Signal::TERM).ok();
            let began = Instant::now();
            while self.child.try_wait().is_ok_and(|status| status.is_none()) && began.elapsed() < HANGS {
                std::thread::sleep(Duration::from_millis(20));
            }
            self.child.kill().ok();
            self.child.wait().ok();
        }
        for entry in std::fs::read_dir(self.path("state")).into_iter().flatten().flatten() {
            let text = std::fs::read(entry.path()).unwrap_or_default();
            let Ok(record) = serde_json::from_slice::<serde_json::Value>(&text) else { continue };
            let (Some(run), Some(pid)) = (record["run"].as_str(), record["process"][0].as_i64()) else {
                continue;
            };
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            if String::from_utf8_lossy(&environment).contains(run) {
                kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).ok();
            }
        }
    }
}

fn start(home: &Path, port: u16, flags: &[String]) -> (Child, String) {
    let mut command = Command::new(GRANARY);
    command.args(["instance-manager", "--listen", &format!("127.0.0.1:{port}")]);
    command.args(["--port-range", &format!("{}-{}", port + 4, port + BLOCK - 1)]);
    for directory in ["state", "logs", "keys"] {
        command.arg(format!("--{directory}-dir")).arg(home.join(directory));
    }
    command.args(flags).env("GRANARY_LOG", "warn").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

/// The first of a block that nobody else uses, below those that the kernel gives away.
fn free_ports() -> u16 {
    static BLOCKS: AtomicU32 = AtomicU32::new(0);
    let blocks = u32::from((32_000 - 20_100) / BLOCK);
    loop {
        let number =
            std::process::id().wrapping_mul(31).wrapping_add(BLOCKS.fetch_add(1, Ordering::Relaxed)) % blocks;
        let first = 20_100 + number as u16 * BLOCK;
        let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if (first..first + BLOCK).all(is_free) {
            return first;
        }
    }
}

pub fn spec(name: &str, args: &[&str], port_args: &[&str]) -> ProcessSpec {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    ProcessSpec {
        name: name.into(),
        binary: GRANARY.into(),
        args: owned(args),
        port_count: 1,
        port_args: owned(port_args),
    }
}

pub fn engine_spec(volume: &str, replicas: &[String], flags: &[&str]) -> ProcessSpec {
    let mut args = vec!["engine", "--volume", volume];
    args.extend(replicas.iter().flat_map(|address| ["--replica", address]));
    args.extend(flags);
    spec(&format!("{volume}-e"), &args, &[])
}

pub fn meant_for(engine: &EngineAt) -> ProxyEngineRequest {
    ProxyEngineRequest {
        address: engine.address.clone(),
        engine_name: engine.name.clone(),
        volume_name: engine.volume.clone(),
        ..Default::default()
    }
}
