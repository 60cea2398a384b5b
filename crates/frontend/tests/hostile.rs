//! Clients that do not mean well, or do not mean anything: the server goes on, and holds no more than it said.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use granary_frontend::Volume;
use granary_frontend::nbd::{Export, NbdClient, Server};
use proptest::prelude::*;
use support::{MIB, Served, on_one_thread};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Everything up to the first request, with the export by the old way: flags, EXPORT_NAME, no padding.
async fn connect(served: &Served) -> UnixStream {
    let mut socket = UnixStream::connect(served.path("nbd.sock")).await.unwrap();
    let mut greeting = [0; 18];
    socket.read_exact(&mut greeting).await.unwrap();
    socket.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").await.unwrap();
    let mut export = [0; 10];
    socket.read_exact(&mut export).await.unwrap();
    socket
}

fn request(command: u8, offset: u64, len: u32) -> Vec<u8> {
    let mut raw = b"\x25\x60\x95\x13\0\0\0".to_vec();
    raw.push(command);
    raw.extend_from_slice(&7_u64.to_be_bytes());
    raw.extend_from_slice(&offset.to_be_bytes());
    raw.extend_from_slice(&len.to_be_bytes());
    raw
}

/// The server hangs up: whatever it still sends ends.
async fn is_closed(mut socket: UnixStream) -> bool {
    let mut rest = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(30), socket.read_to_end(&mut rest)).await;
    end.is_ok()
}

async fn still_serves(served: &Served) {
    let client = NbdClient::connect(&served.url(), None).await.unwrap();
    client.read(0, 4096).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn garbage_closes_its_connection_and_no_other(garbage: Vec<u8>, negotiated: bool) {
        on_one_thread(async {
            let served = Served::new(MIB).await;
            let mut socket = if negotiated {
                connect(&served).await
            } else {
                UnixStream::connect(served.path("nbd.sock")).await.unwrap()
            };
            // It may have been closed in the middle of this.
            let _sent = socket.write_all(&garbage).await;
            let _shut = socket.shutdown().await;
            assert!(is_closed(socket).await);
            still_serves(&served).await;
            served.server.stop().await;
        });
    }
}

#[test]
fn a_write_that_is_too_large_is_not_waited_for() {
    on_one_thread(async {
        let served = Served::new(MIB).await;
        let mut socket = connect(&served).await;
        socket.write_all(&request(1, 0, u32::MAX)).await.unwrap();
        assert!(is_closed(socket).await);
        still_serves(&served).await;
        served.server.stop().await;
    });
}

/// Resident memory of this process.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn clients_that_never_read_make_the_server_hold_little_and_do_not_stop_others() {
    on_one_thread(async {
        let served = Served::new(64 * MIB).await;
        let before = resident();
        let mut sockets = Vec::new();
        for _ in 0..2 {
            let mut socket = connect(&served).await;
            let reads: Vec<u8> = (0..10_000).flat_map(|_| request(0, 0, 32 << 20)).collect();
            let errors: Vec<u8> = (0..200_000).flat_map(|_| request(99, 0, 0)).collect();
            let flood = tokio::task::spawn_local(async move {
                let _stuck = socket.write_all(&[reads, errors].concat()).await;
                socket
            });
            sockets.push(flood);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        still_serves(&served).await;
        let grown = resident().saturating_sub(before);
        // Two clients, each with 64 MiB of answers and one more request, and what they themselves send.
        assert!(grown < 2 * 160 * MIB, "{} MiB are held", grown / MIB);
        sockets.iter().for_each(tokio::task::JoinHandle::abort);
        served.server.stop().await;
    });
}

#[test]
fn many_clients_that_never_read_hold_no_more_than_one_bound_for_all() {
    on_one_thread(async {
        let served = Served::new(64 * MIB).await;
        let before = resident();
        let mut sockets = Vec::new();
        for _ in 0..16 {
            let mut socket = connect(&served).await;
            let reads: Vec<u8> = (0..20).flat_map(|_| request(0, 0, 32 << 20)).collect();
            socket.write_all(&reads).await.unwrap();
            sockets.push(socket);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        still_serves(&served).await;
        let grown = resident().saturating_sub(before);
        // 256 MiB for all and one request each; alone each of them could have 64 MiB and more.
        assert!(grown < 900 * MIB, "{} MiB are held", grown / MIB);
        drop(sockets);
        served.server.stop().await;
    });
}

#[test]
fn strangers_that_say_nothing_make_room_for_a_client() {
    on_one_thread(async {
        let served = Served::new(MIB).await;
        let client = connect(&served).await;
        let mut strangers = Vec::new();
        for _ in 0..300 {
            strangers.push(UnixStream::connect(served.path("nbd.sock")).await.unwrap());
            tokio::task::yield_now().await;
        }
        // Sooner than the first of them is asked to leave because its time is up.
        tokio::time::timeout(Duration::from_secs(15), still_serves(&served)).await.expect("there is no room");
        assert!(is_closed(strangers.remove(0)).await);
        let mut oldest = client;
        oldest.write_all(&request(0, 0, 512)).await.unwrap();
        oldest.read_exact(&mut [0; 16 + 512]).await.expect("a client that was let in stays");
        served.server.stop().await;
    });
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing_behind() {
    on_one_thread(async {
        let served = Served::new(MIB).await;
        for cut in [1, 27, 28, 29, 100, 4095] {
            let mut socket = connect(&served).await;
            let message = [request(1, 0, 65536), vec![7; 65536]].concat();
            socket.write_all(&message[..cut]).await.unwrap();
            drop(socket);
        }
        for _ in 0..100 {
            if served.server.clients() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(served.server.clients(), 0);
        assert_eq!(served.volume.read(0, 4096).await.unwrap(), vec![0; 4096], "half a write was carried out");
        served.server.stop().await;
    });
}

#[test]
fn a_second_server_does_not_take_a_socket_that_is_in_use_but_takes_a_dead_one() {
    on_one_thread(async {
        let served = Served::new(MIB).await;
        let address = served.url().address;
        let other = Server::new(Export::new("other", served.volume.clone()));
        let error = other.listen(&address).await.unwrap_err();
        assert!(error.to_string().contains("nbd.sock"), "{error}");

        let dead = granary_frontend::nbd::Address::Unix(served.path("dead.sock"));
        drop(std::os::unix::net::UnixListener::bind(served.path("dead.sock")).unwrap());
        other.listen(&dead).await.unwrap();
        other.stop().await;
        assert!(!served.path("dead.sock").exists(), "the socket's file stays behind");
        served.server.stop().await;
    });
}
