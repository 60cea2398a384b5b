//! What a user of a volume meets, one behaviour at a time.

use std::sync::Arc;

use super::{as_disk, block, blocks, created, no_reserve, reopened, spec};
use crate::disk::Disk;
use crate::disk::directory::Directory;
use crate::disk::simulated::Simulated;
use crate::geometry::{BLOCK, INTENT_REGION, Range};
use crate::ids::{Generation, LayerId, ReplicaId};
use crate::store::{BackingOptions, CloneOptions, CreateOptions, Limits, OpenOptions, Store, StoreError};
use crate::wire::message::{FailureKind, Member, Membership, Regions, RunKind};

#[test]
fn a_new_volume_reads_as_zero_and_keeps_what_is_written() {
    let disk = Simulated::new();
    let store = created(&disk, 100);
    assert_eq!(store.read_stamps(blocks(0, 100)), [0; 100]);
    store.write_stamp(7, 1);
    store.flush().unwrap();
    drop(store);
    disk.crash(1);
    assert_eq!(reopened(&disk).read_stamps(blocks(6, 3)), [0, 1, 0]);
}

#[test]
fn only_whole_blocks_within_the_volume_are_accepted() {
    let store = created(&Simulated::new(), 10);
    let mut buffer = vec![0; 4096];
    for range in [
        Range::new(1, BLOCK),
        Range::new(10 * BLOCK, BLOCK),
        Range::new(0, 0),
        Range::new(u64::MAX - 4095, BLOCK),
    ] {
        assert_eq!(
            store.read_into(range, &mut buffer).unwrap_err().kind(),
            FailureKind::Invalid,
            "{range:?}"
        );
        assert_eq!(store.zero(range, false).unwrap_err().kind(), FailureKind::Invalid, "{range:?}");
    }
    assert_eq!(store.write(0, &[0; 100]).unwrap_err().kind(), FailureKind::Invalid);
    assert_eq!(store.read_into(blocks(0, 2), &mut buffer).unwrap_err().kind(), FailureKind::Invalid);
    for size in [0, 100, u64::MAX, (64 << 40) + 4096] {
        let outcome = Store::create(as_disk(&Simulated::new()), CreateOptions::new(size));
        assert!(matches!(outcome, Err(StoreError::Size { .. })), "{size}");
    }
}

#[test]
fn a_directory_has_one_owner_at_a_time_and_the_other_is_named() {
    let root = tempfile::tempdir().unwrap();
    let disk = || Arc::new(Directory::open(root.path()).unwrap());
    assert!(matches!(Store::open(disk(), OpenOptions::default()), Err(StoreError::NotAVolume { .. })));
    let store = Store::create(disk(), CreateOptions::new(1 << 20)).unwrap();
    let refused = Store::open(disk(), OpenOptions::default()).err().unwrap();
    assert!(refused.to_string().contains(&format!("process {}", std::process::id())), "{refused}");
    assert_eq!(refused.kind(), FailureKind::Busy);
    drop(store);
    let again = Store::create(disk(), CreateOptions::new(1 << 20)).err().unwrap();
    assert_eq!(again.kind(), FailureKind::Exists);
    Store::open(disk(), OpenOptions::default()).unwrap();
}

#[test]
fn a_discard_over_a_snapshot_frees_the_head_and_hides_what_is_below() {
    let disk = Simulated::new();
    let store = created(&disk, 16);
    store.write(0, &[block(1), block(2), block(3)].concat()).unwrap();
    store.take("before");
    store.write_stamp(0, 9);
    store.zero(blocks(0, 2), false).unwrap();
    assert_eq!(store.read_stamps(blocks(0, 3)), [0, 0, 3]);
    assert_eq!(store.read_snapshot("before", blocks(0, 3)), [1, 2, 3]);
    let head = store.info().unwrap().head;
    let runs = store.layer_runs(head, blocks(0, 16)).unwrap();
    assert_eq!(runs.iter().map(|run| run.kind).collect::<Vec<_>>(), [RunKind::Zero, RunKind::Absent]);
    let kinds: Vec<_> = store.allocation(blocks(0, 16)).unwrap();
    assert_eq!(
        kinds.iter().map(|run| (run.kind, run.range.len / BLOCK)).collect::<Vec<_>>(),
        [(RunKind::Zero, 2), (RunKind::Data, 1), (RunKind::Absent, 13)]
    );
    store.zero(blocks(4, 2), true).unwrap();
    assert_eq!(store.allocation(blocks(4, 2)).unwrap()[0].kind, RunKind::Data);
}

#[test]
fn a_discard_of_what_was_never_written_does_nothing_to_the_disk() {
    let disk = Simulated::new();
    let store = Store::create(as_disk(&disk), CreateOptions::new(64 << 40)).unwrap();
    let before = disk.changes();
    store.zero(Range::new(0, 64 << 40), false).unwrap();
    assert_eq!(disk.changes(), before);
}

#[test]
fn snapshots_have_names_that_are_free_and_can_be_printed() {
    let store = created(&Simulated::new(), 16);
    store.take("daily");
    let taken = store.snapshot(spec("daily"), LayerId::random()).unwrap_err();
    assert_eq!(taken.kind(), FailureKind::Exists);
    let long = "x".repeat(254);
    for name in ["", "a/b", "tab\there", long.as_str()] {
        let error = store.snapshot(spec(name), LayerId::random()).unwrap_err();
        assert!(matches!(error, StoreError::Name { .. }), "{name:?}: {error}");
    }
    let head = store.info().unwrap().head;
    assert!(matches!(store.snapshot(spec("twice"), head), Err(StoreError::LayerExists(_))));
    store.remove_snapshot("daily").unwrap();
    assert_eq!(store.remove_snapshot("daily").unwrap_err().kind(), FailureKind::NotFound);
    store.take("daily");
}

#[test]
fn the_number_of_layers_is_limited_and_purging_makes_room() {
    let disk = Simulated::new();
    created(&disk, 16);
    let limits = Limits { layers: 3, ..Limits::default() };
    let store = Store::open(as_disk(&disk), OpenOptions { limits }).unwrap();
    store.take("a");
    store.take("b");
    let full = store.snapshot(spec("c"), LayerId::random()).unwrap_err();
    assert_eq!(full.kind(), FailureKind::ChainFull);
    assert!(full.to_string().contains("purge"), "{full}");
    store.remove_snapshot("a").unwrap();
    store.purge().unwrap();
    store.take("c");
}

#[test]
fn purging_gives_space_back_and_nobody_notices() {
    let disk = Simulated::new();
    let store = created(&disk, 64);
    for generation in 0..4 {
        for at in 0..32 {
            store.write_stamp(at, 100 * generation + at + 1);
        }
        store.take(&format!("s{generation}"));
    }
    let (content, kept) = (store.read_stamps(blocks(0, 64)), store.read_snapshot("s3", blocks(0, 64)));
    let used = |store: &Store| store.info().unwrap().layers.iter().map(|layer| layer.allocated).sum::<u64>();
    let before = used(&store);
    for name in ["s0", "s1", "s2"] {
        store.remove_snapshot(name).unwrap();
    }
    store.purge().unwrap();
    assert_eq!(store.layer_count(), 2);
    assert_eq!(used(&store) * 4, before);
    assert_eq!(store.read_stamps(blocks(0, 64)), content);
    assert_eq!(store.read_snapshot("s3", blocks(0, 64)), kept);
    let progress = store.purge_progress();
    assert!(!progress.running && progress.error.is_none() && progress.done == progress.total);
    let names: Vec<_> = disk_names(&disk);
    assert_eq!(names.iter().filter(|name| name.ends_with(".img")).count(), 2, "{names:?}");
}

fn disk_names(disk: &Simulated) -> Vec<String> {
    as_disk(disk).names().unwrap()
}

#[test]
fn a_large_removed_layer_takes_its_small_child_in_instead_of_being_copied() {
    let disk = Simulated::new();
    let store = created(&disk, 256);
    for at in 0..200 {
        store.write_stamp(at, at + 1);
    }
    store.take("large");
    store.write_stamp(3, 1000);
    store.zero(blocks(10, 2), false).unwrap();
    store.take("small");
    store.write_stamp(4, 2000);
    let digest = store.checksum(Some("small")).unwrap();
    let now = store.read_stamps(blocks(0, 256));
    store.remove_snapshot("large").unwrap();
    let before = disk.changes();
    store.purge().unwrap();
    assert!(disk.changes() - before < 40, "{} changes for three blocks", disk.changes() - before);
    assert_eq!((store.layer_count(), store.read_stamps(blocks(0, 256))), (2, now.clone()));
    assert_eq!(store.checksum(Some("small")).unwrap(), digest);
    drop(store);
    let store = reopened(&disk);
    assert_eq!(store.read_stamps(blocks(0, 256)), now);
    assert_eq!(store.checksum(Some("small")).unwrap(), digest);
}

#[test]
fn reverting_makes_branches_and_removed_branches_go_away() {
    let store = created(&Simulated::new(), 16);
    store.write_stamp(0, 1);
    store.take("a");
    store.write_stamp(0, 2);
    store.take("b");
    store.write_stamp(0, 3);
    store.revert("a", LayerId::random()).unwrap();
    assert_eq!(store.read_stamps(blocks(0, 1)), [1]);
    store.write_stamp(0, 4);
    store.take("c");
    assert_eq!(store.read_snapshot("b", blocks(0, 1)), [2]);
    // Two children, so the base stays although it is no longer listed.
    store.remove_snapshot("a").unwrap();
    store.purge().unwrap();
    assert_eq!(store.layer_count(), 4);
    store.remove_snapshot("b").unwrap();
    store.purge().unwrap();
    assert_eq!(store.layer_count(), 2);
    assert_eq!((store.read_stamps(blocks(0, 1)), store.read_snapshot("c", blocks(0, 1))), (vec![4], vec![4]));
}

#[test]
fn a_clone_and_its_source_live_and_die_on_their_own() {
    let disk = Simulated::new();
    let (store, target) = (created(&disk, 16), disk.sibling());
    store.write(0, &[block(1), block(2)].concat()).unwrap();
    store.take("golden");
    store.write_stamp(0, 5);
    let options = CloneOptions { replica: ReplicaId::random(), head: LayerId::random() };
    store.clone_to("golden", &target, &options).unwrap();
    let clone = reopened(&target);
    assert_eq!(clone.read_stamps(blocks(0, 3)), [1, 2, 0]);
    let info = clone.info().unwrap();
    assert_eq!((info.replica, info.membership.generation), (options.replica, Generation(0)));
    assert!(
        info.layers.iter().all(|layer| layer.snapshot.is_none()),
        "a clone lists no snapshots of its source"
    );
    // Folding the shared layer into the source's head leaves the clone as it is.
    store.remove_snapshot("golden").unwrap();
    store.purge().unwrap();
    store.zero(blocks(1, 1), false).unwrap();
    clone.write_stamp(0, 7);
    assert_eq!((store.read_stamps(blocks(0, 2)), clone.read_stamps(blocks(0, 2))), (vec![5, 0], vec![7, 2]));
    let elsewhere = store.clone_to("golden", &Simulated::new(), &options).unwrap_err();
    assert_eq!(elsewhere.kind(), FailureKind::NotFound);
    store.take("next");
    let elsewhere = store.clone_to("next", &Simulated::new(), &options).unwrap_err();
    assert!(matches!(elsewhere, StoreError::CrossDevice { .. }), "{elsewhere}");
    assert_eq!(store.clone_to("next", &target, &options).unwrap_err().kind(), FailureKind::Busy);
}

#[test]
fn a_layer_that_a_clone_shares_is_never_written_to() {
    let disk = Simulated::new();
    let (store, target) = (created(&disk, 16), disk.sibling());
    for (at, name) in [(0, "a"), (1, "b")] {
        store.write_stamp(at, at + 1);
        store.take(name);
    }
    store.clone_to("b", &target, &CloneOptions::default()).unwrap();
    store.remove_snapshot("a").unwrap();
    store.purge().unwrap();
    assert_eq!(store.layer_count(), 3, "both files are shared, so nothing can be folded");
    // When the clone goes, the layers are the source's alone.
    for name in target.names().unwrap() {
        target.remove(&name).unwrap();
    }
    store.purge().unwrap();
    assert_eq!((store.layer_count(), store.read_stamps(blocks(0, 2))), (2, vec![1, 2]));
}

#[test]
fn a_backing_image_is_below_everything_and_must_stay_what_it_was() {
    let disk = Simulated::new();
    let made = jiff::Timestamp::UNIX_EPOCH;
    let mut image = [block(1), block(2)].concat();
    image.extend([9; 8]);
    disk.add_image("/images/base.raw", &image, made);
    let backing = Some(BackingOptions { path: "/images/base.raw".to_owned(), layer: LayerId::random() });
    let options = CreateOptions { backing, ..CreateOptions::new(16 * BLOCK) };
    let store = Store::create(as_disk(&disk), options.clone()).unwrap();
    let mut third = vec![0; 4096];
    store.read_into(blocks(2, 1), &mut third).unwrap();
    assert_eq!((&third[..8], &third[8..]), (&[9; 8][..], &[0; 4088][..]));
    store.zero(blocks(0, 1), false).unwrap();
    store.take("s");
    store.write_stamp(1, 7);
    assert_eq!(store.read_stamps(blocks(0, 2)), [0, 7]);
    store.remove_snapshot("s").unwrap();
    store.purge().unwrap();
    drop(store);
    assert_eq!(reopened(&disk).read_stamps(blocks(0, 2)), [0, 7]);

    disk.add_image("/images/base.raw", &block(1), made);
    let changed = Store::open(as_disk(&disk), OpenOptions::default()).err().unwrap();
    assert!(changed.to_string().contains("put the original back"), "{changed}");
    let small = CreateOptions { size: BLOCK, ..options };
    disk.add_image("/images/base.raw", &image, made);
    assert!(matches!(Store::create(as_disk(&disk.sibling()), small), Err(StoreError::Backing { .. })));
}

#[test]
fn a_volume_grows_while_in_use_and_never_shrinks() {
    let disk = Simulated::new();
    let store = created(&disk, 8);
    store.write_stamp(7, 1);
    store.take("small");
    store.expand(INTENT_REGION * 100_000).unwrap();
    store.expand(INTENT_REGION * 100_000).unwrap();
    assert_eq!(store.expand(8 * BLOCK).unwrap_err().kind(), FailureKind::Invalid);
    assert_eq!(store.read_stamps(blocks(7, 3)), [1, 0, 0]);
    store.write_stamp(8, 2);
    store.set_intents(&[Regions(99_999, 1)]).unwrap();
    store.revert("small", LayerId::random()).unwrap();
    assert_eq!(store.read_stamps(blocks(7, 3)), [1, 0, 0]);
    drop(store);
    let store = reopened(&disk);
    assert_eq!((store.size(), store.intents()), (INTENT_REGION * 100_000, vec![Regions(99_999, 1)]));
    let info = store.info().unwrap();
    let sizes: Vec<u64> = info.layers.iter().map(|layer| layer.size).collect();
    assert_eq!(sizes, [8 * BLOCK, store.size()]);
}

#[test]
fn an_intent_is_on_disk_before_it_counts_and_goes_when_it_may() {
    let disk = Simulated::new();
    let store = created(&disk, 100 * INTENT_REGION / BLOCK);
    store.set_intents(&[Regions(3, 2), Regions(90, 1)]).unwrap();
    let marked = disk.changes();
    store.set_intents(&[Regions(4, 1)]).unwrap();
    assert_eq!(disk.changes(), marked, "a mark that is there costs nothing");
    store.clear_intents(&[Regions(90, 1)]).unwrap();
    store.set_intents(&[Regions(90, 1)]).unwrap();
    drop(store);
    disk.crash(7);
    assert_eq!(reopened(&disk).intents(), [Regions(3, 2), Regions(90, 1)]);
    let store = reopened(&disk);
    store.clear_intents(&[Regions(0, 100)]).unwrap();
    assert_eq!(store.intents(), []);
    assert_eq!(store.set_intents(&[Regions(1 << 40, 1)]).unwrap_err().kind(), FailureKind::Invalid);
    assert_eq!(store.set_intents(&[Regions(u64::MAX, 2)]).unwrap_err().kind(), FailureKind::Invalid);
}

#[test]
fn who_is_in_sync_survives_a_crash() {
    let disk = Simulated::new();
    let store = created(&disk, 8);
    let member =
        Member { replica: ReplicaId::random(), address: "10.0.0.1:9500".to_owned(), boot: String::new() };
    let record = Membership {
        generation: Generation(4),
        engine: None,
        members: vec![member],
        min_in_sync: 1,
        away: vec![],
    };
    store.set_membership(record.clone(), false, true).unwrap();
    let boot = store.info().unwrap().boot;
    drop(store);
    disk.crash(3);
    let info = reopened(&disk).info().unwrap();
    assert_eq!((info.membership, info.clean, info.rebuilding), (record, false, true));
    assert_ne!(info.boot, boot);
}

#[test]
fn a_full_disk_refuses_new_blocks_before_anything_is_applied() {
    let disk = Simulated::new();
    disk.set_capacity(1 << 20);
    let store = created(&disk, 1024);
    let mut at = 0;
    let full = loop {
        match store.write(at * BLOCK, &[block(at + 1), block(at + 2)].concat()) {
            Ok(()) => at += 2,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), FailureKind::NoSpace);
    assert_eq!(store.read_stamps(blocks(at, 2)), [0, 0]);
    assert_eq!(store.zero(blocks(at, 2), true).unwrap_err().kind(), FailureKind::NoSpace);
    // What is there can be overwritten, frozen and discarded: the reserve is for that.
    store.write_stamp(0, 77);
    store.set_intents(&[Regions(0, 1)]).unwrap();
    store.take("full");
    store.zero(blocks(0, at), false).unwrap();
    store.flush().unwrap();
    assert_eq!(store.read_stamps(blocks(0, 1)), [0]);
    store.remove_snapshot("full").unwrap();
    store.purge().unwrap();
    store.write_stamp(5, 5);
    assert_eq!(store.read_stamps(blocks(4, 2)), [0, 5]);
}

#[test]
fn without_a_reserve_the_last_block_can_be_had() {
    let disk = Simulated::new();
    disk.set_capacity(1 << 30);
    let options = CreateOptions { limits: no_reserve(), ..CreateOptions::new(1 << 20) };
    let store = Store::create(as_disk(&disk), options).unwrap();
    let used = (1 << 30) - store.info().unwrap().free;
    disk.set_capacity(used + 3 * BLOCK);
    // The gauge asks again only after a while, and then what it was told at the start no longer holds.
    store.write(0, &[block(1), block(2), block(3)].concat()).unwrap();
    assert_eq!(store.write(3 * BLOCK, &block(4)).unwrap_err().kind(), FailureKind::NoSpace);
    store.write(0, &block(5)).unwrap();
    assert_eq!(store.read_stamps(blocks(0, 4)), [5, 2, 3, 0]);
}
