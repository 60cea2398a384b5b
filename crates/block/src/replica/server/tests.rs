//! A real server on a real socket, with engines of every temper at the other end.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle as Task;

use super::*;
use crate::disk::directory::Directory;
use crate::disk::simulated::Simulated;
use crate::geometry::{BLOCK, MAX_IO, Range};
use crate::ids::{EngineId, Generation};
use crate::replica::link;
use crate::store::{CreateOptions, OpenOptions};
use crate::wire::connection::{Connection, ConnectionError, DialError, Receiver, Sender};
use crate::wire::frame::Header;
use crate::wire::message::{Control, Failure, FailureKind, Member, Membership, ReplicaInfo, Reply, Request};

const SIZE: u64 = 64 << 20;
const DEADLINE: Duration = Duration::from_secs(20);

fn key(secret: &str) -> Key {
    Key::from_bytes(secret.as_bytes()).unwrap()
}

fn right_key() -> Key {
    key("the right key of this volume")
}

/// A running server and what stops it.
struct Running {
    address: Address,
    counters: Arc<Counters>,
    stop: oneshot::Sender<()>,
    task: Task<Result<(), ServeError>>,
}

async fn serve(address: &str, store: Store) -> Running {
    let server = Server::bind(&address.parse().unwrap(), Arc::new(store), right_key()).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let (address, counters) = (server.address().clone(), server.counters().clone());
    let task = tokio::spawn(server.run(async {
        stopped.await.ok();
    }));
    Running { address, counters, stop, task }
}

async fn in_memory() -> Running {
    serve("127.0.0.1:0", Store::create(Arc::new(Simulated::new()), CreateOptions::new(SIZE)).unwrap()).await
}

impl Running {
    async fn dial(&self) -> (Engine, ReplicaInfo) {
        let (connection, info) =
            Connection::dial(&self.address, "vol", &right_key(), DEADLINE).await.unwrap();
        let (sender, receiver) = connection.split();
        (Engine { sender, receiver, next: 1 }, info)
    }

    /// An engine that owns the replica.
    async fn owner(&self, generation: u64) -> Engine {
        let (mut engine, info) = self.dial().await;
        assert_eq!(engine.open(&info, generation).await, Reply::Done);
        engine
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

struct Engine {
    sender: Sender,
    receiver: Receiver,
    next: u64,
}

impl Engine {
    async fn ask(&mut self, request: Request) -> Reply {
        let mut replies = self.ask_all(&[request]).await;
        replies.pop().unwrap()
    }

    /// All at once; the answers in the order of the requests.
    async fn ask_all(&mut self, requests: &[Request]) -> Vec<Reply> {
        let first = self.next;
        for request in requests {
            self.sender.queue(self.next, request);
            self.next += 1;
        }
        let mut replies = Vec::new();
        let flush = async { self.sender.flush().await.unwrap() };
        let collect = async {
            while replies.len() < requests.len() {
                self.receiver.receive(&mut replies).await.unwrap();
            }
        };
        tokio::join!(flush, collect);
        replies.sort_by_key(|(id, _)| *id);
        let ids: Vec<u64> = replies.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, (first..self.next).collect::<Vec<_>>(), "every request is answered once");
        replies.into_iter().map(|(_, reply)| reply).collect()
    }

    async fn open(&mut self, info: &ReplicaInfo, generation: u64) -> Reply {
        let members = vec![Member { replica: info.replica, address: "here".into(), boot: String::new() }];
        let record = Membership { generation: Generation(generation), members, ..Membership::default() };
        self.ask(Request::Control(Control::Open { engine: EngineId::random(), record })).await
    }
}

fn write(block: u64, stamp: u8, durable: bool) -> Request {
    Request::Write { offset: block * BLOCK, data: vec![stamp; BLOCK as usize].into(), durable }
}

fn read(block: u64) -> Request {
    Request::Read { range: Range::new(block * BLOCK, BLOCK) }
}

fn stamped(stamp: u8) -> Reply {
    Reply::Data(vec![stamp; BLOCK as usize].into())
}

fn is_fenced(reply: &Reply) -> bool {
    matches!(reply, Reply::Failed(Failure { kind: FailureKind::Fenced, .. }))
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart_over_tcp_and_unix() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("replica");
    std::fs::create_dir(&directory).unwrap();
    let disk = || Arc::new(Directory::open(&directory).unwrap());
    let running = serve("127.0.0.1:0", Store::create(disk(), CreateOptions::new(SIZE)).unwrap()).await;
    let mut engine = running.owner(1).await;
    let writes: Vec<_> = (0..100).map(|n| write(n, n as u8, n % 10 == 0)).collect();
    assert!(engine.ask_all(&writes).await.iter().all(|reply| *reply == Reply::Done));
    let zero = Request::Zero { range: Range::new(BLOCK, BLOCK), allocate: false, durable: true };
    assert_eq!(engine.ask(zero).await, Reply::Done);
    assert_eq!(engine.ask(Request::Flush).await, Reply::Done);
    assert_eq!(engine.ask(Request::Control(Control::Close)).await, Reply::Done);
    drop(engine);
    running.stop().await;

    let socket = format!("unix://{}", home.path().join("r.sock").display());
    let running = serve(&socket, Store::open(disk(), OpenOptions::default()).unwrap()).await;
    let (mut engine, info) = running.dial().await;
    assert!(info.clean && info.membership.generation == Generation(1));
    assert_eq!(engine.open(&info, 2).await, Reply::Done);
    let reads: Vec<_> = (0..100).map(read).collect();
    for (n, reply) in engine.ask_all(&reads).await.into_iter().enumerate() {
        assert_eq!(reply, stamped(if n == 1 { 0 } else { n as u8 }), "block {n}");
    }
    drop(engine);
    running.stop().await;
    assert!(!home.path().join("r.sock").exists(), "the socket goes with the server");
}

#[tokio::test]
async fn a_socket_left_behind_by_a_killed_server_is_no_obstacle() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("r.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let store = Store::create(Arc::new(Simulated::new()), CreateOptions::new(SIZE)).unwrap();
    let running = serve(&format!("unix://{}", path.display()), store).await;
    running.owner(1).await;
    running.stop().await;
}

#[tokio::test]
async fn everybody_who_is_not_let_in_is_told_why() {
    let running = in_memory().await;
    let dial = |volume: &'static str, key: Key| {
        let address = running.address.clone();
        async move { Connection::dial(&address, volume, &key, DEADLINE).await.err() }
    };
    let wrong = dial("vol", key("the key of some other volume")).await.unwrap();
    assert!(matches!(wrong, DialError::KeyRefused { .. }) && !wrong.is_temporary(), "{wrong}");
    assert!(dial("other", right_key()).await.is_none(), "nobody has opened it yet");
    running.owner(1).await;
    let other = dial("other", right_key()).await.unwrap();
    assert!(matches!(other, DialError::WrongVolume { .. }), "{other}");
    assert!(dial("vol", right_key()).await.is_none());
    running.stop().await;
}

#[tokio::test]
async fn nobody_there_and_nobody_sensible_there_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Address = listener.local_addr().unwrap().to_string().parse().unwrap();
    let patience = Duration::from_millis(200);
    let silent = Connection::dial(&address, "vol", &right_key(), patience).await.err().unwrap();
    assert!(matches!(silent, DialError::TimedOut { .. }) && silent.is_temporary(), "{silent}");
    let talk = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut stream2, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 mail.example.org ESMTP\r\n").await.ok();
        stream2.write_all(b"220 mail.example.org ESMTP\r\n").await.ok();
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let right = right_key();
    let (mail, ()) = tokio::join!(Connection::dial(&address, "vol", &right, DEADLINE), talk);
    let mail = mail.err().unwrap();
    assert!(matches!(mail, DialError::Protocol { .. }), "{mail}");
    drop(listener);
    let gone = Connection::dial(&address, "vol", &right_key(), DEADLINE).await.err().unwrap();
    assert!(matches!(gone, DialError::Unreachable { .. }) && gone.is_temporary(), "{gone}");
}

#[tokio::test]
async fn the_newer_of_two_engines_wins_and_a_gone_one_leaves_the_replica_free() {
    let running = in_memory().await;
    let mut old = running.owner(1).await;
    assert_eq!(old.ask(write(0, 1, false)).await, Reply::Done);
    let mut new = running.owner(2).await;
    assert_eq!(new.ask(write(0, 2, false)).await, Reply::Done);
    for request in
        [write(0, 1, false), write(0, 1, true), read(0), Request::Flush, Request::Control(Control::Close)]
    {
        assert!(is_fenced(&old.ask(request).await));
    }
    assert_eq!(old.ask(Request::Control(Control::Ping)).await, Reply::Done);
    assert_eq!(new.ask(read(0)).await, stamped(2));
    drop(new);
    let mut third = running.owner(3).await;
    assert_eq!(third.ask(read(0)).await, stamped(2));
    running.stop().await;
}

/// A well-formed frame of any kind.
fn frame(kind: u8, meta: &[u8], payload: &[u8]) -> Vec<u8> {
    let header = Header {
        kind,
        id: 77,
        meta_len: meta.len() as u32,
        payload_len: payload.len() as u32,
        body_crc: crate::wire::checksum::body_crc(meta, payload),
        ..Header::default()
    };
    let mut bytes = header.encode().to_vec();
    bytes.put_slice(meta);
    bytes.put_slice(payload);
    bytes
}

#[tokio::test]
async fn garbage_at_the_door_disturbs_nobody() {
    let running = in_memory().await;
    let mut engine = running.owner(1).await;
    let Address::Tcp(target) = &running.address else { panic!() };
    let announced = Header { kind: 0x41, payload_len: u32::MAX, ..Header::default() }.encode();
    let hostile: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 4096],
        &announced,
        &frame(0x41, b"", b""),
        &frame(0x02, b"", &[0; 300]),
        &frame(0x43, b"", &[0; 32]),
    ];
    for bytes in hostile {
        let mut stream = TcpStream::connect(target).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        // The server hangs up at once, with or without a reset.
        stream.read_to_end(&mut answer).await.ok();
        assert!(answer.is_empty(), "strangers get no answer to nonsense: {answer:?}");
        assert_eq!(engine.ask(write(0, 1, false)).await, Reply::Done);
    }
    while Counters::get(&running.counters.refused) < hostile.len() as u64 {
        tokio::task::yield_now().await;
    }
    running.stop().await;
}

#[tokio::test]
async fn an_engine_that_talks_nonsense_is_answered_or_cut_off_and_nobody_else_notices() {
    let running = in_memory().await;
    let mut bystander = running.owner(1).await;
    // What is whole but unknown is answered; the connection goes on.
    for (kind, meta, payload) in [
        (0x7f, &b""[..], &b""[..]),
        (0x05, b"{\"fly\":{}}", b""),
        (0x05, b"not json", b""),
        (0x05, b"\"ping\"", b"with a payload"),
        (0x01, b"meta", b""),
        (0x02, b"", b""),
        (0x06, b"\"info\"", &[0; 5000]),
        (0x81, b"", b""),
    ] {
        let (mut engine, _) = running.dial().await;
        engine.sender.queue_raw(&frame(kind, meta, payload));
        engine.sender.flush().await.unwrap();
        let mut replies = Vec::new();
        engine.receiver.receive(&mut replies).await.unwrap();
        assert!(matches!(&replies[..], [(77, Reply::Failed(_))]), "{kind:#x}: {replies:?}");
        assert_eq!(engine.ask(Request::Control(Control::Ping)).await, Reply::Done);
    }
    // What breaks the framing ends the connection.
    let mut flipped = frame(0x02, b"", &[1; 4096]);
    flipped[1000] ^= 1;
    let oversized = Header { kind: 0x02, payload_len: MAX_IO + 1, ..Header::default() }.encode();
    let meta_bomb = Header { kind: 0x05, meta_len: u32::MAX, ..Header::default() }.encode();
    for bytes in [&flipped[..], &oversized, &meta_bomb, &[0; 48]] {
        let (mut engine, _) = running.dial().await;
        engine.sender.queue_raw(bytes);
        engine.sender.flush().await.unwrap();
        let end = engine.receiver.receive(&mut Vec::new()).await;
        assert!(matches!(end, Err(ConnectionError::Closed | ConnectionError::Io(_))), "{end:?}");
    }
    assert_eq!(bystander.ask(write(0, 3, false)).await, Reply::Done);
    assert_eq!(bystander.ask(read(0)).await, stamped(3));
    running.stop().await;
}

#[tokio::test]
async fn an_engine_that_does_not_read_is_not_read_from_either() {
    const READS: u64 = 2000;
    let running = in_memory().await;
    let Engine { mut sender, mut receiver, .. } = running.owner(1).await;
    let range = Range::new(0, 64 << 10);
    for id in 0..READS {
        sender.queue(id, &Request::Read { range });
    }
    sender.flush().await.unwrap();
    // It stops when the answers are more than the socket and the budget take.
    let mut seen = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = Counters::get(&running.counters.requests);
        if now == seen && now > 1 {
            break;
        }
        seen = now;
    }
    assert!(seen < READS, "the server worked for somebody who does not listen");
    let held = Counters::get(&running.counters.held_peak) as usize;
    assert!(held <= link::MAX_UNREAD + MAX_IO as usize, "{held} bytes were kept for one connection");
    let mut other = running.dial().await.0;
    assert_eq!(other.ask(Request::Control(Control::Ping)).await, Reply::Done, "others are served meanwhile");
    let mut replies = Vec::new();
    while replies.len() < READS as usize {
        receiver.receive(&mut replies).await.unwrap();
    }
    assert!(replies.iter().all(|(_, reply)| matches!(reply, Reply::Data(data) if data.len() == 64 << 10)));
    running.stop().await;
}

#[tokio::test]
async fn control_requests_without_end_do_not_pile_up() {
    const ASKED: u64 = 5000;
    let running = in_memory().await;
    let Engine { mut sender, mut receiver, .. } = running.owner(1).await;
    for id in 0..ASKED {
        sender.queue(id, &Request::Control(Control::Info));
    }
    let mut replies = Vec::new();
    let collect = async {
        while replies.len() < ASKED as usize {
            receiver.receive(&mut replies).await.unwrap();
        }
    };
    let (sent, ()) = tokio::join!(sender.flush(), collect);
    sent.unwrap();
    let held = Counters::get(&running.counters.held_peak) as usize;
    assert!(held <= link::MAX_HELD + 2 * link::MAX_UNREAD, "{held} bytes were kept for one connection");
    running.stop().await;
}

#[tokio::test]
async fn many_flushes_and_durable_writes_are_all_answered() {
    let running = in_memory().await;
    let mut engine = running.owner(1).await;
    let requests: Vec<_> =
        (0..500).map(|n| if n % 2 == 0 { Request::Flush } else { write(n, 1, true) }).collect();
    assert!(engine.ask_all(&requests).await.iter().all(|reply| *reply == Reply::Done));
    assert_eq!(Counters::get(&running.counters.flushes_asked), 500);
    assert!(Counters::get(&running.counters.flushes_done) <= 500);
    running.stop().await;
}

#[tokio::test]
async fn a_crowd_that_never_introduces_itself_does_not_keep_an_engine_out() {
    let running = in_memory().await;
    let Address::Tcp(target) = &running.address else { panic!() };
    let mut crowd = Vec::new();
    for _ in 0..3 * MAX_STRANGERS {
        crowd.push(TcpStream::connect(target).await.unwrap());
    }
    running.owner(1).await;
    while Counters::get(&running.counters.refused) < 2 * MAX_STRANGERS as u64 {
        tokio::task::yield_now().await;
    }
    running.stop().await;
}

#[tokio::test]
async fn there_is_an_end_to_connections_with_the_right_key_too() {
    let running = in_memory().await;
    let mut engines = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        engines.push(running.dial().await);
    }
    let full = Connection::dial(&running.address, "vol", &right_key(), DEADLINE).await.err().unwrap();
    assert!(matches!(full, DialError::Busy { .. }) && full.is_temporary(), "{full}");
    engines.pop();
    while let Err(error) = Connection::dial(&running.address, "vol", &right_key(), DEADLINE).await {
        assert!(matches!(error, DialError::Busy { .. }), "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    running.stop().await;
}

#[tokio::test]
async fn an_engine_that_falls_silent_loses_the_replica() {
    let running = in_memory().await;
    let mut silent = running.owner(1).await;
    // The clock jumps ahead whenever nothing else is to do.
    tokio::time::pause();
    let end = silent.receiver.receive(&mut Vec::new()).await;
    assert!(matches!(end, Err(ConnectionError::Closed)), "{end:?}");
    tokio::time::resume();
    running.stop().await;
}

#[tokio::test]
async fn large_and_small_messages_mix_on_one_connection() {
    let running = in_memory().await;
    let mut engine = running.owner(1).await;
    let mut requests = Vec::new();
    for n in 0..16u64 {
        let data: BytesMut = (0..MAX_IO).map(|at| (u64::from(at) * 31 + n) as u8).collect();
        requests.push(Request::Write {
            offset: n * u64::from(MAX_IO),
            data: data.freeze(),
            durable: n % 5 == 0,
        });
        requests.push(Request::Control(Control::Ping));
    }
    assert!(engine.ask_all(&requests).await.iter().all(|reply| *reply == Reply::Done));
    let reads: Vec<_> = (0..16)
        .map(|n| Request::Read { range: Range::new(n * u64::from(MAX_IO), u64::from(MAX_IO)) })
        .collect();
    for (n, reply) in engine.ask_all(&reads).await.into_iter().enumerate() {
        let Request::Write { data, .. } = &requests[2 * n] else { panic!() };
        assert!(matches!(&reply, Reply::Data(found) if found == data), "megabyte {n}");
    }
    let none: Bytes = Bytes::new();
    assert!(matches!(
        engine.ask(Request::Write { offset: 0, data: none, durable: false }).await,
        Reply::Failed(Failure { kind: FailureKind::Invalid, .. })
    ));
    running.stop().await;
}
