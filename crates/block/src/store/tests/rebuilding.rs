//! A replica made from another one, layer by layer, with nothing but what the wire carries.

use proptest::prelude::*;

use super::{block, blocks, created, reopened};
use crate::disk::simulated::{Dice, Simulated};
use crate::geometry::{BLOCK, Range};
use crate::ids::LayerId;
use crate::store::{Store, StoreError};
use crate::wire::message::{FailureKind, Run, RunKind};

const SIZE: u64 = 96;
const CHUNK: u64 = 16 * BLOCK;

/// A tree with branches, masks, removed and folded layers.
fn random_tree(seed: u64) -> (Simulated, Store) {
    let disk = Simulated::new();
    let store = created(&disk, SIZE);
    let mut dice = Dice(seed);
    let mut names = Vec::new();
    for turn in 0..60 {
        let at = dice.below(SIZE - 8);
        match dice.below(12) {
            0..=4 => store.write_stamp(at, 1 + dice.below(1 << 40)),
            5..=7 => store.zero(blocks(at, 1 + dice.below(8)), false).unwrap(),
            8 | 9 => {
                let name = format!("s{turn}");
                store.take(&name);
                names.push(name);
            }
            10 if !names.is_empty() => {
                let name = names.swap_remove(dice.below(names.len() as u64) as usize);
                store.remove_snapshot(&name).unwrap();
                if dice.below(2) == 0 {
                    store.purge().unwrap();
                }
            }
            _ if !names.is_empty() => {
                let name = &names[dice.below(names.len() as u64) as usize];
                store.revert(name, LayerId::random()).unwrap();
            }
            _ => {}
        }
    }
    (disk, store)
}

/// What an engine does: adopt, compare, copy what differs, and say that it is whole. Counts the chunks copied.
fn rebuild(from: &Store, to: &Store) -> u64 {
    let source = from.info().unwrap();
    to.adopt(source.size, &source.layers, source.head).unwrap();
    let mut copied = 0;
    let whole = Range::new(0, source.size);
    let incomplete: Vec<LayerId> =
        to.info().unwrap().layers.iter().filter(|layer| !layer.complete).map(|layer| layer.id).collect();
    for layer in incomplete {
        let theirs = from.layer_digests(layer, whole, CHUNK).unwrap();
        let ours = to.layer_digests(layer, whole, CHUNK).unwrap();
        for (number, (theirs, ours)) in theirs.chunks(16).zip(ours.chunks(16)).enumerate() {
            if theirs != ours {
                let range = Range::new(number as u64 * CHUNK, CHUNK);
                let (runs, bytes) = from.layer_read(layer, range).unwrap();
                to.layer_write(layer, &runs, &bytes).unwrap();
                copied += 1;
            }
        }
        to.layer_complete(layer).unwrap();
    }
    to.set_membership(from.membership(), false, false).unwrap();
    copied
}

fn assert_same(one: &Store, other: &Store) {
    assert_eq!(one.checksum(None).unwrap(), other.checksum(None).unwrap());
    assert_eq!(one.read_stamps(blocks(0, SIZE)), other.read_stamps(blocks(0, SIZE)));
    let (a, b) = (one.info().unwrap(), other.info().unwrap());
    assert_eq!(a.layers.len(), b.layers.len());
    for (a, b) in a.layers.iter().zip(&b.layers) {
        assert_eq!((a.id, a.parent, &a.snapshot, a.removed), (b.id, b.parent, &b.snapshot, b.removed));
        if let Some(snapshot) = a.snapshot.as_ref().filter(|_| !a.removed) {
            let name = Some(snapshot.name.as_str());
            assert_eq!(one.checksum(name).unwrap(), other.checksum(name).unwrap(), "{name:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn an_empty_replica_becomes_the_same_and_survives_a_crash(seed in any::<u64>()) {
        let (_, source) = random_tree(seed);
        let disk = Simulated::new();
        let target = created(&disk, 8);
        rebuild(&source, &target);
        assert_same(&source, &target);
        drop(target);
        disk.crash(seed);
        assert_same(&source, &reopened(&disk));
    }

    #[test]
    fn a_replica_that_was_away_keeps_what_it_has(seed in any::<u64>()) {
        let (_, source) = random_tree(seed);
        let disk = Simulated::new();
        let target = created(&disk, 8);
        rebuild(&source, &target);
        // Away: a snapshot and a few writes later.
        source.take("while-away");
        source.write_stamp(3, 1 << 50);
        target.write_stamp(90, 1 << 51);
        let copied = rebuild(&source, &target);
        assert_same(&source, &target);
        prop_assert!(copied <= 6, "{} chunks for two layers", copied);
    }
}

#[test]
fn what_a_layer_is_told_to_be_it_is_exactly() {
    let disk = Simulated::new();
    let store = created(&disk, 16);
    store.write(0, &[block(1), block(2), block(3), block(4)].concat()).unwrap();
    store.take("below");
    store.write_stamp(0, 9);
    store.zero(blocks(1, 2), false).unwrap();
    let info = store.info().unwrap();
    let refused = store.layer_write(info.head, &[], &[]).unwrap_err();
    assert!(matches!(refused, StoreError::LayerFrozen(_)), "{refused}");
    store.adopt(info.size, &info.layers, info.head).unwrap();
    assert!(store.is_rebuilding());
    assert_eq!(store.purge().unwrap_err().kind(), FailureKind::Busy);
    let below = info.layers[0].id;
    assert!(
        matches!(store.layer_write(below, &[], &[]), Err(StoreError::LayerFrozen(_))),
        "complete and kept"
    );

    let run = |at, count, kind| Run { range: blocks(at, count), kind };
    let wanted = [
        run(0, 1, RunKind::Absent),
        run(1, 1, RunKind::Absent),
        run(2, 1, RunKind::Data),
        run(3, 1, RunKind::Zero),
    ];
    store.layer_write(info.head, &wanted, &block(7)).unwrap();
    assert_eq!(store.read_stamps(blocks(0, 5)), [1, 2, 7, 0, 0]);
    let (runs, bytes) = store.layer_read(info.head, blocks(0, 4)).unwrap();
    assert_eq!(
        runs.iter().map(|run| run.kind).collect::<Vec<_>>(),
        [RunKind::Absent, RunKind::Data, RunKind::Zero]
    );
    assert_eq!(bytes, block(7));
    assert!(
        store.layer_write(info.head, &[run(0, 1, RunKind::Data)], &[]).is_err(),
        "no content for the run"
    );
    assert!(store.layer_write(info.head, &[run(16, 1, RunKind::Data)], &block(1)).is_err(), "beyond the end");
    store.layer_complete(info.head).unwrap();
    drop(store);
    disk.crash(5);
    assert_eq!(reopened(&disk).read_stamps(blocks(0, 5)), [1, 2, 7, 0, 0]);
}

#[test]
fn layers_that_do_not_form_a_tree_are_refused_and_nothing_changes() {
    let disk = Simulated::new();
    let store = created(&disk, 16);
    store.write_stamp(0, 1);
    let mut layers = store.info().unwrap().layers;
    let head = layers[0].id;
    layers[0].parent = Some(LayerId::random());
    assert_eq!(store.adopt(16 * BLOCK, &layers, head).unwrap_err().kind(), FailureKind::Invalid);
    assert_eq!(store.adopt(16 * BLOCK, &[], head).unwrap_err().kind(), FailureKind::Invalid);
    assert!(!store.is_rebuilding());
    assert_eq!(store.read_stamps(blocks(0, 1)), [1]);
}

#[test]
fn a_clones_shared_layer_is_left_alone_by_a_rebuild() {
    let disk = Simulated::new();
    let (store, target) = (created(&disk, 16), disk.sibling());
    store.write_stamp(0, 1);
    store.take("golden");
    store.clone_to("golden", &target, &crate::store::CloneOptions::default()).unwrap();
    let mut info = store.info().unwrap();
    // The source of the rebuild has folded something into it that we have not.
    info.layers[0].absorbed = vec![LayerId::random()];
    store.adopt(info.size, &info.layers, info.head).unwrap();
    let golden = info.layers[0].id;
    store.layer_write(golden, &[Run { range: blocks(0, 1), kind: RunKind::Data }], &block(5)).unwrap();
    assert_eq!(store.read_stamps(blocks(0, 1)), [5]);
    assert_eq!(reopened(&target).read_stamps(blocks(0, 1)), [1]);
}
