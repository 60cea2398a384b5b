//! What the server does by itself: collects objects whose owners are gone, empties namespaces and definitions
//! that are being deleted, lets old events and old history go.
//!
//! One task follows every change in order and works through a queue of small tasks. Must never do anything a
//! client could not do through the same verbs.

mod dependents;
mod events;
mod terminating;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::auth::Identity;
use crate::error::{ApiError, Result};
use crate::http::media::Accept;
use crate::http::query::Query;
use crate::meta;
use crate::registry::Resource;
use crate::store::{Change, Event, Key, Prefix};
use crate::verbs::{Api, Call, DeleteOptions};

/// One thing to look at. Doing it twice does no harm, so the queue only needs to be complete.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// An object that names owners: are they still there?
    Dependent(Key),
    /// An object being deleted that waits for its dependents, or for letting go of them.
    Owner(Key),
    Namespace(String),
    Definition(String),
}

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// A task that could not be done yet is looked at again after this.
const RETRY: Duration = Duration::from_millis(500);

/// Runs until the server stops.
pub(crate) async fn run(api: Arc<Api>) {
    let stopping = api.stopping.clone();
    let mut janitor = Janitor::new(api.clone());
    tokio::select! {
        () = stopping.cancelled() => {}
        () = api.store.maintain() => {}
        () = events::expire(&api) => {}
        () = janitor.run() => {}
    }
}

struct Janitor {
    api: Arc<Api>,
    queue: VecDeque<Task>,
    queued: BTreeSet<Task>,
    later: Vec<(Instant, Task)>,
}

impl Janitor {
    fn new(api: Arc<Api>) -> Self {
        Self { api, queue: VecDeque::new(), queued: BTreeSet::new(), later: Vec::new() }
    }

    async fn run(&mut self) {
        let mut news = self.api.store.subscribe();
        let mut definitions = self.api.registry.subscribe();
        let mut cursor = self.api.store.revision();
        self.look_around().await;
        loop {
            match self.api.store.events_after(cursor, &Prefix::everything(), 256) {
                Ok((events, next)) => {
                    let advanced = next > cursor;
                    cursor = next;
                    events.iter().for_each(|event| self.notice(event));
                    if advanced && events.len() == 256 {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "housekeeping fell behind; looking at everything again");
                    cursor = self.api.store.revision();
                    self.look_around().await;
                }
            }
            self.work().await;
            let pause = self.later.iter().map(|(at, _)| *at).min();
            tokio::select! {
                changed = news.changed() => if changed.is_err() { return },
                changed = definitions.changed() => match changed {
                    Ok(()) => self.reconsider_definitions(),
                    Err(_) => return,
                },
                () = sleep_until(pause), if pause.is_some() => self.wake(),
            }
        }
    }

    fn push(&mut self, task: Task) {
        if self.queued.insert(task.clone()) {
            self.queue.push_back(task);
        }
    }

    fn wake(&mut self) {
        let now = Instant::now();
        let (due, rest) = self.later.drain(..).partition(|(at, _)| *at <= now);
        self.later = rest;
        due.into_iter().for_each(|(_, task): (_, Task)| self.push(task));
    }

    async fn work(&mut self) {
        while let Some(task) = self.queue.pop_front() {
            self.queued.remove(&task);
            let outcome = match &task {
                Task::Dependent(key) => self.check_dependent(key).await,
                Task::Owner(key) => self.finish_owner(key).await,
                Task::Namespace(name) => self.empty_namespace(name).await,
                Task::Definition(name) => self.tend_definition(name).await,
            };
            match outcome {
                Ok(Progress::Done) => {}
                Ok(Progress::Waiting) => self.later.push((Instant::now() + RETRY, task)),
                Err(error) => {
                    tracing::warn!(?task, %error, "housekeeping will try again");
                    self.later.push((Instant::now() + RETRY, task));
                }
            }
        }
    }

    /// Queues what a change makes necessary. Objects are parsed only when their text hints at it.
    fn notice(&mut self, event: &Event) {
        let json = &event.json;
        let resource = event.key.resource();
        if resource == "namespaces." && mentions(json, b"\"deletionTimestamp\"") {
            self.push(Task::Namespace(event.key.name().into()));
        }
        if resource == DEFINITIONS && mentions(json, b"\"deletionTimestamp\"") {
            self.push(Task::Definition(event.key.name().into()));
        }
        let owned = mentions(json, b"\"ownerReferences\"");
        match event.change {
            Change::Deleted => {
                self.notice_deletion(&event.key, json, owned);
            }
            Change::Created | Change::Updated => {
                if owned {
                    self.push(Task::Dependent(event.key.clone()));
                }
                if waits_for_dependents(json) {
                    self.push(Task::Owner(event.key.clone()));
                }
            }
        }
    }

    /// A definition that was refused because of its names may have them now.
    fn reconsider_definitions(&mut self) {
        let refused = |_: &Key, json: &[u8]| mentions(json, b"\"NotAccepted\"");
        let found =
            self.api.store.snapshot(None).and_then(|snapshot| {
                snapshot.page(&Prefix::resource(DEFINITIONS), None, usize::MAX, refused)
            });
        match found {
            Ok(page) => {
                page.items.iter().for_each(|crd| self.push(Task::Definition(crd.key.name().into())));
            }
            Err(error) => tracing::error!(%error, "definitions cannot be read"),
        }
    }

    fn notice_deletion(&mut self, key: &Key, json: &[u8], owned: bool) {
        let object: Value = serde_json::from_slice(json).unwrap_or_default();
        match self.api.store.owned_by(meta::uid(&object)) {
            Ok(dependents) => dependents.into_iter().for_each(|key| self.push(Task::Dependent(key))),
            Err(error) => tracing::error!(%error, %key, "dependents cannot be read"),
        }
        if owned {
            for owner in dependents::owners(&self.api, &object) {
                self.push(Task::Owner(owner));
            }
        }
    }

    /// After a start, or after falling behind: everything that may be unfinished.
    async fn look_around(&mut self) {
        match self.api.store.owned() {
            Ok(pairs) => pairs.into_iter().for_each(|(_, key)| self.push(Task::Dependent(key))),
            Err(error) => tracing::error!(%error, "owners cannot be read"),
        }
        self.reconsider_definitions();
        let Ok(snapshot) = self.api.store.snapshot(None) else { return };
        let mut start: Option<String> = None;
        loop {
            let wanted = |_: &Key, json: &[u8]| mentions(json, b"\"deletionTimestamp\"");
            let page = match snapshot.page(&Prefix::everything(), start.as_deref(), usize::MAX, wanted) {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!(%error, "unfinished deletions cannot be looked for");
                    return;
                }
            };
            for stored in page.items {
                let event = Event {
                    revision: stored.revision,
                    change: Change::Updated,
                    key: stored.key,
                    json: stored.json,
                    previous: None,
                };
                self.notice(&event);
            }
            match page.next {
                Some(next) => start = Some(next),
                None => return,
            }
            tokio::task::yield_now().await;
        }
    }

    /// The resource whose objects lie under this key.
    fn resource(&self, key: &Key) -> Option<Arc<Resource>> {
        self.api.registry.table().stored().into_iter().find(|r| r.storage == key.resource())
    }

    async fn delete(&self, resource: &Arc<Resource>, key: &Key, options: &DeleteOptions) -> Result<()> {
        let mut call = internal_call(resource, key.namespace(), key.name());
        match self.api.delete(&mut call, options).await {
            Err(error) if is_gone(&error) => Ok(()),
            // Another object has the name now; it has events of its own.
            Err(error) if error.code == ::http::StatusCode::CONFLICT => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

/// Whether a task is over or has to be looked at again.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Done,
    Waiting,
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}

/// A request of the server to itself.
pub(crate) fn internal_call(resource: &Arc<Resource>, namespace: &str, name: &str) -> Call {
    Call {
        resource: resource.clone(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: String::new(),
        query: Query::default(),
        accept: Accept::default(),
        user: Identity::component("housekeeping"),
        agent: "granary-housekeeping".into(),
        duplicates: Vec::new(),
        warnings: Vec::new(),
    }
}

fn is_gone(error: &ApiError) -> bool {
    error.code == ::http::StatusCode::NOT_FOUND
}

fn mentions(json: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(json, word).is_some()
}

fn waits_for_dependents(json: &[u8]) -> bool {
    mentions(json, b"\"deletionTimestamp\"")
        && (mentions(json, b"\"foregroundDeletion\"") || mentions(json, b"\"orphan\""))
}
