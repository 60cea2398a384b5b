//! The store as a whole, against simple models, on a disk that loses what it may and on a real one.

mod concurrency;
mod damage;
mod faults;
mod full;
mod model;
mod reading;
mod rebuilding;
mod scale;
mod stories;

use std::sync::Arc;

use super::io::read_chain;
use super::{CreateOptions, Limits, OpenOptions, Store};
use crate::disk::Disk;
use crate::disk::simulated::Simulated;
use crate::geometry::{BLOCK, Range};
use crate::ids::LayerId;
use crate::wire::message::{RunKind, SnapshotSpec};

/// A block full of one number; 0 is a block of zeroes.
fn block(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().repeat(BLOCK as usize / 8)
}

/// The number that fills a block, which must be the same throughout.
fn stamp(bytes: &[u8]) -> u64 {
    let first = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes.chunks(8).all(|chunk| chunk == first.to_le_bytes()), "a torn block");
    first
}

fn stamps(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks(BLOCK as usize).map(stamp).collect()
}

fn spec(name: &str) -> SnapshotSpec {
    SnapshotSpec {
        name: name.to_owned(),
        created: jiff::Timestamp::UNIX_EPOCH,
        user_created: true,
        labels: std::collections::BTreeMap::new(),
    }
}

fn blocks(start: u64, count: u64) -> Range {
    Range::of_blocks(start..start + count)
}

fn created(disk: &Simulated, size_in_blocks: u64) -> Store {
    Store::create(Arc::new(disk.clone()), CreateOptions::new(size_in_blocks * BLOCK)).unwrap()
}

fn reopened(disk: &Simulated) -> Store {
    Store::open(Arc::new(disk.clone()), OpenOptions::default()).unwrap()
}

/// A snapshot as a reader without the replica sees it, block by block; `None` where the layers say nothing.
fn read_from_outside(
    store: &Store,
    layer: LayerId,
    since: Option<LayerId>,
    range: Range,
) -> super::Result<Vec<Option<u64>>> {
    let (runs, data) = store.snapshot_read(layer, since, range)?;
    let mut data = stamps(&data).into_iter();
    let mut told = Vec::new();
    for run in runs {
        assert_eq!(run.range.offset, range.offset + told.len() as u64 * BLOCK);
        told.extend(run.range.blocks().map(|_| match run.kind {
            RunKind::Data => data.next(),
            RunKind::Zero => Some(0),
            RunKind::Absent => None,
        }));
    }
    assert_eq!((told.len() as u64 * BLOCK, data.next()), (range.len, None));
    Ok(told)
}

impl Store {
    fn write_stamp(&self, at: u64, stamp: u64) {
        self.write(at * BLOCK, &block(stamp)).unwrap();
    }

    fn read_stamps(&self, range: Range) -> Vec<u64> {
        let mut bytes = vec![0; range.len as usize];
        self.read_into(range, &mut bytes).unwrap();
        stamps(&bytes)
    }

    fn read_snapshot(&self, name: &str, range: Range) -> Vec<u64> {
        let view = self.view.load();
        let chain = view.chain_of(view.snapshot(name).unwrap().id);
        let mut bytes = vec![0; range.len as usize];
        let read = |layer: &super::layer::Layer, offset: u64, into: &mut [u8]| {
            layer.data.read_at(offset, into).map(|()| true)
        };
        assert!(read_chain(&chain, range, &mut bytes, read).unwrap());
        stamps(&bytes)
    }

    fn take(&self, name: &str) {
        self.snapshot(spec(name), LayerId::random()).unwrap();
    }

    fn layer_count(&self) -> usize {
        self.view.load().meta.layers.len()
    }
}

fn no_reserve() -> Limits {
    Limits { reserve: 0, ..Limits::default() }
}

fn as_disk(disk: &Simulated) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}
