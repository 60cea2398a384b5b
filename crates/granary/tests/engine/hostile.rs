//! Peers that mean no good at every port of a running volume: they are turned away, cost next to nothing, and nobody
//! else notices.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use granary_block::wire::connection::Connection;
use granary_block::wire::frame::Header;
use granary_block::wire::key::Key;
use granary_enginectl::v1::CreateSnapshotRequest;
use granary_frontend::Volume;
use granary_frontend::nbd::NbdClient;
use tokio::io::AsyncReadExt;

use crate::cluster::{Cluster, HANGS, MIB, Process, on_one_thread, said};
use crate::programs::pattern;
use crate::stamps::Stamps;

/// Connections that say nothing, or only the beginning of something.
const HALF_OPEN: usize = 200;
/// What all of it together may cost a process.
const BOUND: u64 = 64 * MIB;

/// A port of the volume, and how a well-meaning peer begins.
struct Port {
    name: &'static str,
    address: String,
    /// What it sends first, as a whole.
    greeting: Vec<u8>,
    /// What is well-formed, and larger than anybody should be given.
    giants: Vec<Vec<u8>>,
}

/// Asks for the export, by the way that needs no answer.
fn nbd_greeting() -> Vec<u8> {
    b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0".to_vec()
}

fn nbd_request(command: u8, len: u32) -> Vec<u8> {
    [b"\x25\x60\x95\x13\0\0\0", &[command][..], &[7; 8], &[0; 8], &len.to_be_bytes()].concat()
}

fn nbd_port(address: String) -> Port {
    let option = |number: u8| [b"\0\0\0\x03IHAVEOPT\0\0\0", &[number][..], &[0xff; 4]].concat();
    let writes = [nbd_greeting(), nbd_request(1, u32::MAX), vec![1; 1 << 20]].concat();
    let reads = [nbd_greeting(), nbd_request(0, u32::MAX).repeat(500)].concat();
    let giants = vec![option(1), option(6), option(7), option(10), writes, reads];
    Port { name: "NBD", address, greeting: nbd_greeting(), giants }
}

fn http2_frame(kind: u8, flags: u8, stream: u8, len: u32, body: &[u8]) -> Vec<u8> {
    [&len.to_be_bytes()[1..], &[kind, flags, 0, 0, 0, stream], body].concat()
}

fn control_port(address: String) -> Port {
    let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &*http2_frame(4, 0, 0, 0, &[])].concat();
    let giant_frame = [preface.clone(), http2_frame(0, 0, 1, 0xff_ffff, &[1; 1 << 16])].concat();
    // A header that never ends, in pieces that each are small enough.
    let endless =
        [http2_frame(1, 0, 1, 1024, &[0; 1024]), http2_frame(9, 0, 1, 16384, &[0; 16384]).repeat(200)];
    let endless = [preface.clone(), endless.concat()].concat();
    let pings = [preface.clone(), http2_frame(6, 0, 0, 8, &[1; 8]).repeat(50_000)].concat();
    let settings = [preface.clone(), http2_frame(4, 0, 0, 0, &[]).repeat(50_000)].concat();
    let giants = vec![giant_frame, endless, pings, settings];
    Port { name: "control", address, greeting: preface, giants }
}

/// What an engine really says first, overheard.
async fn replica_port(address: String) -> Port {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap().to_string().parse().unwrap();
    let key = Key::from_bytes(b"a secret of the volume").unwrap();
    let dialling = Connection::dial(&here, "vol", &key, HANGS);
    let overhearing = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut greeting = Vec::with_capacity(4096);
        stream.read_buf(&mut greeting).await.unwrap();
        greeting
    };
    let (_, greeting) = tokio::join!(async { dialling.await.err() }, overhearing);
    let announce = |meta_len, payload_len| Header { kind: 0x41, meta_len, payload_len, ..Header::default() };
    let giant = announce(u32::MAX, u32::MAX).encode().to_vec();
    let patient = [announce(0, 512).encode().to_vec(), vec![1; 1 << 20]].concat();
    Port { name: "replica", address, greeting, giants: vec![giant, patient] }
}

/// Sends this, takes what is answered for a moment, and leaves.
fn throw(address: &str, bytes: &[u8]) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    // The other side may hang up in the middle.
    stream.write_all(bytes).ok();
    stream.read(&mut [0; 4096]).ok();
}

impl Port {
    fn attack(&self, seed: u64) {
        let noise = pattern(64 << 10, seed);
        for round in 0..100 {
            let from = round * 631 % noise.len();
            throw(&self.address, &noise[from..(from + 1 + round * 97).min(noise.len())]);
            let cut = round % (self.greeting.len() + 1);
            throw(&self.address, &self.greeting[..cut]);
            throw(&self.address, &[&self.greeting, &noise[from..]].concat());
        }
        for _ in 0..5 {
            self.giants.iter().for_each(|giant| throw(&self.address, giant));
        }
    }

    /// They stay for as long as they are kept.
    fn half_open(&self) -> Vec<TcpStream> {
        let open = |number: usize| {
            let mut stream = TcpStream::connect(&self.address).unwrap();
            let cut = number % self.greeting.len();
            stream.write_all(&self.greeting[..cut]).ok();
            stream
        };
        (0..HALF_OPEN).map(open).collect()
    }
}

fn descriptors(process: &Process) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", process.id())).unwrap().count()
}

async fn serves(cluster: &Cluster, stamps: &Stamps) {
    let volume = cluster.client("e").await;
    stamps.fill(&volume).await;
    stamps.check_acknowledged(&volume).await;
    assert_eq!(cluster.ctl("e", &["status"])["state"], "serving");
}

fn place<'a>(engine: &'a Process, name: &str) -> &'a str {
    engine.line.split_whitespace().find_map(|word| word.strip_prefix(name)).unwrap()
}

#[test]
fn nobody_gets_far_at_any_port_and_nobody_else_notices() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let flags = ["--frontend", "nbd://127.0.0.1:0", "--control", "tcp://127.0.0.1:0"];
        let engine = cluster.engine("e", &flags);
        let control = place(&engine, "control=").to_owned();
        let nbd = place(&engine, "frontends=").split(',').find_map(|place| place.strip_prefix("nbd://"));
        let nbd = nbd.unwrap().trim_end_matches('/').to_owned();
        cluster.control = Some(control.clone());
        let ports = [
            nbd_port(nbd.clone()),
            control_port(control.trim_start_matches("tcp://").to_owned()),
            replica_port(cluster.addresses[0].clone()).await,
        ];
        let stamps = Stamps::new(64, 21);
        serves(&cluster, &stamps).await;
        let replica = cluster.replicas[0].as_ref().unwrap();
        let before = [&engine, replica].map(|process| (process.peak_memory(), descriptors(process)));

        let volume = cluster.client("e").await;
        let load = stamps.load(&volume);
        let ports = std::sync::Arc::new(ports);
        let attacks = (0..ports.len()).map(|at| {
            let ports = ports.clone();
            tokio::task::spawn_blocking(move || ports[at].attack(at as u64 + 1))
        });
        for attack in attacks.collect::<Vec<_>>() {
            attack.await.unwrap();
        }
        load.finish().await;
        drop(volume);
        serves(&cluster, &stamps).await;

        let mut strangers = Vec::new();
        for port in ports.iter() {
            strangers.extend(port.half_open());
            serves(&cluster, &stamps).await;
        }
        let url = format!("nbd://{nbd}").parse().unwrap();
        let by_tcp = NbdClient::connect(&url, None).await.unwrap();
        assert_eq!(*by_tcp.size().borrow(), 64 * MIB);
        drop((strangers, by_tcp));

        let metrics = cluster.ctl("e", &["metrics"]);
        assert_eq!(metrics["errors"], 0, "{metrics}");
        for (process, (memory, files)) in [&engine, replica].into_iter().zip(before) {
            let grown = process.peak_memory().saturating_sub(memory);
            assert!(grown < BOUND, "{} MiB more than before: {}", grown / MIB, process.line);
            let began = Instant::now();
            while descriptors(process) > files {
                assert!(began.elapsed() < HANGS, "connections are left: {}", process.line);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let names: Vec<_> = ports.iter().map(|port| port.name).collect();
        assert_eq!(names, ["NBD", "control", "replica"]);
        engine.stop().await;
    });
}

#[test]
fn what_the_control_is_asked_has_limits() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let before = engine.peak_memory();
        let mut control = granary_enginectl::connect(&cluster.url("e").parse().unwrap()).await.unwrap();
        for len in [10 << 10, 3 << 20, 32 << 20] {
            let labels = [("label".to_owned(), "x".repeat(len))].into();
            for (name, labels) in [("x".repeat(len), Default::default()), ("long".to_owned(), labels)] {
                let request = CreateSnapshotRequest { name, labels, automatic: false };
                control.create_snapshot(request).await.expect_err("too much of a name");
            }
        }
        assert_eq!(cluster.states("e"), ["inSync"; 3]);
        assert_eq!(cluster.ctl("e", &["status"])["snapshots"], 0);
        let grown = engine.peak_memory() - before;
        assert!(grown < BOUND, "{} MiB more than before", grown / MIB);
        engine.stop().await;
    });
}

#[test]
fn a_replica_with_another_key_stays_out_and_both_sides_say_what_to_do() {
    on_one_thread(async {
        let mut cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        let volume = cluster.client("e").await;
        volume.write(0, Bytes::from(vec![1; 4096]), true).await.unwrap();
        cluster.kill_replica(1);
        let mut command = cluster.replica_with_key(1, &cluster.addresses[1], "wrong-key");
        let log = cluster.path("replica.log");
        command.stderr(std::fs::File::create(&log).unwrap());
        let stranger = Process::start(command);
        let (began, told) = (Instant::now(), "give the engine the key file the replica was started with");
        while !cluster.ctl_text("e", &["status"]).contains(told) {
            assert!(began.elapsed() < HANGS, "{}", cluster.ctl_text("e", &["status"]));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(cluster.states("e"), ["inSync", "away", "inSync"]);
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.contains("key file"), "{log}");
        volume.write(0, Bytes::from(vec![2; 4096]), true).await.unwrap();
        stranger.stop().await;
        cluster.start_replica(1);
        cluster.until_states("e", &["inSync"; 3]).await;
        cluster.assert_equal("e");
        engine.stop().await;
    });
}

/// Whoever asks a process that has stopped is told so, instead of waiting with it.
#[test]
fn an_engine_that_hangs_does_not_hang_its_operator() {
    on_one_thread(async {
        let cluster = Cluster::new(64 * MIB);
        let engine = cluster.engine("e", &[]);
        engine.signal(rustix::process::Signal::STOP);
        let asked = cluster.try_ctl("e", &["status"]);
        assert_eq!(asked.status.code(), Some(7), "{}", said(&asked));
        assert!(said(&asked).contains("does not answer"), "{}", said(&asked));
        engine.signal(rustix::process::Signal::CONT);
        assert_eq!(cluster.ctl("e", &["status"])["state"], "serving");
        engine.stop().await;
    });
}
