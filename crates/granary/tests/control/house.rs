//! A house with an API, its controllers, and three nodes on addresses of the loopback network. The test does what the
//! node agent does: it runs the pods and tells of the disks.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use granary_api::constants::longhorn::SYSTEM_NAMESPACE;
use granary_api::longhorn::{Engine, Node, Replica, Volume};
use granary_apiserver::{ApiServer, store};
use granary_control::{Context, Managers};
use granary_instance::client::{Connection, Target};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Far more than anything here takes; only says that something hangs.
const HANGS: Duration = Duration::from_secs(120);
const GIB: u64 = 1 << 30;
pub const NODES: [&str; 3] = ["n1", "n2", "n3"];

pub struct House {
    server: Arc<ApiServer>,
    pub client: Client,
    stopping: CancellationToken,
    managers: Vec<Child>,
    pub port: u16,
    home: tempfile::TempDir,
}

impl House {
    pub async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let definitions: Vec<_> =
            granary_api::crds::all().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
        let options = store::Options::new(home.path().join("granary.redb"));
        let server = ApiServer::start(options, &definitions).await.unwrap();
        let keeper = server.clone();
        tokio::spawn(async move { keeper.run_housekeeping().await });
        let client = server.client("tests");
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(SYSTEM_NAMESPACE.into());
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();

        let port = free_port();
        let stopping = CancellationToken::new();
        let managers = Managers::new(port, None);
        let context = Arc::new(Context::new(server.client("control"), SYSTEM_NAMESPACE, managers));
        let stop = stopping.clone();
        tokio::spawn(async move { granary_control::run(context, stop).await.unwrap() });
        let mut house = Self { server, client, stopping, managers: Vec::new(), port, home };
        for number in 0..NODES.len() {
            house.add_node(number).await;
        }
        house
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), SYSTEM_NAMESPACE)
    }

    async fn add_node(&mut self, number: usize) {
        let (name, ip) = (NODES[number], address(number));
        let disk = self.home.path().join(name);
        std::fs::create_dir_all(&disk).unwrap();
        let object = json!({
            "apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": { "name": name },
            "spec": { "allowScheduling": true, "disks": { "main": { "path": disk, "allowScheduling": true } } },
        });
        self.api().create(&PostParams::default(), &typed::<Node>(object)).await.unwrap();
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        let status = json!({ "status": { "conditions": ready, "diskStatus": { "main": {
            "conditions": ready, "diskUUID": format!("disk-{name}"),
            "storageMaximum": 100 * GIB, "storageAvailable": 100 * GIB,
        } } } });
        let nodes = self.api::<Node>();
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();

        self.managers.push(start_manager(&self.home, number, self.port));
        let (pods, manager) = (self.api::<Pod>(), format!("instance-manager-{name}"));
        until("a pod for the instance manager", || async { pods.get_opt(&manager).await.unwrap() }).await;
        let status = json!({ "status": { "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }] } });
        pods.patch_status(&manager, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }

    pub async fn create_volume(&self, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "metadata": { "name": name }, "spec": spec,
        });
        self.api().create(&PostParams::default(), &typed::<Volume>(object)).await.unwrap();
    }

    pub async fn change_volume(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.api::<Volume>().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until the volume is in a state and robustness.
    pub async fn until_volume(&self, name: &str, state: &str, robustness: &str) -> Volume {
        let volumes = self.api::<Volume>();
        let began = Instant::now();
        loop {
            let volume = volumes.get(name).await.unwrap();
            let status = volume.status.clone().unwrap_or_default();
            let is = |text: Option<String>, wanted: &str| text.as_deref() == Some(wanted);
            if is(status.state.map(|s| s.to_string()), state)
                && is(status.robustness.map(|r| r.to_string()), robustness)
            {
                return volume;
            }
            if began.elapsed() > HANGS {
                let engines = self.api::<Engine>().list(&ListParams::default()).await.unwrap().items;
                let replicas = self.replicas().await;
                panic!("not {state} and {robustness}: {volume:#?} {engines:#?} {replicas:#?}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn replicas(&self) -> Vec<Replica> {
        self.api::<Replica>().list(&ListParams::default()).await.unwrap().items
    }

    /// With everything that runs there.
    pub fn kill_node(&mut self, number: usize) {
        self.managers[number].kill().unwrap();
        self.managers[number].wait().unwrap();
        let state = self.home.path().join(format!("state-{number}"));
        for entry in std::fs::read_dir(state).unwrap().flatten() {
            let text = std::fs::read(entry.path()).unwrap_or_default();
            let Ok(record) = serde_json::from_slice::<Value>(&text) else { continue };
            let (Some(run), Some(pid)) = (record["run"].as_str(), record["process"][0].as_i64()) else {
                continue;
            };
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            if String::from_utf8_lossy(&environment).contains(run) {
                kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
            }
        }
    }

    pub fn revive_node(&mut self, number: usize) {
        self.managers[number] = start_manager(&self.home, number, self.port);
    }

    pub fn connection(&self, number: usize) -> Connection {
        Connection::new(Target { host: address(number), port: self.port, tls_dir: None })
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.server.stop();
        for manager in &mut self.managers {
            kill_process(Pid::from_child(manager), Signal::TERM).ok();
        }
        for manager in &mut self.managers {
            manager.wait().ok();
        }
    }
}

fn address(number: usize) -> String {
    format!("127.0.0.{}", number + 2)
}

fn typed<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

fn start_manager(home: &tempfile::TempDir, number: usize, port: u16) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary"));
    command.args(["instance-manager", "--create-keys"]);
    command.args(["--listen", &format!("{}:{port}", address(number))]);
    let first = 12_000 + number * 200 + (std::process::id() as usize % 20) * 600;
    command.args(["--port-range", &format!("{first}-{}", first + 199)]);
    for directory in ["state", "logs"] {
        command.arg(format!("--{directory}-dir")).arg(home.path().join(format!("{directory}-{number}")));
    }
    command.arg("--keys-dir").arg(home.path().join("keys"));
    command.env("GRANARY_LOG", "warn").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready "), "not ready: {line:?}");
    child
}

/// One that is free, with the next three, on the addresses of all nodes. Stories that run at the same time get
/// different ones: between looking and listening another could take it.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: u16| {
        (0..NODES.len()).all(|number| {
            let ip: Ipv4Addr = address(number).parse().unwrap();
            (port..port + 4).all(|port| TcpListener::bind((ip, port)).is_ok())
        })
    };
    let first = 24_000 + (std::process::id() % 100) as u16 * 80;
    let taken = || first + NEXT.fetch_add(4, Ordering::Relaxed);
    std::iter::repeat_with(taken).take(250).find(|port| is_free(*port)).unwrap()
}

pub async fn until<T, F, Fut>(what: &str, mut look: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < HANGS, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub fn node_of(replica: &Replica) -> String {
    replica.spec.instance.node_id.clone().unwrap_or_else(|| panic!("{} has no node", replica.name_any()))
}
