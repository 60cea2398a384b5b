//! Large volumes: what they cost follows the data, not the size. Counted, not timed.

use std::sync::Arc;

use super::block;
use crate::disk::directory::Directory;
use crate::geometry::{BLOCK, Range};
use crate::store::{CreateOptions, OpenOptions, Store};

#[test]
fn a_thin_volume_of_64_tebibytes_costs_next_to_nothing() {
    let root = tempfile::tempdir().unwrap();
    let disk = || Arc::new(Directory::open(root.path()).unwrap());
    let size = 16 << 40;
    // ext4 with 4 KiB blocks keeps files of at most 16 TiB less a block; a volume may be as large as its file.
    let size = [64 << 40, size - BLOCK].into_iter().find(|size| fits(root.path(), *size)).unwrap();
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
    assert_eq!(store.allocation(Range::new(0, size)).unwrap().len(), 6);
    let mut bytes = block(1);
    store.read_into(Range::new(size - BLOCK, BLOCK), &mut bytes).unwrap();
    assert_eq!(bytes, block(0));
    // Skips the holes, or it would take hours.
    store.checksum(Some("at-0")).unwrap();
}

fn fits(directory: &std::path::Path, size: u64) -> bool {
    let file = std::fs::File::create(directory.join("try")).unwrap();
    let fits = file.set_len(size).is_ok();
    std::fs::remove_file(directory.join("try")).unwrap();
    fits
}
