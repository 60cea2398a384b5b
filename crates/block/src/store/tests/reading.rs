//! Snapshots read by somebody who does not own the replica: what is told, and what is refused.

use super::{blocks, created, read_from_outside, reopened};
use crate::disk::simulated::{Operation, Simulated};
use crate::geometry::{BLOCK, Range};
use crate::ids::LayerId;
use crate::store::{Store, StoreError};
use crate::wire::message::{FailureKind, Run, RunKind};

fn layer(store: &Store, name: &str) -> LayerId {
    store.view.load().snapshot(name).unwrap().id
}

#[track_caller]
fn refused(told: Result<Vec<Option<u64>>, StoreError>) -> FailureKind {
    told.expect_err("it must not be told").kind()
}

#[test]
fn what_changed_between_two_snapshots_is_data_zero_or_nothing() {
    let store = created(&Simulated::new(), 64);
    store.write_stamp(0, 1);
    store.write_stamp(1, 2);
    store.take("a");
    store.write_stamp(1, 3);
    store.take("b");
    store.zero(blocks(0, 1), false).unwrap();
    store.write_stamp(5, 4);
    store.take("c");
    store.write_stamp(0, 9);
    let [a, b, c] = ["a", "b", "c"].map(|name| layer(&store, name));
    let told = |layer, since| read_from_outside(&store, layer, since, blocks(0, 6)).unwrap();
    assert_eq!(told(a, None), [Some(1), Some(2), None, None, None, None]);
    assert_eq!(told(c, None), [Some(0), Some(3), None, None, None, Some(4)]);
    assert_eq!(told(c, Some(b)), [Some(0), None, None, None, None, Some(4)]);
    assert_eq!(told(c, Some(a)), [Some(0), Some(3), None, None, None, Some(4)]);
    assert_eq!(told(c, Some(c)), [None; 6]);
    let whole = store.snapshot_runs(c, Some(b), blocks(0, 64)).unwrap();
    let run = |range, kind| Run { range, kind };
    let expected = [
        run(blocks(0, 1), RunKind::Zero),
        run(blocks(1, 4), RunKind::Absent),
        run(blocks(5, 1), RunKind::Data),
        run(blocks(6, 58), RunKind::Absent),
    ];
    assert_eq!(whole, expected);
}

#[test]
fn a_snapshot_ends_where_the_volume_ended_then() {
    let store = created(&Simulated::new(), 16);
    store.write_stamp(15, 1);
    store.take("small");
    store.expand(32 * BLOCK).unwrap();
    store.write_stamp(31, 2);
    store.take("large");
    let (small, large) = (layer(&store, "small"), layer(&store, "large"));
    assert!(read_from_outside(&store, small, None, blocks(0, 16)).is_ok());
    assert_eq!(refused(read_from_outside(&store, small, None, blocks(0, 17))), FailureKind::Invalid);
    let changes = read_from_outside(&store, large, Some(small), blocks(15, 17)).unwrap();
    assert_eq!((changes[0], changes[16]), (None, Some(2)));
}

#[test]
fn what_may_change_or_is_not_there_is_refused() {
    let disk = Simulated::new();
    let store = created(&disk, 64);
    store.write_stamp(0, 1);
    store.take("a");
    store.write_stamp(0, 2);
    store.take("b");
    store.revert("a", LayerId::random()).unwrap();
    store.take("branch");
    let [a, b, branch] = ["a", "b", "branch"].map(|name| layer(&store, name));
    let ask = |layer, since| read_from_outside(&store, layer, since, blocks(0, 1));
    assert_eq!(ask(branch, None).unwrap(), [Some(1)]);
    assert_eq!(refused(ask(store.head(), None)), FailureKind::Invalid);
    assert_eq!(refused(ask(LayerId::random(), None)), FailureKind::NotFound);
    assert_eq!(refused(ask(a, Some(LayerId::random()))), FailureKind::NotFound);
    for since in [b, store.head()] {
        assert_eq!(refused(ask(branch, Some(since))), FailureKind::Invalid, "it does not stand on that");
    }
    for range in [Range::new(0, 0), Range::new(1, BLOCK), blocks(64, 1), Range::new(0, u64::MAX - BLOCK + 1)]
    {
        assert_eq!(store.snapshot_runs(a, None, range).unwrap_err().kind(), FailureKind::Invalid);
        assert_eq!(store.snapshot_read(a, None, range).unwrap_err().kind(), FailureKind::Invalid);
    }
    store.remove_snapshot("b").unwrap();
    assert_eq!(refused(ask(b, None)), FailureKind::NotFound);
    store.purge().unwrap();
    assert_eq!(refused(ask(b, None)), FailureKind::NotFound);
    assert_eq!(ask(branch, Some(a)).unwrap(), [None]);
    drop(store);
    assert_eq!(read_from_outside(&reopened(&disk), a, None, blocks(0, 1)).unwrap(), [Some(1)]);
}

#[test]
fn a_replica_that_is_being_rebuilt_tells_nothing_of_its_snapshots() {
    let (source, target) = (created(&Simulated::new(), 64), created(&Simulated::new(), 64));
    source.write_stamp(0, 1);
    source.take("a");
    let info = source.info().unwrap();
    target.adopt(info.size, &info.layers, info.head).unwrap();
    let a = layer(&source, "a");
    assert_eq!(refused(read_from_outside(&target, a, None, blocks(0, 1))), FailureKind::Busy);
    assert_eq!(target.snapshot_runs(a, None, blocks(0, 1)).unwrap_err().kind(), FailureKind::Busy);
}

#[test]
fn content_in_doubt_is_not_told() {
    let disk = Simulated::new();
    let store = created(&disk, 64);
    store.write_stamp(0, 1);
    store.take("a");
    let a = layer(&store, "a");
    store.write_stamp(0, 2);
    disk.fail(Operation::Sync, 0);
    assert!(store.flush().is_err());
    assert_eq!(refused(read_from_outside(&store, a, None, blocks(0, 1))), FailureKind::Io);
}
