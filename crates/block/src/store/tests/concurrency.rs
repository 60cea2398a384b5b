//! Readers, writers, snapshots and a purge at once, on a real directory, each writer with a part of its own that it
//! can check at any time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{blocks, read_from_outside, spec};
use crate::disk::directory::Directory;
use crate::disk::simulated::Dice;
use crate::geometry::BLOCK;
use crate::ids::LayerId;
use crate::store::{CreateOptions, OpenOptions, Store, StoreError};

const WRITERS: u64 = 3;
const OWN: u64 = 700;
const TURNS: u64 = 500;

/// Writes and discards in its own part and reads back what it must find there.
fn writer(store: &Store, number: u64) -> Vec<u64> {
    let mut dice = Dice(number);
    let mut model = vec![0; OWN as usize];
    for turn in 1..TURNS {
        let at = dice.below(OWN);
        let count = 1 + dice.below(24.min(OWN - at));
        let first = number * OWN + at;
        if dice.below(3) == 0 {
            store.zero(blocks(first, count), false).unwrap();
            model[at as usize..(at + count) as usize].fill(0);
        } else {
            let stamp = number << 32 | turn;
            store.write(first * BLOCK, &super::block(stamp).repeat(count as usize)).unwrap();
            model[at as usize..(at + count) as usize].fill(stamp);
        }
        let look = dice.below(OWN - 16);
        let found = store.read_stamps(blocks(number * OWN + look, 16));
        assert_eq!(found, model[look as usize..look as usize + 16], "writer {number}, turn {turn}");
        if turn.is_multiple_of(50) {
            store.flush().unwrap();
        }
    }
    model
}

/// Snapshots come and go, and some purges are stopped half-way.
fn keeper(store: &Store, done: &AtomicBool) {
    let mut turn = 0;
    while !done.load(Ordering::SeqCst) {
        let name = format!("s{turn}");
        store.snapshot(spec(&name), LayerId::random()).unwrap();
        let before = store.checksum(Some(&name)).unwrap();
        if turn >= 2 {
            store.remove_snapshot(&format!("s{}", turn - 2)).unwrap();
        }
        match store.purge() {
            Ok(()) | Err(StoreError::Stopped { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        assert_eq!(store.checksum(Some(&name)).unwrap(), before, "snapshot {name} changed");
        turn += 1;
    }
}

/// Reads snapshots without owning anything: each is one thing for as long as it is there, and what changed since the
/// one below it makes it out of that one.
fn outsider(store: &Store, done: &AtomicBool) -> u64 {
    let range = blocks(0, 256);
    let mut seen = BTreeMap::new();
    let mut compared = 0;
    while !done.load(Ordering::SeqCst) {
        let layers = store.info().unwrap().layers;
        for layer in layers.iter().filter(|layer| layer.snapshot.is_some()) {
            let older = |id: LayerId, since: Option<LayerId>| match read_from_outside(store, id, since, range)
            {
                Ok(told) => Some(told),
                Err(StoreError::LayerRemoved(_) | StoreError::LayerNotFound(_)) => None,
                Err(error) => panic!("{error}"),
            };
            let Some(whole) = older(layer.id, None) else { continue };
            let whole: Vec<u64> = whole.into_iter().map(Option::unwrap_or_default).collect();
            let before = seen.entry(layer.id).or_insert_with(|| whole.clone());
            assert_eq!(*before, whole, "snapshot {} changed", layer.id);
            let Some(base) = layer.parent.and_then(|parent| Some((parent, seen.get(&parent)?.clone())))
            else {
                continue;
            };
            let Some(changes) = older(layer.id, Some(base.0)) else { continue };
            let patched = changes.iter().zip(base.1).map(|(told, before)| told.unwrap_or(before));
            assert_eq!(patched.collect::<Vec<_>>(), whole, "{} since {}", layer.id, base.0);
            compared += 1;
        }
    }
    compared
}

#[test]
fn everything_at_once_reads_as_each_writer_expects() {
    let root = tempfile::tempdir().unwrap();
    let disk = || Arc::new(Directory::open(root.path()).unwrap());
    let store = Store::create(disk(), CreateOptions::new(WRITERS * OWN * BLOCK)).unwrap();
    let done = AtomicBool::new(false);
    let models: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let (store, done) = (&store, &done);
        let keeper = scope.spawn(move || keeper(store, done));
        let stopper = scope.spawn(move || {
            while !done.load(Ordering::SeqCst) {
                std::thread::sleep(std::time::Duration::from_millis(3));
                store.stop_purge();
            }
        });
        let outsider = scope.spawn(move || outsider(store, done));
        let writers: Vec<_> = (0..WRITERS).map(|number| scope.spawn(move || writer(store, number))).collect();
        let models = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Result<_, _>>();
        done.store(true, Ordering::SeqCst);
        keeper.join().unwrap();
        stopper.join().unwrap();
        assert!(outsider.join().unwrap() > 0, "snapshots were compared");
        models.unwrap()
    });
    store.purge().unwrap();
    let expected: Vec<u64> = models.concat();
    assert_eq!(store.read_stamps(blocks(0, WRITERS * OWN)), expected);
    store.flush().unwrap();
    drop(store);
    let store = Store::open(disk(), OpenOptions::default()).unwrap();
    assert_eq!(store.read_stamps(blocks(0, WRITERS * OWN)), expected);
}
