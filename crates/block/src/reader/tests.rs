//! Readers of real servers on real sockets: which replica is read, and what happens when it goes away.

use std::sync::Arc;

use proptest::prelude::*;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::disk::simulated::{Dice, Simulated};
use crate::geometry::{BLOCK, Range};
use crate::ids::LayerId;
use crate::replica::server::{ServeError, Server};
use crate::store::{CreateOptions, Store};
use crate::wire::address::Address;
use crate::wire::key::Key;
use crate::wire::message::{Membership, RunKind, SnapshotSpec};

const SIZE: u64 = 24 << 20;

fn key() -> Key {
    Key::from_bytes(b"the right key of this volume").unwrap()
}

fn new_store() -> Arc<Store> {
    Arc::new(Store::create(Arc::new(Simulated::new()), CreateOptions::new(SIZE)).unwrap())
}

fn take(store: &Store, name: &str, new_head: LayerId) {
    let spec = SnapshotSpec {
        name: name.into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        user_created: true,
        labels: Default::default(),
    };
    store.snapshot(spec, new_head).unwrap();
}

/// A copy of a replica, the way a rebuild makes one.
fn copy_of(source: &Store) -> Arc<Store> {
    let (copy, info) = (new_store(), source.info().unwrap());
    copy.adopt(info.size, &info.layers, info.head).unwrap();
    for layer in &info.layers {
        for offset in (0..layer.size).step_by(1 << 20) {
            let (runs, data) = source.layer_read(layer.id, Range::new(offset, 1 << 20)).unwrap();
            copy.layer_write(layer.id, &runs, &data).unwrap();
        }
        copy.layer_complete(layer.id).unwrap();
    }
    copy.set_membership(Membership::default(), true, false).unwrap();
    copy
}

struct Replica {
    address: Address,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ServeError>>,
}

async fn serve(store: &Arc<Store>) -> Replica {
    let server = Server::bind(&"127.0.0.1:0".parse().unwrap(), store.clone(), key()).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let address = server.address().clone();
    let task = tokio::spawn(server.run(async {
        stopped.await.ok();
    }));
    Replica { address, stop, task }
}

impl Replica {
    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

fn source(replicas: &[&Replica]) -> Source {
    let replicas = replicas.iter().map(|replica| replica.address.clone()).collect();
    Source { volume: "vol".into(), key: key(), replicas }
}

async fn refusal(source: Source, snapshot: &str) -> ReaderError {
    match SnapshotReader::open(source, snapshot).await {
        Ok(_) => panic!("{snapshot} was opened"),
        Err(error) => error,
    }
}

/// Scattered blocks, long runs and discards, between three snapshots; and what each of them is.
fn painted(seed: u64) -> (Arc<Store>, Vec<Vec<u8>>) {
    let store = new_store();
    let mut dice = Dice(seed | 1);
    let mut now = vec![0; SIZE as usize];
    let mut moments = Vec::new();
    for name in ["a", "b", "c"] {
        for _ in 0..24 {
            let blocks = 1 + if dice.below(4) == 0 { dice.below(700) } else { dice.below(3) };
            let at = dice.below(SIZE / BLOCK - blocks);
            let (start, end) = ((at * BLOCK) as usize, ((at + blocks) * BLOCK) as usize);
            let range = Range::of_blocks(at..at + blocks);
            if dice.below(3) == 0 {
                now[start..end].fill(0);
                store.zero(range, false).unwrap();
            } else {
                now[start..end].fill(1 + dice.below(255) as u8);
                store.write(range.offset, &now[start..end]).unwrap();
            }
        }
        take(&store, name, LayerId::random());
        moments.push(now.clone());
    }
    store.write(0, &vec![0xee; 1 << 20]).unwrap();
    (store, moments)
}

/// Lays a walk over what was there before.
async fn apply(mut walk: Walk<'_>, before: &[u8], since: bool) -> Vec<u8> {
    let mut now = before.to_vec();
    let mut at = 0;
    while let Some(chunk) = walk.next().await.unwrap() {
        for (run, data) in chunk.parts() {
            assert_eq!(run.range.offset, at, "in order and without gaps");
            at = run.range.end();
            let part = &mut now[run.range.offset as usize..at as usize];
            match run.kind {
                RunKind::Data => part.copy_from_slice(&data),
                RunKind::Absent if since => {}
                RunKind::Absent | RunKind::Zero => part.fill(0),
            }
        }
    }
    assert_eq!(at, SIZE);
    now
}

fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(story)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn snapshots_and_what_changed_between_them_are_read_as_they_are(seed: u64) {
        run(async {
            let (store, moments) = painted(seed);
            let replica = serve(&store).await;
            let mut reader = SnapshotReader::open(source(&[&replica]), "c").await.unwrap();
            assert_eq!((reader.size(), reader.below().len()), (SIZE, 2));
            let all = reader.all();
            assert!(reader.read(all).await.unwrap() == moments[2]);
            assert!(apply(reader.walk(None, all).unwrap(), &vec![9; SIZE as usize], false).await == moments[2]);
            for (base, before) in ["a", "b"].into_iter().zip(&moments) {
                let since = reader.base(base);
                assert!(since.is_some());
                assert!(apply(reader.walk(since, all).unwrap(), before, true).await == moments[2], "since {base}");
            }
            // One that was left half-way does not disturb the next.
            reader.walk(None, all).unwrap().next().await.unwrap();
            let part = Range::new(BLOCK, 3 << 20);
            assert!(reader.read(part).await.unwrap() == moments[2][part.offset as usize..part.end() as usize]);
            replica.stop().await;
        });
    }
}

#[test]
fn when_a_replica_goes_away_the_next_one_goes_on() {
    run(async {
        let (store, moments) = painted(7);
        let others = [copy_of(&store), copy_of(&store)];
        let first = serve(&store).await;
        let (second, third) = (serve(&others[0]).await, serve(&others[1]).await);
        let mut reader = SnapshotReader::open(source(&[&first, &second, &third]), "b").await.unwrap();
        let all = reader.all();
        let mut replicas = vec![third, second, first];
        let mut walk = reader.walk(None, all).unwrap();
        let mut now = vec![9; SIZE as usize];
        let mut at = 0;
        while let Some(chunk) = walk.next().await.unwrap() {
            for (run, data) in chunk.parts() {
                let part = &mut now[run.range.offset as usize..run.range.end() as usize];
                if run.kind == RunKind::Data {
                    part.copy_from_slice(&data);
                } else {
                    part.fill(0);
                }
                at = run.range.end();
            }
            // Two of three, at a third and at two thirds of the way.
            if replicas.len() > 1 && at > (4 - replicas.len() as u64) * SIZE / 3 {
                replicas.pop().unwrap().stop().await;
            }
        }
        drop(walk);
        assert_eq!(replicas.len(), 1, "two went away");
        assert!(now == moments[1]);
        replicas.pop().unwrap().stop().await;
    });
}

#[test]
fn a_snapshot_that_is_removed_half_way_is_told_as_that() {
    run(async {
        let (store, _) = painted(8);
        let other = copy_of(&store);
        let replicas = [serve(&store).await, serve(&other).await];
        let mut reader = SnapshotReader::open(source(&[&replicas[0], &replicas[1]]), "b").await.unwrap();
        let block = Range::new(0, BLOCK);
        reader.read(block).await.unwrap();
        // As long as one has it, it is read from there.
        store.remove_snapshot("b").unwrap();
        reader.read(block).await.unwrap();
        other.remove_snapshot("b").unwrap();
        let error = reader.read(block).await.unwrap_err();
        assert!(matches!(error, ReaderError::Removed { .. }), "{error}");
        assert!(error.to_string().contains("snapshot b of volume vol was removed"), "{error}");
    });
}

#[test]
fn a_base_that_is_folded_half_way_is_told_as_that() {
    run(async {
        let (store, _) = painted(9);
        let replica = serve(&store).await;
        let mut reader = SnapshotReader::open(source(&[&replica]), "c").await.unwrap();
        let (all, since) = (reader.all(), reader.base("b"));
        reader.runs(since, all).await.unwrap();
        store.remove_snapshot("b").unwrap();
        reader.runs(since, all).await.unwrap();
        store.purge().unwrap();
        let error = reader.runs(since, all).await.unwrap_err();
        assert!(matches!(error, ReaderError::NotBelow { .. }), "{error}");
        reader.runs(None, all).await.unwrap();
        let (stranger, beyond) = (Some(LayerId::random()), Range::new(SIZE, BLOCK));
        assert!(matches!(reader.runs(stranger, all).await, Err(ReaderError::NotBelow { .. })));
        assert!(matches!(reader.read(beyond).await, Err(ReaderError::OutOfRange { .. })));
    });
}

#[test]
fn replicas_that_mean_different_snapshots_by_one_name_are_not_mixed() {
    run(async {
        let stores = [new_store(), new_store()];
        for store in &stores {
            take(store, "s", LayerId::random());
        }
        let replicas = [serve(&stores[0]).await, serve(&stores[1]).await];
        let error = refusal(source(&[&replicas[0], &replicas[1]]), "s").await;
        assert!(matches!(error, ReaderError::Disagreement { .. }), "{error}");
        for replica in &replicas {
            assert!(error.to_string().contains(&replica.address.to_string()), "{error}");
        }
        assert!(SnapshotReader::open(source(&[&replicas[1]]), "s").await.is_ok());
    });
}

#[test]
fn a_replica_under_rebuild_is_passed_over() {
    run(async {
        let (store, moments) = painted(10);
        let (unfinished, info) = (new_store(), store.info().unwrap());
        unfinished.adopt(info.size, &info.layers, info.head).unwrap();
        let replicas = [serve(&unfinished).await, serve(&store).await];
        let mut reader = SnapshotReader::open(source(&[&replicas[0], &replicas[1]]), "a").await.unwrap();
        assert!(reader.read(Range::new(0, SIZE)).await.unwrap() == moments[0]);
        let error = refusal(source(&[&replicas[0]]), "a").await;
        assert!(error.to_string().contains("is being rebuilt"), "{error}");
        // A rebuild that begins later is noticed as well.
        store.adopt(info.size, &info.layers, info.head).unwrap();
        let read = tokio::time::timeout(std::time::Duration::from_secs(2), reader.read(Range::new(0, BLOCK)));
        assert!(!matches!(read.await, Ok(Ok(_))), "nothing is read from a replica under rebuild");
    });
}

#[test]
fn nobody_to_read_from_is_told_with_each_ones_reason() {
    run(async {
        let (store, _) = painted(11);
        let (replica, gone) = (serve(&store).await, serve(&new_store()).await);
        let there = gone.address.clone();
        gone.stop().await;
        let error = refusal(source(&[&replica]), "nonsense").await;
        assert!(matches!(error, ReaderError::NotFound { .. }), "{error}");
        assert!(error.to_string().contains("volume vol has no snapshot nonsense"), "{error}");

        let wrong =
            Source { key: Key::from_bytes(b"another key altogether").unwrap(), ..source(&[&replica]) };
        let error = refusal(wrong, "a").await;
        let ReaderError::Unavailable { problems, .. } = &error else { panic!("{error}") };
        assert!(problems.any(|problem| matches!(problem, Problem::KeyRefused)), "{error}");
        assert!(error.to_string().contains("key file"), "{error}");

        let mut half = source(&[&replica]);
        half.replicas.insert(0, there.clone());
        assert!(SnapshotReader::open(half, "a").await.is_ok(), "one that is there is enough");
        let error = refusal(Source { replicas: vec![there.clone()], ..source(&[]) }, "a").await;
        assert!(error.to_string().contains(&format!("{there} cannot be reached")), "{error}");
    });
}
