//! `granary replica` as a process: started, killed, stopped, misused, attacked, and its directory looked after.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use granary_block::geometry::{BLOCK, MAX_IO, Range};
use granary_block::ids::{EngineId, Generation, LayerId};
use granary_block::wire::address::Address;
use granary_block::wire::connection::{Connection, DialError};
use granary_block::wire::frame::Header;
use granary_block::wire::key::Key;
use granary_block::wire::message::{
    Control, Failure, FailureKind, Member, Membership, ReplicaInfo, Reply, Request, SnapshotSpec,
};
use rustix::process::{Pid, Signal, kill_process};

const DEADLINE: Duration = Duration::from_secs(30);
const SECRET: &str = "a secret of the volume\n";

fn granary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary"));
    command.arg("replica").env("GRANARY_LOG", "warn");
    command
}

/// A home for one replica and its key.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        std::fs::write(home.key_file(), SECRET).unwrap();
        std::fs::set_permissions(home.key_file(), PermissionsExt::from_mode(0o600)).unwrap();
        home
    }

    fn key_file(&self) -> PathBuf {
        self.0.path().join("key")
    }

    fn dir(&self) -> PathBuf {
        self.0.path().join("replica")
    }

    fn command(&self, dir: &Path, flags: &[&str]) -> Command {
        let mut command = granary();
        command.arg("--dir").arg(dir).arg("--key-file").arg(self.key_file());
        command.args(["--listen", "127.0.0.1:0"]).args(flags);
        command
    }

    fn start(&self, flags: &[&str]) -> Process {
        Process::start(self.command(&self.dir(), flags))
    }

    /// A start that must not succeed; what it says.
    fn refused(&self, flags: &[&str]) -> String {
        let output = self.command(&self.dir(), flags).output().unwrap();
        assert!(!output.status.success());
        assert!(output.stdout.is_empty(), "it said that it is ready");
        String::from_utf8(output.stderr).unwrap()
    }
}

struct Process {
    child: Child,
    address: Address,
}

impl Process {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.split(' ').nth(1).unwrap_or_else(|| panic!("not ready: {line:?}")).parse().unwrap();
        assert!(line.starts_with("ready "), "{line}");
        Self { child, address }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn stop(mut self) {
        self.signal(Signal::TERM);
        assert!(self.child.wait().unwrap().success(), "SIGTERM ends it in order");
    }

    fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    async fn dial(&self) -> (Engine, ReplicaInfo) {
        let key = Key::from_bytes(SECRET.as_bytes()).unwrap();
        let (connection, info) = Connection::dial(&self.address, "vol", &key, DEADLINE).await.unwrap();
        (Engine(connection), info)
    }

    async fn owner(&self) -> Engine {
        let (mut engine, info) = self.dial().await;
        let members = vec![Member {
            replica: info.replica,
            address: self.address.to_string(),
            boot: info.boot.clone(),
        }];
        let record =
            Membership { generation: info.membership.generation.next(), members, ..Membership::default() };
        assert_eq!(engine.control(Control::Open { engine: EngineId::random(), record }).await, Reply::Done);
        engine
    }

    /// The most memory it ever had, in KiB.
    fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

/// A test that fails must not leave a process behind.
impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

struct Engine(Connection);

impl Engine {
    async fn ask(&mut self, request: Request) -> Reply {
        self.0.sender.queue(1, &request);
        self.0.sender.flush().await.unwrap();
        let mut replies = Vec::new();
        self.0.receiver.receive(&mut replies).await.unwrap();
        replies.pop().unwrap().1
    }

    async fn control(&mut self, control: Control) -> Reply {
        self.ask(Request::Control(control)).await
    }

    async fn write(&mut self, block: u64, stamp: u8) -> Reply {
        let data = vec![stamp; BLOCK as usize].into();
        self.ask(Request::Write { offset: block * BLOCK, data, durable: false }).await
    }

    async fn read(&mut self, block: u64) -> Reply {
        self.ask(Request::Read { range: Range::new(block * BLOCK, BLOCK) }).await
    }
}

fn stamped(stamp: u8) -> Reply {
    Reply::Data(vec![stamp; BLOCK as usize].into())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[tokio::test]
async fn a_replica_survives_kill_and_stops_in_order() {
    let home = Home::new();
    let process = home.start(&["--size", "64MiB"]);
    let mut engine = process.owner().await;
    assert_eq!(engine.write(3, 7).await, Reply::Done);
    assert_eq!(engine.ask(Request::Flush).await, Reply::Done);
    process.kill();

    let process = home.start(&[]);
    let (_, info) = process.dial().await;
    assert_eq!((info.size, info.clean), (64 << 20, false));
    assert_eq!(info.membership.generation, Generation(1));
    let mut engine = process.owner().await;
    assert_eq!(engine.read(3).await, stamped(7));
    assert_eq!(engine.control(Control::Close).await, Reply::Done);
    process.stop();

    let process = home.start(&["--size", "64M"]);
    assert!(process.dial().await.1.clean);
    process.stop();
}

#[tokio::test]
async fn mistakes_are_told_with_the_way_out() {
    let home = Home::new();
    let message = home.refused(&[]);
    assert!(message.contains("--size"), "{message}");
    let message = home.refused(&["--size", "10 parsecs"]);
    assert!(message.contains("10GiB"), "{message}");
    let message = home.refused(&["--size", "1000"]);
    assert!(message.contains("1000"), "{message}");

    let process = home.start(&["--size", "64MiB", "--volume", "vol"]);
    let message = home.refused(&[]);
    assert!(message.contains(&process.child.id().to_string()), "the holder is named: {message}");
    let wrong = Key::from_bytes(b"another secret altogether").unwrap();
    let refused = Connection::dial(&process.address, "vol", &wrong, DEADLINE).await.err().unwrap();
    assert!(matches!(refused, DialError::KeyRefused { .. }), "{refused}");
    let right = Key::from_bytes(SECRET.as_bytes()).unwrap();
    let refused = Connection::dial(&process.address, "other", &right, DEADLINE).await.err().unwrap();
    assert!(matches!(refused, DialError::WrongVolume { .. }), "{refused}");
    process.stop();

    let message = home.refused(&["--size", "128MiB"]);
    assert!(message.contains("64 MiB") && message.contains("leave --size out"), "{message}");
    let message = home.refused(&["--volume", "other"]);
    assert!(message.contains("belongs to volume vol"), "{message}");
    std::fs::write(home.key_file(), "short").unwrap();
    let message = home.refused(&[]);
    assert!(message.contains("at least 16"), "{message}");
}

#[tokio::test]
async fn a_directory_can_be_inspected_repaired_and_cloned() {
    let home = Home::new();
    let process = home.start(&["--size", "64MiB"]);
    let mut engine = process.owner().await;
    assert_eq!(engine.write(0, 1).await, Reply::Done);
    let snapshot = SnapshotSpec {
        name: "before".into(),
        created: "2026-01-01T00:00:00Z".parse().unwrap(),
        user_created: true,
        labels: Default::default(),
    };
    let taken = engine.control(Control::Snapshot { snapshot, new_head: LayerId::random() }).await;
    assert_eq!(taken, Reply::Done);
    assert_eq!(engine.write(0, 2).await, Reply::Done);

    let inspect = |flags: &[&str]| granary().arg("inspect").arg(home.dir()).args(flags).output().unwrap();
    let shown = inspect(&[]);
    assert!(shown.status.success(), "{}", said(&shown));
    for word in ["64 MiB", "before", "(head)", "vol", &process.child.id().to_string()] {
        assert!(said(&shown).contains(word), "{word} is missing in {}", said(&shown));
    }
    process.stop();
    let json: serde_json::Value = serde_json::from_slice(&inspect(&["-o", "json"]).stdout).unwrap();
    assert_eq!(json["metadata"]["size"], 64 << 20);
    assert_eq!(json["layers"].as_array().unwrap().len(), 2);

    let copy = home.0.path().join("copy");
    let clone = |name: &str| {
        let mut command = granary();
        command.arg("clone").arg("--from").arg(home.dir()).args(["--snapshot", name, "--to"]).arg(&copy);
        command.output().unwrap()
    };
    assert!(said(&clone("nonesuch")).contains("nonesuch"));
    let cloned = clone("before");
    assert!(cloned.status.success(), "{}", said(&cloned));
    let process = Process::start(home.command(&copy, &[]));
    assert_eq!(process.owner().await.read(0).await, stamped(1));
    process.stop();

    let stray = home.dir().join("layer-11111111-2222-4333-8444-555555555555.img");
    std::fs::write(&stray, vec![1; 8192]).unwrap();
    let shown = inspect(&[]);
    assert!(!shown.status.success() && said(&shown).contains("layer-11111111"), "{}", said(&shown));
    let repair = |flags: &[&str]| granary().arg("repair").arg(home.dir()).args(flags).output().unwrap();
    assert!(said(&repair(&[])).contains("would be done") && stray.exists());
    let repaired = repair(&["--apply"]);
    assert!(repaired.status.success() && !stray.exists(), "{}", said(&repaired));
    assert!(said(&repair(&[])).contains("nothing is wrong"));
}

/// Everything that a peer without the key can do to a port, as fast as it can.
fn harass(address: &str, rounds: usize) {
    let announce = |kind, meta_len, payload_len| Header { kind, meta_len, payload_len, ..Header::default() };
    for round in 0..rounds {
        let Ok(mut stream) = TcpStream::connect(address) else { continue };
        let bytes: Vec<u8> = match round % 5 {
            0 => vec![0xff; 64 << 10],
            1 => announce(0x41, 0, 500).encode()[..30].to_vec(),
            2 => announce(0x41, u32::MAX, u32::MAX).encode().to_vec(),
            3 => b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            _ => announce(0x41, 0, 400).encode().repeat(100),
        };
        // The other side may hang up in the middle.
        stream.write_all(&bytes).ok();
        if round % 3 == 0 {
            stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
            stream.read_exact(&mut [0; 64]).ok();
        }
    }
}

#[tokio::test]
async fn an_attack_neither_stops_the_service_nor_grows_its_memory() {
    let home = Home::new();
    let process = home.start(&["--size", "64MiB"]);
    let mut engine = process.owner().await;
    assert_eq!(engine.write(0, 1).await, Reply::Done);
    let before = process.peak_memory();
    let target = process.address.to_string();
    let strangers: Vec<_> = (0..4)
        .map(|_| {
            let target = target.clone();
            std::thread::spawn(move || harass(&target, 300))
        })
        .collect();
    // With the right key one may ask for more, but not be listened to without end either.
    for round in 0..8u64 {
        let Engine(mut greedy) = process.owner().await;
        for id in 0..2000 {
            let range = Range::new(0, u64::from(MAX_IO));
            let request = if (id + round).is_multiple_of(2) {
                Request::Read { range }
            } else {
                Request::Control(Control::Digests { range, chunk: BLOCK })
            };
            greedy.sender.queue(id, &request);
        }
        tokio::time::timeout(Duration::from_millis(100), greedy.sender.flush()).await.ok();
        assert_eq!(engine.control(Control::Ping).await, Reply::Done);
    }
    for stranger in strangers {
        stranger.join().unwrap();
    }
    assert_eq!(process.owner().await.read(0).await, stamped(1));
    let grown = process.peak_memory() - before;
    assert!(grown < 64 << 10, "{grown} KiB more than before");
    process.stop();
}

/// A file system of its own, small enough to be filled in a moment.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let at = tempfile::tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=32m", "tmpfs"]).arg(at.path()).status();
        assert!(mounted.unwrap().success(), "a small disk cannot be mounted; this test needs root");
        Self(at)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).status().ok();
    }
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_serves_reads_until_there_is_room_again() {
    let home = Home::new();
    let disk = SmallDisk::mount();
    let process = Process::start(home.command(&disk.0.path().join("r"), &["--size", "1GiB"]));
    let mut engine = process.owner().await;
    let mut written = 0;
    let refused = loop {
        match engine.write(written, 5).await {
            Reply::Done => written += 1,
            other => break other,
        }
    };
    let Reply::Failed(Failure { kind: FailureKind::NoSpace, message }) = refused else {
        panic!("{refused:?}")
    };
    assert!(message.contains("free"), "{message}");
    assert!(written > 1000, "only {written} blocks of a 32 MiB disk were used");
    assert_eq!(engine.write(0, 6).await, Reply::Done, "what has its place already can be overwritten");
    assert_eq!(engine.read(written - 1).await, stamped(5));
    let range = Range::new(0, written / 2 * BLOCK);
    assert_eq!(engine.ask(Request::Zero { range, allocate: false, durable: true }).await, Reply::Done);
    assert_eq!(engine.write(written, 7).await, Reply::Done);
    assert_eq!(engine.control(Control::Close).await, Reply::Done);
    process.stop();
}
