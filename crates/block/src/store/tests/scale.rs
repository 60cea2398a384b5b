//! Large volumes: what they cost follows the data, not the size. Counted, not timed.

use std::sync::Arc;

use super::{block, blocks, created, reopened};
use crate::disk::directory::Directory;
use crate::disk::simulated::Simulated;
use crate::geometry::{BLOCK, Range};
use crate::store::{CreateOptions, OpenOptions, Store};

#[test]
fn a_thin_volume_of_64_tebibytes_costs_next_to_nothing() {
    let root = tempfile::tempdir().unwrap();
    let disk = || Arc::new(Directory::open(root.path()).unwrap());
    let size = 64 << 40;
    let store = Store::create(disk(), CreateOptions::new(size)).unwrap();
    for place in [0, size / 2 / BLOCK, size / BLOCK - 1] {
        store.write_stamp(place, place + 1);
        store.take(&format!("at-{place}"));
        store.zero(Range::new(place * BLOCK, BLOCK), false).unwrap();
    }
    store.zero(Range::new(0, size), false).unwrap();
    drop(store);
    let store = Store::open(disk(), OpenOptions::default()).unwrap();
    assert!(store.index_memory() < 1 << 20, "{} bytes of index", store.index_memory());
    let info = store.info().unwrap();
    let used: u64 = info.layers.iter().map(|layer| layer.allocated).sum();
    assert!(used < 1 << 20, "{used} bytes on disk");
    assert_eq!(store.allocation(Range::new(0, size)).unwrap().len(), 5);
    let mut bytes = block(1);
    store.read_into(Range::new(size - BLOCK, BLOCK), &mut bytes).unwrap();
    assert_eq!(bytes, block(0));
    // Skips the holes, or it would take hours.
    store.checksum(Some("at-0")).unwrap();
}

#[test]
fn a_volume_grows_beyond_what_one_file_can_hold() {
    let disk = Simulated::new();
    let store = created(&disk, 16);
    store.write_stamp(3, 1);
    store.take("small");
    store.zero(blocks(3, 1), false).unwrap();
    store.write_stamp(4, 2);
    store.expand(64 << 40).unwrap();
    let last = (64 << 40) / BLOCK - 1;
    store.write_stamp(last, 3);
    store.take("large");
    store.clone_to("large", &disk.sibling(), &crate::store::CloneOptions::default()).unwrap();
    store.remove_snapshot("small").unwrap();
    store.purge().unwrap();
    store.flush().unwrap();
    drop(store);
    disk.crash(1);
    let store = reopened(&disk);
    assert_eq!((store.read_stamps(blocks(3, 2)), store.read_stamps(blocks(last, 1))), (vec![0, 2], vec![3]));
    assert_eq!(crate::store::inspect(&disk).unwrap().problems, []);
    store.revert("large", crate::ids::LayerId::random()).unwrap();
    assert_eq!(store.read_stamps(blocks(last, 1)), [3]);
}
