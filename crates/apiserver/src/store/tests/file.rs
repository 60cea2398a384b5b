//! The store in a real file: who may read it, who may open it, what a restart finds.

use std::os::unix::fs::PermissionsExt;

use super::{key, object, put, runtime};
use crate::store::{Expect, Options, Store, StoreError};

#[test]
fn a_closed_store_opens_again_with_everything_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("granary.redb");
    runtime().block_on(async {
        let store = Store::open(Options::new(&path)).unwrap();
        store.commit(put(&key(0), Expect::Absent, object(&key(0), 1, &[]))).await.unwrap();
        assert!(store.file_bytes() > 0);
        store.close().await;
        let late = store.commit(put(&key(1), Expect::Absent, object(&key(1), 1, &[]))).await;
        assert!(matches!(late, Err(StoreError::Closed)));
        assert!(matches!(store.get(&key(0)), Err(StoreError::Closed)));
        let again = Store::open(Options::new(&path)).unwrap();
        assert_eq!(again.revision(), 1);
        assert_eq!(again.get(&key(0)).unwrap().unwrap().revision, 1);
    });
}

#[test]
fn the_file_is_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("granary.redb");
    let _store = Store::open(Options::new(&path)).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_store_opens_once_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("granary.redb");
    let _first = Store::open(Options::new(&path)).unwrap();
    let second = Store::open(Options::new(&path)).err().unwrap();
    assert!(matches!(second, StoreError::InUse { .. }), "{second}");
}

#[test]
fn a_file_that_is_something_else_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("granary.redb");
    std::fs::write(&path, "not a database").unwrap();
    let refused = Store::open(Options::new(&path)).err().unwrap();
    assert!(matches!(refused, StoreError::Broken { .. }), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), b"not a database");
}

#[test]
fn a_disk_without_its_reserve_refuses_new_objects_and_still_lets_old_ones_go() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("granary.redb");
    runtime().block_on(async {
        let store = Store::open(Options::new(&path)).unwrap();
        store.commit(put(&key(0), Expect::Absent, object(&key(0), 1, &[]))).await.unwrap();
        store.close().await;

        let free = rustix::fs::statvfs(dir.path()).map(|s| s.f_bavail * s.f_frsize).unwrap();
        let mut options = Options::new(&path);
        options.reserve_bytes = free + free / 2;
        let store = Store::open(options).unwrap();
        let refused = store.commit(put(&key(1), Expect::Absent, object(&key(1), 1, &[]))).await.unwrap_err();
        assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
        assert!(refused.to_string().contains("free some space"), "{refused}");
        assert!(store.get(&key(0)).unwrap().is_some());
        let action = crate::store::Action::Delete(object(&key(0), 1, &[]));
        let delete = crate::store::Write { key: key(0), expect: Expect::Revision(1), action, previous: None };
        assert_eq!(store.commit(delete).await.unwrap().revision, 2);
        assert_eq!(store.commits(), 1, "a refused write costs no commit");
    });
}

#[test]
fn what_an_interrupted_first_start_left_behind_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("granary.redb");
    std::fs::write(dir.path().join("granary.redb.new"), vec![0; 100_000]).unwrap();
    let store = Store::open(Options::new(&path)).unwrap();
    assert_eq!(store.revision(), 0);
    assert!(!dir.path().join("granary.redb.new").exists());
}

#[test]
fn a_writer_that_panics_ends_the_process_and_one_that_returns_does_not() {
    let ended = std::cell::Cell::new(0);
    crate::store::or_end(|| {}, || ended.set(ended.get() + 1));
    assert_eq!(ended.get(), 0);
    crate::store::or_end(|| panic!("a broken invariant"), || ended.set(ended.get() + 1));
    assert_eq!(ended.get(), 1);
}

#[test]
fn an_object_that_is_too_large_is_refused_and_can_still_be_deleted() {
    let dir = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let store = Store::open(Options::new(dir.path().join("granary.redb"))).unwrap();
        let sized = |bytes: usize| serde_json::json!({ "metadata": {}, "data": "x".repeat(bytes) });
        let limit = crate::store::MAX_OBJECT;
        let refused = store.commit(put(&key(0), Expect::Absent, sized(limit))).await.unwrap_err();
        assert!(matches!(refused, StoreError::TooLarge { .. }), "{refused}");
        store.commit(put(&key(0), Expect::Absent, sized(limit - 100))).await.unwrap();
        // What a deletion notes about the object does not count.
        let action = crate::store::Action::Delete(sized(limit));
        let delete = crate::store::Write { key: key(0), expect: Expect::Revision(1), action, previous: None };
        store.commit(delete).await.unwrap();
        store.close().await;
    });
}
