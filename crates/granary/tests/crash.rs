//! `kill -9` under eight concurrent writers, again and again on one data directory: every acknowledged write is
//! there, revisions never go back, and a watch that resumes misses nothing.
//!
//! `GRANARY_CRASH_ROUNDS` says how often, `GRANARY_CRASH_SEED` repeats a run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{Dice, PATIENCE, Server};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use tokio::sync::oneshot;

const WRITERS: u64 = 8;
const NAMES_EACH: u64 = 5;

/// What one write was; its number is in no other write.
#[derive(Debug, Clone, PartialEq)]
enum Op {
    Put {
        number: u64,
    },
    /// Deletes the object whose last content is `number`.
    Delete {
        number: u64,
    },
}

/// An object as far as this test looks: version and content.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    version: u64,
    number: u64,
}

impl Seen {
    fn of(map: &ConfigMap) -> Self {
        let data = map.data.as_ref().expect("every object has data");
        let number: u64 = data["number"].parse().unwrap();
        assert_eq!(data["filler"], filler(number), "the content of {} is damaged", map.name_any());
        Self { version: map.resource_version().unwrap().parse().unwrap(), number }
    }
}

fn filler(number: u64) -> String {
    format!("{number:016x}").repeat(1 + (number % 40) as usize)
}

fn config_map(name: &str, number: u64, version: Option<u64>) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map.metadata.resource_version = version.map(|v| v.to_string());
    map.data = Some([("number".into(), number.to_string()), ("filler".into(), filler(number))].into());
    map
}

/// What one writer was told in one round.
#[derive(Debug, Default)]
struct Diary {
    /// Number of an acknowledged put → the version it got.
    puts: BTreeMap<u64, u64>,
    /// Numbers of objects whose deletion was acknowledged.
    deletes: Vec<u64>,
    /// The write that got no answer.
    unanswered: Option<Op>,
}

struct Writer {
    api: Api<ConfigMap>,
    dice: Dice,
    names: BTreeMap<String, Option<Seen>>,
    numbers: Arc<AtomicU64>,
}

impl Writer {
    /// Writes until the server is gone.
    async fn run(mut self) -> Diary {
        let mut diary = Diary::default();
        loop {
            let index = self.dice.below(NAMES_EACH) as usize;
            let name = self.names.keys().nth(index).expect("an index within").clone();
            let live = self.names[&name];
            let delete = live.filter(|_| self.dice.below(4) == 0);
            let op = match delete {
                Some(live) => Op::Delete { number: live.number },
                None => Op::Put { number: self.numbers.fetch_add(1, Ordering::Relaxed) },
            };
            match self.perform(&name, live, &op).await {
                Ok(now) => {
                    match (op, now) {
                        (Op::Put { number }, Some(seen)) => {
                            diary.puts.insert(number, seen.version);
                        }
                        (Op::Delete { number }, _) => diary.deletes.push(number),
                        (op, now) => panic!("{op:?} was answered with {now:?}"),
                    }
                    self.names.insert(name, now);
                }
                Err(kube::Error::Api(status)) => panic!("{op:?} of {name} was refused: {status:?}"),
                Err(_) => {
                    diary.unanswered = Some(op);
                    return diary;
                }
            }
        }
    }

    async fn perform(&self, name: &str, live: Option<Seen>, op: &Op) -> kube::Result<Option<Seen>> {
        let parameters = PostParams::default();
        match (op, live) {
            (Op::Delete { .. }, _) => {
                self.api.delete(name, &DeleteParams::default()).await?;
                Ok(None)
            }
            (Op::Put { number }, None) => {
                let made = self.api.create(&parameters, &config_map(name, *number, None)).await?;
                Ok(Some(Seen::of(&made)))
            }
            (Op::Put { number }, Some(live)) => {
                let map = config_map(name, *number, Some(live.version));
                Ok(Some(Seen::of(&self.api.replace(name, &parameters, &map).await?)))
            }
        }
    }
}

/// The events of one watch, which may be interrupted and resumed.
#[derive(Debug, Default, Clone, PartialEq)]
struct Watched {
    /// The last version that was seen.
    cursor: u64,
    puts: BTreeMap<u64, u64>,
    deletes: Vec<u64>,
    state: BTreeMap<String, Seen>,
}

impl Watched {
    fn from_list(version: u64, state: BTreeMap<String, Seen>) -> Self {
        Self { cursor: version, state, ..Self::default() }
    }

    /// Follows until the connection ends or an object called `until` appears.
    async fn follow(&mut self, api: &Api<ConfigMap>, until: &str) {
        let parameters = WatchParams::default().timeout(60);
        let Ok(stream) = api.watch(&parameters, &self.cursor.to_string()).await else { return };
        let mut stream = std::pin::pin!(stream);
        while let Some(Ok(event)) = stream.next().await {
            let (map, kind) = match event {
                WatchEvent::Added(map) => (map, "ADDED"),
                WatchEvent::Modified(map) => (map, "MODIFIED"),
                WatchEvent::Deleted(map) => (map, "DELETED"),
                other => panic!("the watch from {} got {other:?}", self.cursor),
            };
            self.note(kind, &map);
            if map.name_any() == until {
                return;
            }
        }
    }

    fn note(&mut self, kind: &str, map: &ConfigMap) {
        let (name, seen) = (map.name_any(), Seen::of(map));
        assert!(seen.version > self.cursor, "{} follows {}", seen.version, self.cursor);
        self.cursor = seen.version;
        let before = self.state.get(&name).copied();
        match kind {
            "DELETED" => {
                let gone = self.state.remove(&name).unwrap_or_else(|| panic!("{name} was not there"));
                assert_eq!(gone.number, seen.number);
                self.deletes.push(seen.number);
            }
            _ => {
                assert_eq!(kind == "ADDED", before.is_none(), "{kind} of {name} after {before:?}");
                self.state.insert(name, seen);
                assert!(self.puts.insert(seen.number, seen.version).is_none(), "seen twice: {seen:?}");
            }
        }
    }
}

async fn list(api: &Api<ConfigMap>) -> (u64, BTreeMap<String, Seen>) {
    let list = api.list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.as_deref().unwrap().parse().unwrap();
    (version, list.items.iter().map(|map| (map.name_any(), Seen::of(map))).collect())
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

/// Everything acknowledged was seen by the watch, and nothing else but what got no answer.
fn compare(diaries: &[Diary], watched: &Watched) {
    let mut unexplained = watched.puts.clone();
    let mut deleted = watched.deletes.clone();
    for diary in diaries {
        for (number, version) in &diary.puts {
            assert_eq!(unexplained.remove(number), Some(*version), "acknowledged write {number} is lost");
        }
        for number in &diary.deletes {
            let at = deleted.iter().position(|n| n == number);
            deleted.swap_remove(at.unwrap_or_else(|| panic!("acknowledged deletion of {number} is lost")));
        }
        match diary.unanswered.as_ref().expect("a writer ends with the server") {
            Op::Put { number } => drop(unexplained.remove(number)),
            Op::Delete { number } => deleted.retain(|n| n != number),
        }
    }
    assert!(unexplained.is_empty() && deleted.is_empty(), "nobody wrote {unexplained:?} {deleted:?}");
}

struct Totals {
    acknowledged: usize,
    resumed: usize,
    survived: usize,
}

struct Crasher {
    data: tempfile::TempDir,
    dice: Dice,
    numbers: Arc<AtomicU64>,
    totals: Totals,
}

impl Crasher {
    /// One life of the server: load, `kill -9`, restart, comparison. Gives the server for the next round.
    async fn round(&mut self, mut server: Server, round: u64) -> Server {
        let client = server.client().await;
        let (version, state) = list(&maps(&client)).await;
        let mut asleep = Watched::from_list(version, state.clone());
        let (started, watching) = oneshot::channel();
        let watch = tokio::spawn({
            let mut watched = asleep.clone();
            let api = maps(&client);
            async move {
                started.send(()).ok();
                watched.follow(&api, "").await;
                watched
            }
        });
        watching.await.unwrap();
        let writers: Vec<_> =
            (0..WRITERS).map(|w| tokio::spawn(self.writer(&client, &state, w).run())).collect();
        tokio::time::sleep(Duration::from_millis(100 + self.dice.below(500))).await;
        server.kill();

        let mut diaries = Vec::new();
        for writer in writers {
            diaries.push(writer.await.unwrap());
        }
        let mut watched = watch.await.unwrap();
        let seen_before = watched.puts.len() + watched.deletes.len();

        let server = Server::start(self.data.path());
        let api = maps(&server.client().await);
        let (version, state) = list(&api).await;
        let newest = diaries.iter().flat_map(|d| d.puts.values()).copied().max().unwrap_or(0);
        assert!(version >= newest.max(watched.cursor), "revision went back to {version}");
        // Its arrival tells that the watch has delivered everything before it.
        let marker = format!("marker-{round}");
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let made = api.create(&PostParams::default(), &config_map(&marker, number, None)).await.unwrap();
        watched.follow(&api, &marker).await;
        asleep.follow(&api, &marker).await;
        assert_eq!(asleep, watched, "who slept through it all is told the same");
        assert_eq!(watched.puts.remove(&number), Some(Seen::of(&made).version), "the watch ended early");
        let resumed = watched.puts.len() + watched.deletes.len() - seen_before;
        watched.state.remove(&marker);
        assert_eq!(watched.state, state, "the watch tells another story than the list");
        compare(&diaries, &watched);
        api.delete(&marker, &DeleteParams::default()).await.unwrap();

        let acknowledged: usize = diaries.iter().map(|d| d.puts.len() + d.deletes.len()).sum();
        self.totals.acknowledged += acknowledged;
        self.totals.resumed += resumed;
        self.totals.survived += watched.puts.len() + watched.deletes.len() - acknowledged;
        println!("round {round}: {acknowledged} acknowledged, {resumed} seen after resuming, at {version}");
        server
    }

    fn writer(&mut self, client: &Client, state: &BTreeMap<String, Seen>, writer: u64) -> Writer {
        let name = |n| format!("w{writer}-{n}");
        Writer {
            api: maps(client),
            dice: Dice::new(self.dice.next()),
            names: (0..NAMES_EACH).map(|n| (name(n), state.get(&name(n)).copied())).collect(),
            numbers: self.numbers.clone(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_kill_9() {
    let rounds = std::env::var("GRANARY_CRASH_ROUNDS").map_or(5, |n| n.parse().expect("a number of rounds"));
    let mut crasher = Crasher {
        data: tempfile::tempdir().unwrap(),
        dice: Dice::from_env("GRANARY_CRASH_SEED"),
        numbers: Arc::new(AtomicU64::new(1)),
        totals: Totals { acknowledged: 0, resumed: 0, survived: 0 },
    };
    let mut server = Server::start(crasher.data.path());
    for round in 1..=rounds {
        let next = tokio::time::timeout(PATIENCE, crasher.round(server, round)).await;
        server = next.expect("a round is over in much less time");
    }
    let Totals { acknowledged, resumed, survived } = crasher.totals;
    println!(
        "{rounds} rounds: {acknowledged} writes acknowledged, none lost; {survived} without an answer had \
         happened; {resumed} changes delivered by resumed watches"
    );
    assert!(acknowledged > 0, "there was no load");
}

/// The first start is as good a moment as any other.
#[test]
fn a_first_start_that_was_killed_can_be_repeated() {
    let mut dice = Dice::from_env("GRANARY_CRASH_SEED");
    for _ in 0..8 {
        let data = tempfile::tempdir().unwrap();
        for _ in 0..3 {
            let mut child = common::up(data.path())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(dice.below(300)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        Server::start(data.path());
    }
}
