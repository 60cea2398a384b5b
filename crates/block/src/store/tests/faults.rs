//! A disk that fails: the store says so, takes no more changes where it no longer knows what is there, and never
//! serves something in between.

use super::{as_disk, block, blocks, created, reopened, spec};
use crate::disk::simulated::{Operation, Simulated};
use crate::geometry::BLOCK;
use crate::ids::LayerId;
use crate::store::{CloneOptions, CreateOptions, OpenOptions, Store, StoreError};
use crate::wire::message::{FailureKind, Membership};

#[test]
fn after_a_failed_sync_nothing_is_served_until_it_is_opened_again() {
    let disk = Simulated::new();
    let store = created(&disk, 16);
    store.write_stamp(0, 1);
    disk.fail(Operation::Sync, 0);
    assert_eq!(store.flush().unwrap_err().kind(), FailureKind::Io);
    for refused in [
        store.write(0, &block(2)),
        store.zero(blocks(0, 1), false),
        store.flush(),
        store.snapshot(spec("s"), LayerId::random()),
        store.expand(32 * BLOCK),
        store.set_intents(&[]),
        store.set_membership(Membership::default(), true, false),
        store.purge(),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, StoreError::Poisoned { .. }), "{error}");
        assert_eq!(error.kind(), FailureKind::Io);
    }
    let mut buffer = block(0);
    let read = store.read_into(blocks(0, 1), &mut buffer);
    assert!(
        matches!(read, Err(StoreError::Poisoned { .. })),
        "what it reads may be older than what was written"
    );
    let before = store.info().unwrap().boot;
    drop(store);
    assert_ne!(reopened(&disk).info().unwrap().boot, before, "an engine must hear that writes may be lost");
}

/// Pages of a write-back that failed look as if they were on disk.
#[test]
fn what_a_failed_sync_left_in_memory_is_not_taken_for_what_is_on_disk() {
    for stamp in 1..40 {
        let disk = Simulated::new();
        let store = created(&disk, 16);
        store.write_stamp(0, stamp);
        disk.fail(Operation::Sync, 0);
        store.flush().unwrap_err();
        drop(store);
        let store = reopened(&disk);
        let seen = store.read_stamps(blocks(0, 1));
        drop(store);
        disk.crash(stamp);
        assert_eq!(reopened(&disk).read_stamps(blocks(0, 1)), seen);
    }
}

#[test]
fn a_failed_write_or_discard_ends_the_replica_too() {
    for operation in [Operation::Write, Operation::Punch] {
        let disk = Simulated::new();
        let store = created(&disk, 16);
        store.write_stamp(0, 1);
        disk.fail(operation, 0);
        let outcome = match operation {
            Operation::Write => store.write(0, &block(2)),
            _ => store.zero(blocks(0, 1), false),
        };
        assert_eq!(outcome.unwrap_err().kind(), FailureKind::Io, "{operation:?}");
        assert!(matches!(store.flush(), Err(StoreError::Poisoned { .. })), "{operation:?}");
    }
}

#[test]
fn a_failed_read_is_reported_and_harms_nothing() {
    let disk = Simulated::new();
    let store = created(&disk, 16);
    store.write_stamp(0, 1);
    disk.fail(Operation::Read, 0);
    let mut buffer = block(0);
    assert_eq!(store.read_into(blocks(0, 1), &mut buffer).unwrap_err().kind(), FailureKind::Io);
    store.write_stamp(1, 2);
    assert_eq!(store.read_stamps(blocks(0, 2)), [1, 2]);
}

/// Every change of the tree, failing at every call it makes: afterwards it has happened or it has not.
#[test]
fn a_change_of_the_tree_that_fails_anywhere_happened_or_did_not() {
    for operation in [Operation::Names, Operation::Sync, Operation::Write] {
        for after in 0..12 {
            let disk = Simulated::new();
            let store = created(&disk, 16);
            store.write_stamp(0, 1);
            store.take("first");
            store.write_stamp(0, 2);
            store.flush().unwrap();
            disk.fail(operation, after);
            let head = LayerId::random();
            let outcome = store.snapshot(spec("second"), head);
            drop(store);
            disk.crash(after);
            let store = reopened(&disk);
            assert_eq!(store.read_stamps(blocks(0, 1)), [2], "{operation:?} {after}");
            assert_eq!(store.read_snapshot("first", blocks(0, 1)), [1]);
            if outcome.is_ok() {
                assert_eq!(store.read_snapshot("second", blocks(0, 1)), [2]);
            } else if store.head() != head {
                // The same request again succeeds: leftovers are not in the way.
                store.snapshot(spec("second"), head).unwrap();
            }
        }
    }
}

/// Making a volume, or a clone, with the power going at every point: there is a whole volume afterwards or none, and
/// then a second attempt succeeds.
#[test]
fn a_volume_or_clone_whose_making_was_cut_short_is_whole_or_not_there() {
    for clone in [false, true] {
        for (cut, seed) in (0..40).flat_map(|cut| (0..12).map(move |seed| (cut, seed))) {
            let disk = Simulated::new();
            let source = created(&disk, 16);
            source.write_stamp(3, 7);
            source.take("golden");
            let target = disk.sibling();
            let make = |source: &Store| {
                if clone {
                    source.clone_to("golden", &target, &CloneOptions::default())
                } else {
                    Store::create(as_disk(&target), CreateOptions::new(16 * BLOCK)).map(drop)
                }
            };
            disk.cut_power_after(cut);
            let done = make(&source).is_ok();
            drop(source);
            disk.crash(seed);
            let expected = if clone { 7 } else { 0 };
            let source = reopened(&disk);
            assert_eq!(source.read_snapshot("golden", blocks(3, 1)), [7]);
            match Store::open(as_disk(&target), OpenOptions::default()) {
                Ok(store) => assert_eq!(store.read_stamps(blocks(3, 1)), [expected]),
                Err(StoreError::NotAVolume { .. }) => {
                    assert!(!done, "a volume is lost, cut {cut}, seed {seed}");
                    make(&source).unwrap();
                }
                Err(error) => panic!("cut {cut}, seed {seed}: {error}"),
            }
        }
    }
}
