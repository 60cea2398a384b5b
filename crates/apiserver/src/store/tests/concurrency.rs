//! Many writers at once: commits are shared, revisions are not.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::model::{self, events};
use super::{key, object, put};
use crate::store::{Expect, Key, Options, Prefix, Store, StoreError};

fn open() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(Options::new(dir.path().join("granary.redb"))).unwrap();
    (dir, store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_share_commits_and_get_dense_revisions() {
    const WRITERS: u64 = 32;
    const EACH: u64 = 25;
    let (_dir, store) = open();
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut revisions = Vec::new();
                for n in 0..EACH {
                    let key = Key::new("configmaps.", "default", &format!("w{writer}-{n}"));
                    let stored = store.commit(put(&key, Expect::Absent, object(&key, n, &[]))).await.unwrap();
                    assert_eq!(store.get(&key).unwrap().unwrap().revision, stored.revision);
                    revisions.push(stored.revision);
                }
                assert!(revisions.is_sorted(), "later writes of one writer come later");
                revisions
            })
        })
        .collect();
    let mut seen = BTreeSet::new();
    for task in tasks {
        for revision in task.await.unwrap() {
            assert!(seen.insert(revision), "revision {revision} was given twice");
        }
    }
    assert!(seen.iter().copied().eq(1..=WRITERS * EACH), "revisions have no gaps");
    assert!(
        store.commits() < WRITERS * EACH / 2,
        "{} commits for {} writes",
        store.commits(),
        WRITERS * EACH
    );
    assert_eq!(store.count(&Prefix::everything()).unwrap(), WRITERS * EACH);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_saw_the_same_version_one_wins() {
    let (_dir, store) = open();
    let first = store.commit(put(&key(0), Expect::Absent, object(&key(0), 0, &[]))).await.unwrap();
    let tasks: Vec<_> = (1..=16)
        .map(|content| {
            let store = store.clone();
            let write = put(&key(0), Expect::Revision(first.revision), object(&key(0), content, &[]));
            tokio::spawn(async move { store.commit(write).await })
        })
        .collect();
    let mut winners = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => winners += 1,
            Err(error) => assert!(matches!(error, StoreError::Moved { .. }), "{error}"),
        }
    }
    assert_eq!((winners, store.revision()), (1, 2));
}

/// Followers, lists and compaction run against writers; each follower sees every change exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn followers_miss_nothing_while_history_is_compacted() {
    const WRITES: u64 = 600;
    let (_dir, store) = open();
    let followers: Vec<_> = (0..3).map(|_| tokio::spawn(follow(store.clone(), WRITES))).collect();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = key(writer);
                let mut expect = Expect::Absent;
                for n in 0..WRITES / 4 {
                    let stored = store.commit(put(&key, expect, object(&key, n, &[]))).await.unwrap();
                    expect = Expect::Revision(stored.revision);
                }
            })
        })
        .collect();
    let compactor = {
        let shared = Arc::clone(&store.shared);
        let store = store.clone();
        tokio::task::spawn_blocking(move || {
            while store.revision() < WRITES {
                let at = store.snapshot(None).unwrap().revision();
                let keys = model::list(&store, at, &Prefix::everything(), 2).map(|l| l.len());
                assert!(matches!(keys, Ok(0..=4) | Err(StoreError::Compacted { .. })), "{keys:?}");
                shared.compact(store.revision().saturating_sub(100)).unwrap();
            }
        })
    };
    for task in writers {
        task.await.unwrap();
    }
    compactor.await.unwrap();
    for follower in followers {
        let revisions = follower.await.unwrap();
        assert!(revisions.iter().copied().eq(1..=WRITES));
    }
    let kept = events(&store, store.compacted(), &Prefix::everything(), 50).unwrap();
    assert_eq!(kept.len() as u64, WRITES - store.compacted());
}

async fn follow(store: Store, until: u64) -> Vec<u64> {
    let mut news = store.subscribe();
    let (mut cursor, mut seen) = (0, Vec::new());
    while cursor < until {
        let (events, next) = store.events_after(cursor, &Prefix::everything(), 7).unwrap();
        seen.extend(events.iter().map(|e| e.revision));
        assert!(store.revision() >= next, "a change is seen before the store is at its revision");
        if next == cursor {
            news.changed().await.unwrap();
        }
        cursor = next;
    }
    seen
}
