//! All processes of one instance manager, by name: creating, deleting, listing and watching them.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::adopt;
use super::condition::{self, FILESYSTEM_READ_ONLY};
use super::instance::{Instance, View};
use super::log;
use super::plan::{Plan, Role};
use super::ports::Ports;
use super::record::Record;
use super::settings::Settings;
use super::spec::Spec;
use super::state::State;
use super::{child, replace};
use crate::Refusal;

/// A watcher that is further behind than this is told everything anew.
const EVENTS: usize = 256;
const HOUSEKEEPING: Duration = Duration::from_secs(10);
/// Socket paths have 107 bytes; ours begin with the state directory.
const LONGEST_STATE_DIR: usize = 52;

#[derive(Clone)]
pub struct Registry {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Arc<Settings>,
    boot: String,
    ports: Ports,
    processes: Mutex<BTreeMap<String, Entry>>,
    events: broadcast::Sender<View>,
    closing: CancellationToken,
}

struct Entry {
    instance: Arc<Instance>,
    /// While it is being replaced, others see it as it was before: the old engine ends a moment before the next one
    /// serves, and nobody should think that the volume is gone.
    replacing: Option<View>,
}

impl Entry {
    fn view(&self) -> View {
        self.replacing.clone().unwrap_or_else(|| self.instance.view())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot use the state directory {path}: {source}")]
    State { path: PathBuf, source: io::Error },
    #[error(
        "the path of the state directory {0} is longer than {LONGEST_STATE_DIR} bytes, too long for sockets in it"
    )]
    TooLong(PathBuf),
    #[error("another instance manager uses {0}; stop it, or choose another --state-dir")]
    InUse(PathBuf),
}

impl Registry {
    /// Finds the processes of an earlier instance manager with the same state directory, and goes on with them.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let path = settings.state_dir.clone();
        let failed = |source| StartError::State { path: path.clone(), source };
        if path.as_os_str().len() > LONGEST_STATE_DIR {
            return Err(StartError::TooLong(path));
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed)?;
        let shared = Shared {
            ports: Ports::new(settings.ports.clone()),
            boot: child::boot().map_err(failed)?,
            processes: Mutex::default(),
            events: broadcast::Sender::new(EVENTS),
            closing: CancellationToken::new(),
            settings: Arc::new(settings),
        };
        let registry = Self { shared: Arc::new(shared) };
        let records = Record::load_all(&path).map_err(failed)?;
        for instance in adopt::all(&registry, records).await {
            registry.enter(instance);
        }
        tokio::spawn(registry.clone().housekeeping());
        Ok(registry)
    }

    pub fn create(&self, spec: Spec) -> Result<View, Refusal> {
        spec.check()?;
        self.check_open()?;
        let mut processes = self.shared.processes.lock();
        if let Some(entry) = processes.get(&spec.name) {
            let state = entry.instance.status().state.name();
            return Err(Refusal::Exists(format!("process {} exists already and is {state}", spec.name)));
        }
        let instance = self.prepare(spec, None, |plan| plan)?;
        processes.insert(instance.spec().name, Entry { instance: instance.clone(), replacing: None });
        drop(processes);
        self.follow(instance.clone());
        instance.start();
        Ok(instance.view())
    }

    /// Begins to stop it; it is listed until it has ended.
    pub fn delete(&self, name: &str, run: &str) -> Result<View, Refusal> {
        let instance = self.find(name)?;
        if !run.is_empty() && run != instance.run() {
            return Err(Refusal::NotFound(format!("process {name} is another one now; {run} has ended")));
        }
        if !instance.is_deleting() {
            instance.amend(|record| record.deleting = true);
            instance.stop();
            tokio::spawn(self.clone().deregister(instance.clone()));
        }
        Ok(View { deleted: true, ..instance.view() })
    }

    pub fn get(&self, name: &str) -> Result<View, Refusal> {
        let found = self.shared.processes.lock().get(name).map(Entry::view);
        found.ok_or_else(|| missing(name))
    }

    pub fn list(&self) -> Vec<View> {
        self.shared.processes.lock().values().map(Entry::view).collect()
    }

    /// Every change from now on.
    pub fn watch(&self) -> broadcast::Receiver<View> {
        self.shared.events.subscribe()
    }

    /// Ends when the registry does.
    pub fn closing(&self) -> CancellationToken {
        self.shared.closing.clone()
    }

    pub async fn replace(&self, spec: Spec, signal: &str) -> Result<View, Refusal> {
        replace::run(self, spec, signal).await
    }

    pub fn log_file(&self, name: &str) -> Result<PathBuf, Refusal> {
        Ok(self.find(name)?.log_file())
    }

    /// The engine whose ports hold this one.
    pub fn engine_at(&self, port: u16) -> Option<Arc<Instance>> {
        let is_it = |instance: &Arc<Instance>| {
            instance.ports.contains(port) && matches!(instance.plan().role, Role::Engine { .. })
        };
        self.instances().into_iter().find(is_it)
    }

    /// Stops everything in order: engines first, so that they can take leave of their replicas.
    pub async fn close(&self) {
        self.shared.closing.cancel();
        // Who is about to be replaced is two processes, of which only one is listed.
        while self.shared.processes.lock().values().any(|entry| entry.replacing.is_some()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (engines, others): (Vec<_>, Vec<_>) = self
            .instances()
            .into_iter()
            .partition(|instance| matches!(instance.plan().role, Role::Engine { .. }));
        for group in [engines, others] {
            for instance in &group {
                instance.amend(|record| record.deleting = true);
                instance.stop();
            }
            for instance in &group {
                instance.gone().await;
                instance.forget();
            }
        }
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        self.shared.settings.clone()
    }

    pub(super) fn ports(&self) -> &Ports {
        &self.shared.ports
    }

    pub(super) fn boot(&self) -> &str {
        &self.shared.boot
    }

    pub(super) fn find(&self, name: &str) -> Result<Arc<Instance>, Refusal> {
        let found = self.shared.processes.lock().get(name).map(|entry| entry.instance.clone());
        found.ok_or_else(|| missing(name))
    }

    /// Everything a process needs, and nothing is run yet. What is refused has left nothing behind.
    pub(super) fn prepare(
        &self,
        spec: Spec,
        replaces: Option<String>,
        adapt: impl FnOnce(Plan) -> Plan,
    ) -> Result<Arc<Instance>, Refusal> {
        let settings = self.settings();
        let run = uuid::Uuid::new_v4().to_string();
        let ports = self.shared.ports.reserve(spec.port_count)?;
        let plan = adapt(Plan::make(&settings, &spec, ports.iter(), &run)?);
        let log_from = settings.log_file(&spec.name).metadata().map_or(0, |log| log.len());
        let record = Record {
            run,
            spec,
            plan,
            port_start: ports.start(),
            log_from,
            boot: self.shared.boot.clone(),
            process: None,
            ready: false,
            places: Vec::new(),
            deleting: false,
            replaces,
        };
        Ok(Arc::new(Instance::new(settings, ports, record)))
    }

    fn check_open(&self) -> Result<(), Refusal> {
        if self.shared.closing.is_cancelled() {
            return Err(Refusal::Unavailable("the instance manager is stopping and starts nothing".into()));
        }
        Ok(())
    }

    /// Only one may be about to replace a process.
    pub(super) fn begin_replacing(&self, name: &str) -> Result<(), Refusal> {
        self.check_open()?;
        let mut processes = self.shared.processes.lock();
        let entry = processes.get_mut(name);
        let entry = entry.ok_or_else(|| missing(name))?;
        if entry.replacing.is_some() {
            return Err(Refusal::Exists(format!("process {name} is being replaced by somebody else")));
        }
        entry.replacing = Some(entry.instance.view());
        Ok(())
    }

    pub(super) fn end_replacing(&self, name: &str) {
        let mut processes = self.shared.processes.lock();
        let Some(entry) = processes.get_mut(name) else { return };
        if entry.replacing.take().is_some_and(|before| before != entry.instance.view()) {
            self.tell(entry.instance.view());
        }
    }

    /// From now on `instance` is the process of its name.
    pub(super) fn enter(&self, instance: Arc<Instance>) {
        let entry = Entry { instance: instance.clone(), replacing: None };
        self.shared.processes.lock().insert(instance.spec().name, entry);
        self.follow(instance.clone());
        self.tell(instance.view());
        if instance.is_deleting() {
            instance.stop();
            tokio::spawn(self.clone().deregister(instance));
        }
    }

    fn instances(&self) -> Vec<Arc<Instance>> {
        self.shared.processes.lock().values().map(|entry| entry.instance.clone()).collect()
    }

    fn is_current(&self, instance: &Arc<Instance>) -> bool {
        self.current_view(instance).is_some()
    }

    /// `None`: another process has its name by now.
    fn current_view(&self, instance: &Arc<Instance>) -> Option<View> {
        let processes = self.shared.processes.lock();
        let entry = processes.get(&instance.spec().name)?;
        Arc::ptr_eq(&entry.instance, instance).then(|| entry.view())
    }

    fn tell(&self, view: View) {
        // Nobody may be watching.
        self.shared.events.send(view).ok();
    }

    /// Tells watchers of its changes, as long as it is the process of its name.
    fn follow(&self, instance: Arc<Instance>) {
        let registry = self.clone();
        let mut changes = instance.watch();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let gone = changes.borrow_and_update().gone;
                let Some(view) = registry.current_view(&instance) else { break };
                registry.tell(view);
                if gone {
                    break;
                }
            }
        });
    }

    async fn deregister(self, instance: Arc<Instance>) {
        instance.gone().await;
        if !self.is_current(&instance) {
            return;
        }
        instance.forget();
        self.shared.processes.lock().remove(&instance.spec().name);
        self.tell(View { deleted: true, ..instance.view() });
    }

    async fn housekeeping(self) {
        while self.shared.closing.run_until_cancelled(tokio::time::sleep(HOUSEKEEPING)).await.is_some() {
            let instances = self.instances();
            let limit = self.shared.settings.log_limit;
            let cleaned = tokio::task::spawn_blocking(move || {
                for instance in &instances {
                    let path = instance.log_file();
                    if let Err(error) = log::rotate(&path, limit) {
                        tracing::warn!(path = %path.display(), %error, "a log grows without bound");
                    }
                }
                look_at_file_systems(&instances);
            });
            if let Err(error) = cleaned.await {
                tracing::error!(%error, "logs and file systems were not looked after; this is a defect");
            }
        }
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::NotFound(format!("there is no process {name} here"))
}

/// Engines whose volume carries a file system that the kernel no longer writes to are marked.
fn look_at_file_systems(instances: &[Arc<Instance>]) {
    let engines = instances.iter().filter(|instance| instance.status().state == State::Running);
    let engines = engines.filter(|instance| matches!(instance.plan().role, Role::Engine { .. }));
    for engine in engines {
        let devices = engine.view().places.into_iter().filter(|place| place.starts_with("/dev/"));
        let read_only = devices.into_iter().any(|device| condition::is_read_only(&device));
        engine.set_condition(FILESYSTEM_READ_ONLY, read_only);
    }
}
