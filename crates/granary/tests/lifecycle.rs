//! Starting and stopping `granary up`: settings, what it writes for its user, an orderly end, and errors that
//! say what to do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{PATIENCE, Server, granary, up};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams, WatchParams};
use rustix::process::Signal;

/// What the log says when the database was left open by whoever had it last.
const REPAIR: &str = "was not closed in order";

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Runs a `granary up` that must not start; gives what it says.
fn refused(command: std::process::Command, data_dir: &Path) -> String {
    match Server::try_start(command, data_dir) {
        Ok(_) => panic!("it started"),
        Err(said) => {
            assert!(said.starts_with("exit status: 1"), "{said}");
            said
        }
    }
}

async fn names(server: &Server) -> Vec<String> {
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client().await);
    maps.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

/// Creates objects until the server does not answer any more; gives the acknowledged ones.
async fn create_until_gone(maps: Api<ConfigMap>, writer: usize) -> Vec<String> {
    let mut made = Vec::new();
    loop {
        let name = format!("w{writer}-{}", made.len());
        match maps.create(&PostParams::default(), &config_map(&name)).await {
            Ok(_) => made.push(name),
            // The server said that it is stopping.
            Err(kube::Error::Api(status)) if status.code == 503 => return made,
            Err(kube::Error::Api(status)) => panic!("{status:?}"),
            Err(_) => return made,
        }
    }
}

async fn stops_in_order(signal: Signal) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let client = server.client().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let watch = {
        let stream = maps.watch(&WatchParams::default(), "0").await.unwrap();
        tokio::spawn(stream.try_collect::<Vec<_>>())
    };
    let writers: Vec<_> = (0..4).map(|w| tokio::spawn(create_until_gone(maps.clone(), w))).collect();
    // Somebody who connects and then says nothing must not keep anybody from an orderly end.
    let address = server.url().trim_start_matches("https://").to_string();
    let mut silent = TcpStream::connect(&address).unwrap();
    let deadline = std::time::Instant::now() + PATIENCE;
    while names(&server).await.iter().filter(|name| name.starts_with('w')).count() < 20 {
        assert!(std::time::Instant::now() < deadline, "there is no load");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    let status = tokio::task::spawn_blocking(move || server.stop(signal)).await.unwrap();
    assert_eq!(status.code(), Some(0));
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    assert!(!acknowledged.is_empty(), "there was no load");
    let events = tokio::time::timeout(PATIENCE, watch).await.unwrap().unwrap();
    let events = events.expect("a watch ends like any other answer");
    assert!(!events.is_empty());
    assert_eq!(silent.read(&mut [0; 16]).unwrap_or(0), 0);

    let server = Server::start(data.path());
    let mut found = names(&server).await;
    found.retain(|name| acknowledged.contains(name));
    found.sort();
    acknowledged.sort();
    assert_eq!(found, acknowledged);
    assert!(!server.log().contains(REPAIR), "the database was not closed:\n{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_load_ends_in_order() {
    stops_in_order(Signal::TERM).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_under_load_ends_in_order() {
    stops_in_order(Signal::INT).await;
}

#[test]
fn after_kill_9_the_log_tells_that_the_database_is_checked() {
    let data = tempfile::tempdir().unwrap();
    Server::start(data.path()).kill();
    assert!(Server::start(data.path()).log().contains(REPAIR));
}

#[test]
fn a_second_one_is_told_who_holds_the_directory() {
    let data = tempfile::tempdir().unwrap();
    let first = Server::start(data.path());
    let said = refused(up(data.path()), data.path());
    assert!(said.contains(&format!("pid {}", first.pid())), "{said}");
    assert!(said.contains(&first.url()), "{said}");
    assert!(said.contains("--data-dir"), "{said}");
}

#[test]
fn what_the_user_needs_is_written_for_the_user_only() {
    let data = tempfile::tempdir().unwrap();
    // A directory that others may look into; the files must not depend on it.
    std::fs::set_permissions(data.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = Server::start(data.path());
    for file in ["kubeconfig", "token", "granary.redb", "tls/ca.key"] {
        assert_eq!(mode(&data.path().join(file)), 0o600, "{file}");
    }
    for word in [server.url(), data.path().join("kubeconfig").display().to_string(), "Try next".into()] {
        assert!(server.announcement.contains(&word), "{word} in {}", server.announcement);
    }
    let token = std::fs::read_to_string(data.path().join("token")).unwrap();
    assert!(!server.announcement.contains(token.trim()) && !server.log().contains(token.trim()));

    let get = granary().arg("--data-dir").arg(data.path()).args(["get", "namespaces", "-o", "name"]).output();
    let get = get.unwrap();
    assert!(get.status.success(), "{}", String::from_utf8_lossy(&get.stderr));
    assert!(String::from_utf8_lossy(&get.stdout).contains("default"));
}

#[tokio::test]
async fn token_and_certificates_stay_over_restarts() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let address = server.url().trim_start_matches("https://").to_string();
    let client = server.client().await;
    assert!(server.stop(Signal::TERM).success());
    let mut command = granary();
    command.arg("--data-dir").arg(data.path()).args(["up", "--listen", &address]);
    let _server = Server::start_as(command, data.path());
    let namespaces: Api<Namespace> = Api::all(client);
    assert!(namespaces.get("default").await.is_ok(), "the client of before still works");
}

#[test]
fn settings_come_from_a_file_the_environment_and_flags() {
    let (home, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = home.path().join("granary.yaml");
    let text = format!("dataDir: {}\nlisten: 127.0.0.1:0\nlog: warn\n", data.path().display());
    std::fs::write(&file, text).unwrap();

    let mut by_file = granary();
    by_file.arg("up").arg("--config").arg(&file);
    let server = Server::start_as(by_file, data.path());
    assert!(server.announcement.contains(&data.path().display().to_string()));
    assert!(!server.log().contains("ready"), "{}", server.log());
    drop(server);

    let other = tempfile::tempdir().unwrap();
    let mut by_environment = granary();
    by_environment
        .arg("up")
        .env("GRANARY_CONFIG", &file)
        .env("GRANARY_DATA_DIR", other.path())
        .env("GRANARY_LISTEN", "127.0.0.2:0")
        .env("GRANARY_LOG", "info");
    let server = Server::start_as(by_environment, other.path());
    assert!(server.url().starts_with("https://127.0.0.2:"), "{}", server.url());
    assert!(server.log().contains("ready"), "{}", server.log());
    drop(server);

    let mut by_flag = up(other.path());
    by_flag.env("GRANARY_LISTEN", "127.0.0.2:0").env("GRANARY_DATA_DIR", data.path());
    let server = Server::start_as(by_flag, other.path());
    assert!(server.url().starts_with("https://127.0.0.1:"), "{}", server.url());
}

#[test]
fn bad_settings_are_refused_by_name() {
    let data = tempfile::tempdir().unwrap();
    let with = |flag: &str, value: &str| {
        let mut command = up(data.path());
        command.args([flag, value]);
        refused(command, data.path())
    };
    let missing = data.path().join("missing.yaml").display().to_string();
    assert!(with("--config", &missing).contains(&missing));
    let file = data.path().join("granary.yaml");
    std::fs::write(&file, "lissten: 127.0.0.1:1\n").unwrap();
    assert!(with("--config", &file.display().to_string()).contains("lissten"));
    assert!(with("--log", "granary=loud").contains("granary=loud"));
}

#[test]
fn a_port_in_use_is_named_with_the_way_out() {
    let data = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = granary();
    command.arg("--data-dir").arg(data.path()).args(["up", "--listen", &address]);
    let said = refused(command, data.path());
    assert!(said.contains(&address) && said.contains("--listen") && said.contains("in use"), "{said}");
}

#[test]
fn a_data_directory_that_cannot_be_made_or_written_is_named_with_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("data");
    let said = refused(up(&below), &below);
    assert!(said.contains(&below.display().to_string()) && said.contains("--data-dir"), "{said}");

    if rustix::process::geteuid().is_root() {
        // Modes do not stop root, but nobody can make files here.
        let said = refused(up(Path::new("/proc/self")), Path::new("/proc/self"));
        assert!(said.contains("/proc/self") && said.contains("--data-dir"), "{said}");
        return;
    }
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    let said = refused(up(&closed), &closed);
    assert!(said.contains(&closed.display().to_string()) && said.contains("--data-dir"), "{said}");
}

#[test]
fn a_database_of_something_else_is_left_alone() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("granary.redb");
    std::fs::File::create(&path).unwrap().write_all(b"my only copy").unwrap();
    let said = refused(up(data.path()), data.path());
    assert!(said.contains(&path.display().to_string()), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), b"my only copy");
}

/// The watch of a client that is slow to read must not keep the server from stopping.
#[tokio::test]
async fn a_watch_nobody_reads_does_not_hold_up_the_stop() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let namespaces: Api<Namespace> = Api::all(server.client().await);
    let stream = namespaces.watch(&WatchParams::default(), "0").await.unwrap();
    let mut stream = std::pin::pin!(stream);
    assert!(stream.next().await.is_some());
    let status = tokio::task::spawn_blocking(move || server.stop(Signal::TERM)).await.unwrap();
    assert_eq!(status.code(), Some(0));
}
