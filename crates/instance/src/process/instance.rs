//! One run of a process, from its start to its end: its state, and the task that looks after it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::child::{Child, End, start_time};
use super::log::{self, Announcement};
use super::plan::{Plan, Role};
use super::ports::Reservation;
use super::ready::Sign;
use super::record::Record;
use super::settings::Settings;
use super::spec::Spec;
use super::state::{Event, State};

pub struct Instance {
    settings: Arc<Settings>,
    pub ports: Reservation,
    record: Mutex<Record>,
    /// Its record was removed and must not come back.
    forgotten: CancellationToken,
    status: watch::Sender<Status>,
    stop: CancellationToken,
    kill: CancellationToken,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub state: State,
    pub error: String,
    pub conditions: BTreeMap<String, bool>,
    /// The program has ended, or never began.
    pub gone: bool,
}

/// As it is told to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub spec: Spec,
    pub plan: Plan,
    pub run: String,
    pub port_start: u16,
    pub port_end: u16,
    pub status: Status,
    /// Where an engine's volume is reached.
    pub places: Vec<String>,
    pub deleted: bool,
}

impl Instance {
    pub fn new(settings: Arc<Settings>, ports: Reservation, record: Record) -> Self {
        let status =
            Status { state: State::Starting, error: String::new(), conditions: BTreeMap::new(), gone: false };
        Self {
            settings,
            ports,
            record: Mutex::new(record),
            forgotten: CancellationToken::new(),
            status: watch::Sender::new(status),
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
        }
    }

    /// Runs the program. Whatever comes of it shows in the state.
    pub fn start(self: &Arc<Self>) {
        let started = self.save().and_then(|()| {
            let (plan, run) = (self.plan(), self.run());
            Child::start(&plan, &run, log::open(&self.log_file())?)
        });
        match started {
            Ok(child) => {
                self.record.lock().process = start_time(child.pid).map(|started| (child.pid, started));
                self.saved();
                tokio::spawn(self.clone().look_after(child));
            }
            Err(error) => {
                let program = self.plan().program;
                self.pass(Event::StartFailed, &format!("{} cannot be run: {error}", program.display()), true);
            }
        }
    }

    /// Goes on with a program that is running already.
    pub fn resume(self: &Arc<Self>, child: Child) {
        if self.record.lock().ready {
            self.pass(Event::Ready, "", false);
        }
        tokio::spawn(self.clone().look_after(child));
    }

    /// For one that ended while nobody was there.
    pub fn lost(&self) {
        self.pass(Event::EndedBadly, "it ended while the instance manager was not running", true);
    }

    /// Returns at once; the state tells when it has stopped.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// For one that nobody depends on yet.
    pub fn kill(&self) {
        self.kill.cancel();
        self.stop.cancel();
    }

    pub fn run(&self) -> String {
        self.record.lock().run.clone()
    }

    pub fn plan(&self) -> Plan {
        self.record.lock().plan.clone()
    }

    pub fn spec(&self) -> Spec {
        self.record.lock().spec.clone()
    }

    pub fn log_file(&self) -> PathBuf {
        self.settings.log_file(&self.record.lock().spec.name)
    }

    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    pub fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub fn view(&self) -> View {
        let record = self.record.lock();
        View {
            spec: record.spec.clone(),
            plan: record.plan.clone(),
            run: record.run.clone(),
            port_start: self.ports.start(),
            port_end: self.ports.end(),
            status: self.status(),
            places: record.places.clone(),
            deleted: false,
        }
    }

    pub fn is_deleting(&self) -> bool {
        self.record.lock().deleting
    }

    /// Changes what is kept of it on disk, too.
    pub(crate) fn amend(&self, change: impl FnOnce(&mut Record)) {
        change(&mut self.record.lock());
        self.saved();
    }

    pub fn forget(&self) {
        self.forgotten.cancel();
        if let Err(error) = Record::remove(&self.settings.state_dir, &self.run()) {
            tracing::warn!(run = self.run(), %error, "the record of a process stays behind");
        }
    }

    pub fn set_condition(&self, name: &str, holds: bool) {
        self.status
            .send_if_modified(|status| status.conditions.insert(name.to_owned(), holds) != Some(holds));
    }

    /// Once it serves, or will not.
    pub async fn decided(&self) -> Status {
        // The sender is ours, so waiting does not fail.
        self.watch().wait_for(|status| status.state != State::Starting).await.ok();
        self.status()
    }

    /// Until its program has ended.
    pub async fn gone(&self) {
        // The sender is ours, so waiting does not fail.
        self.watch().wait_for(|status| status.gone).await.ok();
    }

    fn save(&self) -> std::io::Result<()> {
        self.record.lock().save(&self.settings.state_dir)
    }

    fn saved(&self) {
        if self.forgotten.is_cancelled() {
            return;
        }
        if let Err(error) = self.save() {
            let name = self.spec().name;
            tracing::error!(name, %error, "a restarted instance manager would not find this process");
        }
    }

    fn pass(&self, event: Event, why: &str, gone: bool) {
        let name = self.spec().name;
        self.status.send_modify(|status| {
            let Some(next) = status.state.next(event) else {
                tracing::error!(name, state = status.state.name(), ?event, "this cannot happen here");
                return;
            };
            if next == State::Error && status.state != State::Error {
                why.clone_into(&mut status.error);
            }
            if next != status.state {
                tracing::info!(name, from = status.state.name(), to = next.name(), why, "process");
            }
            status.state = next;
            status.gone |= gone;
        });
    }

    async fn look_after(self: Arc<Self>, mut child: Child) {
        let mut sign = self.sign();
        let mut late = Instant::now() + self.settings.start_timeout;
        let mut asked = false;
        let end = loop {
            let state = self.status().state;
            tokio::select! {
                end = child.ended() => break end,
                line = sign.seen(), if state == State::Starting => {
                    self.amend(|record| (record.ready, record.places) = (true, places(&line)));
                    self.pass(Event::Ready, "", false);
                }
                () = self.stop.cancelled(), if !asked => {
                    asked = true;
                    late = Instant::now() + self.settings.stop_timeout;
                    self.pass(Event::StopAsked, "", false);
                    tell(&child, if self.kill.is_cancelled() { Signal::KILL } else { Signal::INT });
                }
                () = tokio::time::sleep_until(late), if asked || state == State::Starting => {
                    if !asked {
                        let seconds = self.settings.start_timeout.as_secs();
                        self.pass(Event::StartFailed, &format!("it did not serve within {seconds} s"), false);
                    }
                    tell(&child, Signal::KILL);
                    late = Instant::now() + Duration::from_secs(1);
                    asked = true;
                }
            }
        };
        self.end(end);
    }

    fn end(&self, end: End) {
        let role = self.plan().role;
        let from = self.record.lock().log_from;
        let words = log::last_words(&self.log_file(), from);
        let why = if words.is_empty() {
            end.describe()
        } else {
            format!("{}; last it said: {words}", end.describe())
        };
        if let Role::Engine { control: granary_block::wire::address::Address::Unix(socket), .. } = role
            && end != End::Well
        {
            // One that was killed could not.
            std::fs::remove_file(socket).ok();
        }
        self.pass(if end == End::Well { Event::EndedWell } else { Event::EndedBadly }, &why, true);
    }

    fn sign(&self) -> Sign {
        let record = self.record.lock();
        match record.plan.role {
            Role::Engine { .. } | Role::Replica { .. } => {
                Sign::Announced(Announcement::new(self.settings.log_file(&record.spec.name), record.log_from))
            }
            Role::Other if self.ports.count() > 0 => Sign::Health(self.ports.start()),
            Role::Other => Sign::None,
        }
    }
}

fn tell(child: &Child, signal: Signal) {
    if let Err(error) = child.signal(signal) {
        tracing::error!(pid = child.pid, ?signal, %error, "a process cannot be told to end");
    }
}

/// `ready … frontends=A,B …`
fn places(announcement: &str) -> Vec<String> {
    let listed = announcement.split(' ').find_map(|word| word.strip_prefix("frontends="));
    listed.unwrap_or_default().split(',').filter(|place| !place.is_empty()).map(str::to_owned).collect()
}
