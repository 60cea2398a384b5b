//! A disk that is really full: writes are refused with advice, reads go on, nothing acknowledged is lost, and
//! when space returns so do writes, without a restart.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{PATIENCE, Server, up};
use granary_apiserver::store;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt};
use rustix::process::Signal;

/// A file system of its own, small enough to be filled in a moment.
struct SmallDisk {
    at: tempfile::TempDir,
}

impl SmallDisk {
    /// `None`, and a line that says so, where this user may not mount.
    fn mount(megabytes: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            // Past the test harness, which would keep it to itself.
            let line = format!("SKIPPED: a disk of {megabytes} MiB needs root to be mounted\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return None;
        }
        let at = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let status =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at.path()).status();
        assert!(status.unwrap().success(), "a tmpfs cannot be mounted although we are root");
        Some(Self { at })
    }

    fn data_dir(&self) -> PathBuf {
        self.at.path().join("data")
    }

    fn free(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.at.path()).unwrap();
        stat.f_bavail * stat.f_frsize
    }

    fn ballast(&self) -> PathBuf {
        self.at.path().join("ballast")
    }

    /// Takes every free block.
    fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.ballast()).unwrap();
        for block in [1 << 20, 4096] {
            while file.write_all(&vec![1; block]).is_ok() {}
        }
        assert!(self.free() < 4096, "{} bytes are still free", self.free());
    }

    fn relieve(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because a failed test may still have a server on it.
        Command::new("umount").arg("-l").arg(self.at.path()).status().ok();
    }
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn config_map(name: &str, bytes: usize) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map.data = Some([("content".to_string(), format!("{name} ").repeat(bytes / (name.len() + 1)))].into());
    map
}

async fn create(api: &Api<ConfigMap>, name: &str, bytes: usize) -> kube::Result<ConfigMap> {
    api.create(&PostParams::default(), &config_map(name, bytes)).await
}

/// The refusal of a write for want of space, with what to do about it.
fn assert_full<T: std::fmt::Debug>(answer: kube::Result<T>) {
    match answer {
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (507, "InsufficientStorage"), "{status:?}");
            assert!(status.message.contains("free some space"), "{status:?}");
        }
        other => panic!("a full disk answered {other:?}"),
    }
}

/// Exactly these objects are there, with exactly what was written.
async fn assert_holds(api: &Api<ConfigMap>, wanted: &[ConfigMap]) {
    let list = api.list(&ListParams::default()).await.unwrap();
    let found: Vec<_> =
        list.items.iter().map(|m| (m.name_any(), m.resource_version(), m.data.clone())).collect();
    let mut wanted: Vec<_> =
        wanted.iter().map(|m| (m.name_any(), m.resource_version(), m.data.clone())).collect();
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found.len(), wanted.len());
    assert!(found == wanted, "the objects differ from what was acknowledged");
}

#[tokio::test]
async fn a_disk_filled_by_others_stops_writes_until_they_leave() {
    let Some(disk) = SmallDisk::mount(24) else { return };
    let server = Server::start(&disk.data_dir());
    let api = maps(&server.client().await);
    let mut acknowledged = Vec::new();
    for n in 0..10 {
        acknowledged.push(create(&api, &format!("before-{n}"), 10_000).await.unwrap());
    }

    disk.fill();
    for map in acknowledged.iter().take(3) {
        let name = map.name_any();
        assert_full(create(&api, &format!("not-{name}"), 10_000).await);
        let mut changed = map.clone();
        changed.data = None;
        assert_full(api.replace(&name, &PostParams::default(), &changed).await);
        assert_full(api.delete(&name, &DeleteParams::default()).await);
    }
    assert_holds(&api, &acknowledged).await;
    assert_eq!(api.get("before-7").await.unwrap().data, acknowledged[7].data);

    disk.relieve();
    for n in 0..10 {
        acknowledged.push(create(&api, &format!("after-{n}"), 10_000).await.unwrap());
    }
    assert_holds(&api, &acknowledged).await;
    assert!(server.stop(Signal::TERM).success());
    let server = Server::start(&disk.data_dir());
    assert_holds(&maps(&server.client().await), &acknowledged).await;
}

#[tokio::test]
async fn objects_that_filled_the_disk_can_be_deleted_and_make_room() {
    let Some(disk) = SmallDisk::mount(32) else { return };
    let server = Server::start(&disk.data_dir());
    let api = maps(&server.client().await);
    let mut acknowledged = Vec::new();
    loop {
        match create(&api, &format!("large-{}", acknowledged.len()), 700_000).await {
            Ok(made) => acknowledged.push(made),
            refused => break assert_full(refused),
        }
        assert!(acknowledged.len() < 100, "the disk does not fill");
    }
    assert!(acknowledged.len() > 5, "only {} objects fit on the disk", acknowledged.len());
    assert_holds(&api, &acknowledged).await;

    let mut kept = acknowledged.split_off(acknowledged.len() / 2);
    let deadline = Instant::now() + PATIENCE;
    // History keeps deleted objects for a while, but not when there is no space for it.
    for map in &acknowledged {
        while let Err(error) = api.delete(&map.name_any(), &DeleteParams::default()).await {
            assert_full(Err::<(), _>(error));
            assert!(Instant::now() < deadline, "nothing can be deleted");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    for n in 0..3 {
        let made = loop {
            match create(&api, &format!("again-{n}"), 700_000).await {
                Ok(made) => break made,
                refused => assert_full(refused),
            }
            assert!(Instant::now() < deadline, "deleting made no room");
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        kept.push(made);
    }
    assert_holds(&api, &kept).await;
}

/// Space vanishes faster than anybody can check for it, so that commits fail in the middle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fills_up_under_load_loses_nothing() {
    let Some(disk) = SmallDisk::mount(24) else { return };
    let server = Server::start(&disk.data_dir());
    let api = maps(&server.client().await);
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let writers: Vec<_> =
            (0..4).map(|w| tokio::spawn(write_until_refused(api.clone(), round, w))).collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        disk.fill();
        let mut unknown = Vec::new();
        for writer in writers {
            let (done, refused) = writer.await.unwrap();
            acknowledged.extend(done);
            unknown.push(refused);
        }
        assert_holds_at_least(&api, &acknowledged, &unknown).await;
        disk.relieve();
        acknowledged.push(create(&api, &format!("relieved-{round}"), 1000).await.unwrap());
        // What had no clear answer is cleared away, and the next round compares exactly.
        for name in unknown {
            api.delete(&name, &DeleteParams::default()).await.ok();
        }
        assert_holds(&api, &acknowledged).await;
    }
    println!("{} commits failed half-way", server.log().matches("a commit failed").count());
}

/// Without its reserve the database meets the end of the disk in the middle of commits.
#[tokio::test]
async fn a_commit_that_finds_no_space_leaves_the_store_as_it_was() {
    let Some(disk) = SmallDisk::mount(12) else { return };
    let mut options = store::Options::new(disk.at.path().join("granary.redb"));
    options.reserve_bytes = 0;
    let store = store::Store::open(options.clone()).unwrap();
    let write = |n: u64, size: usize| store::Write {
        key: store::Key::new("configmaps.", "default", &format!("n{n}")),
        expect: store::Expect::Absent,
        action: store::Action::Put(serde_json::json!({ "metadata": {}, "data": "x".repeat(size) })),
        previous: None,
    };
    let mut failures = 0;
    for round in 0..3 {
        disk.fill();
        // Free pages inside the file are used up first.
        let refused = loop {
            match store.commit(write(store.revision() + 1, 50_000)).await {
                Ok(stored) => assert_eq!(stored.revision, store.revision()),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, store::StoreError::Full { .. }), "{refused}");
        failures += 1;
        let acknowledged = store.revision();
        assert_eq!(store.count(&store::Prefix::everything()).unwrap(), acknowledged, "reads go on");
        disk.relieve();
        let stored = store.commit(write(acknowledged + 1, 50_000)).await.unwrap();
        assert_eq!(stored.revision, acknowledged + 1, "round {round}");
    }
    assert_eq!(failures, 3);
    let acknowledged = store.revision();
    store.close().await;
    let store = store::Store::open(options).unwrap();
    assert_eq!(store.revision(), acknowledged);
    assert_eq!(store.count(&store::Prefix::everything()).unwrap(), acknowledged);
}

async fn write_until_refused(api: Api<ConfigMap>, round: u32, writer: u32) -> (Vec<ConfigMap>, String) {
    let mut done = Vec::new();
    loop {
        let name = format!("r{round}-w{writer}-{}", done.len());
        match create(&api, &name, 20_000).await {
            Ok(made) => done.push(made),
            Err(kube::Error::Api(status)) => {
                assert!([500, 507].contains(&status.code), "{status:?}");
                return (done, name);
            }
            Err(other) => panic!("no answer: {other}"),
        }
        // Loopback is faster than a disk of this size; leave the filler something to race for.
        if done.len() > 60 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Everything acknowledged is there, and else only what was refused in doubt.
async fn assert_holds_at_least(api: &Api<ConfigMap>, wanted: &[ConfigMap], unknown: &[String]) {
    let list = api.list(&ListParams::default()).await.unwrap();
    for map in wanted {
        let found = list.items.iter().find(|m| m.name_any() == map.name_any());
        assert_eq!(found.map(|m| &m.data), Some(&map.data), "{} is lost or damaged", map.name_any());
    }
    for map in &list.items {
        let name = map.name_any();
        assert!(wanted.iter().any(|m| m.name_any() == name) || unknown.contains(&name), "who made {name}?");
    }
}

#[test]
fn a_first_start_on_a_full_disk_says_so() {
    let Some(disk) = SmallDisk::mount(4) else { return };
    std::fs::create_dir(disk.data_dir()).unwrap();
    disk.fill();
    let said = fails_to_start(&disk.data_dir());
    assert!(said.contains("is full") && said.contains("free some space"), "{said}");
    assert!(said.contains(&disk.data_dir().display().to_string()), "{said}");
    disk.relieve();
}

fn fails_to_start(data_dir: &Path) -> String {
    match Server::try_start(up(data_dir), data_dir) {
        Err(said) => said,
        Ok(_) => panic!("it started"),
    }
}

/// Who reboots a machine with a full disk still wants to see what is on it.
#[tokio::test]
async fn a_restart_on_a_full_disk_serves_reads() {
    let Some(disk) = SmallDisk::mount(24) else { return };
    let server = Server::start(&disk.data_dir());
    let address = server.url().trim_start_matches("https://").to_string();
    let made = create(&maps(&server.client().await), "kept", 5000).await.unwrap();
    assert!(server.stop(Signal::TERM).success());
    disk.fill();
    let mut command = common::granary();
    command.arg("--data-dir").arg(disk.data_dir()).args(["up", "--listen", &address]);
    let server = Server::start_as(command, &disk.data_dir());
    let api = maps(&server.client().await);
    assert_holds(&api, std::slice::from_ref(&made)).await;
    assert_full(create(&api, "refused", 5000).await);
    disk.relieve();
    create(&api, "accepted", 5000).await.unwrap();
}
