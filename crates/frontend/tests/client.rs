//! The NBD client and server with each other: whatever is done through them is what a plain array of bytes shows.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use bytes::Bytes;
use granary_frontend::nbd::{Address, Export, NbdClient, NbdUrl, Server};
use granary_frontend::{Volume, VolumeError, are_zeroes, zeroes};
use proptest::prelude::*;
use support::{MIB, Served, on_one_thread};

const SIZE: u64 = 4 * MIB;

#[derive(Clone, Debug)]
enum Operation {
    Write {
        offset: u64,
        len: u64,
        byte: u8,
        durable: bool,
    },
    Zero {
        offset: u64,
        len: u64,
        allocate: bool,
    },
    Read {
        offset: u64,
        len: u64,
    },
    Flush,
    /// The server moves to another process and back.
    Freeze,
}

fn operation() -> impl Strategy<Value = Operation> {
    let range = || {
        let len = prop_oneof![1_u64..5000, 30_000_u64..300_000];
        (0..SIZE, len).prop_map(|(offset, len)| (offset, len.min(SIZE - offset)))
    };
    prop_oneof![
        4 => (range(), any::<u8>(), any::<bool>()).prop_map(|((offset, len), byte, durable)| {
            Operation::Write { offset, len, byte, durable }
        }),
        2 => (range(), any::<bool>()).prop_map(|((offset, len), allocate)| {
            Operation::Zero { offset, len, allocate }
        }),
        4 => range().prop_map(|(offset, len)| Operation::Read { offset, len }),
        1 => Just(Operation::Flush),
        1 => Just(Operation::Freeze),
    ]
}

async fn apply(client: &NbdClient, model: &mut [u8], operation: &Operation) {
    match *operation {
        Operation::Write { offset, len, byte, durable } => {
            let data = Bytes::from(vec![byte; len as usize]);
            client.write(offset, data, durable).await.unwrap();
            model[offset as usize..][..len as usize].fill(byte);
        }
        Operation::Zero { offset, len, allocate } => {
            client.zero(offset, len, allocate, false).await.unwrap();
            model[offset as usize..][..len as usize].fill(0);
        }
        Operation::Read { offset, len } => {
            let data = client.read(offset, len as u32).await.unwrap();
            assert_eq!(data, model[offset as usize..][..len as usize]);
        }
        Operation::Flush => client.flush().await.unwrap(),
        Operation::Freeze => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_the_client_does_is_what_an_array_shows(operations in proptest::collection::vec(operation(), 1..60)) {
        on_one_thread(async {
            let served = Served::new(SIZE).await;
            let client = NbdClient::connect(&served.url(), None).await.unwrap();
            let (mut server, mut model) = (served.server, vec![0; SIZE as usize]);
            for operation in &operations {
                if matches!(operation, Operation::Freeze) {
                    let frozen = server.freeze().await.unwrap();
                    assert_eq!(frozen.clients(), 1);
                    server = frozen.resume(Export::new("disk", served.volume.clone())).unwrap();
                }
                apply(&client, &mut model, operation).await;
            }
            assert_eq!(client.read(0, SIZE as u32).await.unwrap(), model);
            server.stop().await;
        });
    }
}

#[test]
fn many_requests_are_in_flight_at_once_and_all_are_answered() {
    on_one_thread(async {
        let served = Served::new(64 * MIB).await;
        let client = NbdClient::connect(&served.url(), None).await.unwrap();
        // More than the server takes at once, in number and in bytes.
        let writes =
            (0..1000_u64).map(|id| client.write(id * 65536, Bytes::from(vec![id as u8; 65536]), false));
        for result in futures::future::join_all(writes).await {
            result.unwrap();
        }
        let reads = (0..1000_u64).map(|id| client.read(id * 65536, 65536));
        for (id, data) in futures::future::join_all(reads).await.into_iter().enumerate() {
            assert_eq!(data.unwrap(), vec![id as u8; 65536], "block {id}");
        }
        served.server.stop().await;
    });
}

#[test]
fn a_volume_can_sit_on_a_client_that_sits_on_a_volume() {
    on_one_thread(async {
        let served = Served::new(SIZE).await;
        let inner = NbdClient::connect(&served.url(), None).await.unwrap();
        let outer = Server::new(Export::new("outer", inner));
        let address = Address::Unix(served.path("outer.sock"));
        outer.listen(&address).await.unwrap();
        let url = NbdUrl { address, tls: false, export: "outer".into() };
        let client = NbdClient::connect(&url, None).await.unwrap();
        client.write(12345, Bytes::from_static(b"through two servers"), true).await.unwrap();
        assert_eq!(served.volume.read(12345, 19).await.unwrap(), "through two servers");
        assert_eq!(client.read(MIB, 4096).await.unwrap(), zeroes(4096));
        assert!(client.can_multi_conn() && !client.is_read_only());
        let runs = client.allocation(0, SIZE).await.unwrap();
        assert_eq!(runs.iter().map(|run| run.len).sum::<u64>(), SIZE);
        assert!(runs.last().unwrap().hole, "{runs:?}");
        outer.stop().await;
        served.server.stop().await;
    });
}

#[test]
fn errors_come_through_and_a_lost_server_fails_every_request() {
    on_one_thread(async {
        let served = Served::new(SIZE).await;
        let client = NbdClient::connect(&served.url(), None).await.unwrap();
        assert_eq!(client.read(SIZE, 1).await, Err(VolumeError::Invalid));
        assert_eq!(client.write(SIZE - 1, Bytes::from_static(b"xx"), false).await, Err(VolumeError::NoSpace));
        served.volume.faults.reads.set(Some(VolumeError::Io));
        assert_eq!(client.read(0, 1).await, Err(VolumeError::Io));
        served.volume.faults.reads.set(None);
        assert!(!are_zeroes(&client.read(0, 1).await.unwrap()), "a file does not say that it is a hole");

        let url = served.url();
        served.server.stop().await;
        assert_eq!(client.read(0, 1).await, Err(VolumeError::Io));
        assert_eq!(client.flush().await, Err(VolumeError::Io));
        let gone = NbdClient::connect(&url, None).await.err().unwrap();
        assert!(gone.to_string().contains("nbd.sock"), "{gone}");
    });
}

#[test]
fn an_unknown_export_and_a_read_only_one_are_told_apart() {
    on_one_thread(async {
        let served = Served::new(SIZE).await;
        let mut export = Export::new("fixed", served.volume.clone());
        export.read_only = true;
        let server = Server::new(export);
        let address = Address::Tcp { host: "127.0.0.1".into(), port: 0 };
        let address = server.listen(&address).await.unwrap();
        let url = |export: &str| NbdUrl { address: address.clone(), tls: false, export: export.into() };
        let unknown = NbdClient::connect(&url("other"), None).await.err().unwrap();
        assert!(unknown.to_string().contains("no such export"), "{unknown}");
        let client = NbdClient::connect(&url("fixed"), None).await.unwrap();
        assert!(client.is_read_only());
        assert_eq!(client.write(0, Bytes::from_static(b"x"), false).await, Err(VolumeError::Io));
        server.stop().await;
        served.server.stop().await;
    });
}
