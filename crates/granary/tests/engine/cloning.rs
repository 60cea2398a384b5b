//! `granary clone`: a snapshot copied from replicas into another volume, whatever happens to either meanwhile.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use bytes::Bytes;
use granary_frontend::Volume;
use granary_frontend::nbd::NbdClient;
use rustix::process::Signal;

use crate::cluster::{Cluster, HANGS, MIB, Process, on_one_thread, said};
use crate::programs::pattern;
use crate::stamps::Stamps;

/// From the volume of one cluster into that of another.
fn clone_command(from: &Cluster, replicas: &[usize], snapshot: &str, to: &Cluster) -> Command {
    clone_by("vol", "key", from, replicas, snapshot, to)
}

fn clone_by(
    volume: &str,
    key: &str,
    from: &Cluster,
    replicas: &[usize],
    snapshot: &str,
    to: &Cluster,
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary"));
    command.args(["clone", "--volume", volume, "--snapshot", snapshot, "--to", &to.nbd("e")]);
    command.arg("--key-file").arg(from.path(key)).env("GRANARY_LOG", "info");
    for number in replicas {
        command.args(["--replica", &from.addresses[*number]]);
    }
    command
}

/// While what lives on this thread goes on.
async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

async fn ctl(cluster: &Cluster, arguments: &[&str]) {
    let output = output(cluster.ctl_command("e", arguments)).await;
    assert!(output.status.success(), "{}", said(&output));
}

/// One replica is enough to be copied to.
fn small(size: u64) -> (Cluster, Process) {
    let cluster = Cluster::with_flags(1, &["--size", &size.to_string()]);
    let engine = cluster.engine("e", &[]);
    (cluster, engine)
}

/// A number that the last line tells.
fn counted(output: &Output, name: &str) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout);
    let field = text.split_whitespace().find_map(|word| word.strip_prefix(&format!("{name}=")));
    field.unwrap_or_else(|| panic!("{name} is not told in {}", said(output))).parse().unwrap()
}

async fn read(volume: &NbdClient, at: u64, len: u64) -> Bytes {
    volume.read(at, len as u32).await.unwrap()
}

/// Data in the first half, with a gap, and nothing in the second; and what that is.
async fn paint(volume: &NbdClient, size: u64, seed: u64) -> Vec<u8> {
    let mut content = pattern(size as usize / 2, seed);
    content.resize(size as usize, 0);
    let gap = 3 * MIB as usize..4 * MIB as usize + 4096;
    content[gap].fill(0);
    for at in (0..size / 2).step_by(MIB as usize) {
        let part = &content[at as usize..(at + MIB) as usize];
        if part.iter().any(|byte| *byte != 0) {
            let skip = part.iter().position(|byte| *byte != 0).unwrap() / 4096 * 4096;
            volume.write(at + skip as u64, Bytes::copy_from_slice(&part[skip..]), false).await.unwrap();
        }
    }
    volume.flush().await.unwrap();
    content
}

async fn assert_content(volume: &NbdClient, content: &[u8]) {
    for (number, part) in content.chunks(MIB as usize).enumerate() {
        let at = number as u64 * MIB;
        assert!(read(volume, at, part.len() as u64).await == part, "the megabyte at {at} differs");
    }
}

#[test]
fn a_clone_is_the_snapshot_while_its_volume_is_written_to() {
    on_one_thread(async {
        let source = Cluster::new(64 * MIB);
        let engine = source.engine("e", &[]);
        let volume = source.client("e").await;
        let stamps = Stamps::new(512, 41);
        stamps.fill(&volume).await;
        let load = stamps.load(&volume);
        tokio::time::sleep(Duration::from_millis(200)).await;
        let from = stamps.moment();
        ctl(&source, &["snapshot", "create", "s"]).await;
        let to = stamps.moment();

        let (target, target_engine) = small(64 * MIB);
        let mut command = clone_command(&source, &[0, 1, 2], "s", &target);
        command.arg("--verify");
        let cloned = output(command).await;
        assert!(cloned.status.success(), "{}", said(&cloned));
        load.finish().await;
        let counts = ["read", "written", "zeroed", "skipped"].map(|name| counted(&cloned, name));
        assert_eq!(counts, [2 * MIB, 2 * MIB, 0, 62 * MIB], "{}", said(&cloned));
        assert!(target.disk_usage(0) < 8 * MIB, "holes stay holes");
        stamps.check_acknowledged(&volume).await;
        let copy = target.client("e").await;
        stamps.check_moment(&copy, (from, to)).await;

        // Byte for byte: what a return to the snapshot shows is what was copied.
        drop(volume);
        source.ctl("e", &["snapshot", "revert", "s"]);
        let volume = source.client("e").await;
        for at in (0..64 * MIB).step_by(MIB as usize) {
            assert!(
                read(&volume, at, MIB).await == read(&copy, at, MIB).await,
                "the megabyte at {at} differs"
            );
        }
        engine.stop().await;
        target_engine.stop().await;
    });
}

#[test]
fn a_target_that_is_not_empty_or_larger_is_zero_where_the_snapshot_is() {
    on_one_thread(async {
        let source = Cluster::with_flags(1, &["--size", "16MiB"]);
        let engine = source.engine("e", &[]);
        let volume = source.client("e").await;
        let mut content = paint(&volume, 16 * MIB, 42).await;
        ctl(&source, &["snapshot", "create", "s"]).await;
        // Nobody needs to serve the volume.
        drop(volume);
        engine.stop().await;

        let (target, engine) = small(24 * MIB);
        let copy = target.client("e").await;
        for at in (0..24).map(|number| number * MIB).filter(|at| *at != 10 * MIB) {
            copy.write(at, vec![0xee; MIB as usize].into(), false).await.unwrap();
        }
        let mut command = clone_command(&source, &[0], "s", &target);
        command.arg("--verify");
        let cloned = output(command).await;
        assert!(cloned.status.success(), "{}", said(&cloned));
        assert_eq!(counted(&cloned, "skipped"), MIB, "{}", said(&cloned));
        let data = 7 * MIB - 4096;
        assert_eq!(counted(&cloned, "written"), data, "{}", said(&cloned));
        assert_eq!(counted(&cloned, "zeroed"), 24 * MIB - MIB - data, "{}", said(&cloned));
        content.resize(24 * MIB as usize, 0);
        assert_content(&copy, &content).await;
        engine.stop().await;
    });
}

/// A clone of so much that there is time to interfere, once its target has begun to change.
struct Long {
    source: Cluster,
    target: Cluster,
    engines: Vec<Process>,
    content: Vec<u8>,
}

/// Far more than is read ahead of what is written.
const LONG: u64 = 128 * MIB;

impl Long {
    async fn prepare() -> Self {
        let source = Cluster::new(LONG);
        let engine = source.engine("e", &[]);
        let volume = source.client("e").await;
        let content = paint(&volume, LONG, 43).await;
        ctl(&source, &["snapshot", "create", "s"]).await;
        let target = Cluster::with_flags(1, &["--size", &LONG.to_string()]);
        // Slow enough that nothing here is a matter of luck.
        let slow = target.engine("e", &["--bandwidth", "16MiB"]);
        Self { source, target, engines: vec![engine, slow], content }
    }

    fn start(&self, replicas: &[usize]) -> tokio::task::JoinHandle<Output> {
        tokio::spawn(output(clone_command(&self.source, replicas, "s", &self.target)))
    }

    async fn until_begun(&self) {
        let began = Instant::now();
        while self.target.disk_usage(0) < 4 * MIB {
            assert!(began.elapsed() < HANGS, "nothing is copied");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[test]
fn a_source_that_is_killed_half_way_is_replaced_by_another() {
    on_one_thread(async {
        let mut long = Long::prepare().await;
        let cloning = long.start(&[1, 2]);
        long.until_begun().await;
        long.source.kill_replica(1);
        let cloned = cloning.await.unwrap();
        assert!(cloned.status.success(), "{}", said(&cloned));
        assert!(said(&cloned).contains("reading goes on with the next replica"), "{}", said(&cloned));
        assert_content(&long.target.client("e").await, &long.content).await;
    });
}

#[test]
fn a_snapshot_that_is_removed_half_way_is_told() {
    on_one_thread(async {
        let long = Long::prepare().await;
        let cloning = long.start(&[0, 1, 2]);
        long.until_begun().await;
        ctl(&long.source, &["snapshot", "remove", "s"]).await;
        let cloned = cloning.await.unwrap();
        assert_eq!(cloned.status.code(), Some(3), "{}", said(&cloned));
        assert!(said(&cloned).contains("snapshot s of volume vol was removed"), "{}", said(&cloned));
    });
}

#[test]
fn a_clone_that_is_told_to_stop_says_that_it_is_not_done() {
    on_one_thread(async {
        let mut long = Long::prepare().await;
        let mut command = clone_command(&long.source, &[0], "s", &long.target);
        let log = long.source.path("clone.log");
        command.stderr(std::fs::File::create(&log).unwrap());
        let mut cloning = Process::start_silent(command);
        long.until_begun().await;
        cloning.signal(Signal::TERM);
        assert_eq!(cloning.ended().await.code(), Some(1));
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.contains("stopped before the end"), "{log}");
        // Nobody else noticed.
        for engine in long.engines.drain(..) {
            engine.stop().await;
        }
    });
}

#[test]
fn what_cannot_be_cloned_is_refused_before_anything_is_written() {
    on_one_thread(async {
        let source = Cluster::with_flags(1, &["--size", "16MiB"]);
        let engine = source.engine("e", &[]);
        let volume = source.client("e").await;
        paint(&volume, 16 * MIB, 44).await;
        ctl(&source, &["snapshot", "create", "s"]).await;
        let (target, target_engine) = small(16 * MIB);
        let (tiny, tiny_engine) = small(8 * MIB);

        let mut nowhere = clone_command(&source, &[], "s", &target);
        nowhere.args(["--replica", "127.0.0.1:1"]);
        let gone = Cluster::with_flags(0, &[]);
        for (command, code, words) in [
            (clone_by("vol", "wrong-key", &source, &[0], "s", &target), 5, "refused the key"),
            (clone_by("other", "key", &source, &[0], "s", &target), 1, "belongs to another volume"),
            (clone_command(&source, &[0], "nonsense", &target), 3, "volume vol has no snapshot nonsense"),
            (clone_command(&source, &[0], "s", &tiny), 1, "give a volume of at least that size"),
            (clone_command(&source, &[0], "s", &gone), 7, "cannot reach"),
            (nowhere, 7, "cannot be reached"),
        ] {
            let shown = format!("{command:?}");
            let refused = output(command).await;
            assert_eq!(refused.status.code(), Some(code), "{shown}: {}", said(&refused));
            assert!(said(&refused).contains(words), "{words} is missing in {}", said(&refused));
        }
        for cluster in [&target, &tiny] {
            let runs = cluster.client("e").await.allocation(0, 8 * MIB).await.unwrap();
            assert!(runs.iter().all(|run| run.hole), "{runs:?}");
        }
        for engine in [engine, target_engine, tiny_engine] {
            engine.stop().await;
        }
    });
}
