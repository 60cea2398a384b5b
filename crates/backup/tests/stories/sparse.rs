//! A large, mostly empty volume: what a backup, a restore and a deletion touch is counted, not timed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use granary_backup::{Extent, Job, RestoreOnto, RestoreRequest, Source, Target};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::counting::CountingStore;
use crate::memory::MemoryStore;
use crate::setup::{name, repository, request, volume};

const BLOCK: u64 = 2 << 20;
const BLOCKS: u64 = 1024;
const CHANGED: u64 = BLOCKS / 20;

/// Every fourth block is data; `rewritten` of them have got other data since the first snapshot.
struct Sparse {
    rewritten: u64,
    knows_changes: bool,
    bytes_read: AtomicU64,
}

impl Sparse {
    fn new(rewritten: u64, knows_changes: bool) -> Self {
        Self { rewritten, knows_changes, bytes_read: AtomicU64::new(0) }
    }

    fn value(&self, block: u64) -> u64 {
        match block % 4 {
            0 if block / 4 < self.rewritten => block + 1_000_000,
            0 => block + 1,
            _ => 0,
        }
    }
}

fn fill(value: u64, buffer: &mut [u8]) {
    for word in buffer.as_chunks_mut::<8>().0 {
        *word = value.to_le_bytes();
    }
}

#[async_trait]
impl Source for Sparse {
    fn size(&self) -> u64 {
        BLOCKS * BLOCK
    }

    async fn allocated(&self) -> io::Result<Vec<Extent>> {
        Ok((0..BLOCKS).step_by(4).map(|block| Extent::new(block * BLOCK, BLOCK)).collect())
    }

    async fn changed_since(&self, _snapshot: &str) -> io::Result<Option<Vec<Extent>>> {
        let changed = (0..self.rewritten).map(|number| Extent::new(number * 4 * BLOCK + 8192, 4096));
        Ok(self.knows_changes.then(|| changed.collect()))
    }

    async fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.bytes_read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        fill(self.value(offset / BLOCK), buffer);
        Ok(())
    }
}

/// Keeps the first word of each block and insists that the others are the same.
#[derive(Default)]
struct Words {
    words: Mutex<std::collections::BTreeMap<u64, u64>>,
    bytes_written: AtomicU64,
}

#[async_trait]
impl Target for Words {
    fn size(&self) -> u64 {
        BLOCKS * BLOCK
    }

    async fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let words = data.as_chunks::<8>().0;
        assert!(words.iter().all(|word| *word == words[0]));
        self.words.lock().insert(offset / BLOCK, u64::from_le_bytes(words[0]));
        self.bytes_written.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn write_zeroes(&self, offset: u64, length: u64) -> io::Result<()> {
        panic!("nothing has to be zeroed, but {length} bytes at {offset} were")
    }

    async fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

fn plain(backup: &str) -> granary_backup::BackupRequest {
    let mut request = request(backup);
    request.parameters.clear();
    request
}

#[tokio::test(start_paused = true)]
async fn only_what_changed_is_read_written_and_deleted() {
    let store = CountingStore::new(Arc::new(MemoryStore::new()));
    let repository = repository(Arc::new(store.clone()));

    let first = Sparse::new(0, true);
    let job = Job::default();
    let done = repository.backup(&plain("backup-1"), &first, &job).await.unwrap();
    assert_eq!((done.is_incremental, done.blocks, done.blocks_uploaded), (false, 256, 256));
    assert_eq!(first.bytes_read.into_inner(), 256 * BLOCK, "holes are not read");
    assert_eq!(store.take_blocks(), [0, 0, 256, 0]);
    assert_eq!(job.progress().bytes(), (256 * BLOCK, 256 * BLOCK));

    let second = Sparse::new(CHANGED, true);
    let done = repository.backup(&plain("backup-2"), &second, &Job::default()).await.unwrap();
    assert_eq!((done.is_incremental, done.blocks, done.blocks_uploaded), (true, 256, CHANGED));
    assert_eq!(second.bytes_read.into_inner(), CHANGED * BLOCK);
    assert_eq!(store.take_blocks(), [0, CHANGED, CHANGED, 0]);

    let third = Sparse::new(CHANGED, false);
    let done = repository.backup(&plain("backup-3"), &third, &Job::default()).await.unwrap();
    assert_eq!((done.is_incremental, done.blocks, done.blocks_uploaded), (false, 256, 0));
    assert_eq!(store.take_blocks(), [0, 0, 0, 0], "all of it is known from the last list");

    let target = Words::default();
    let blank = RestoreRequest { volume: volume(), backup: name("backup-1"), onto: RestoreOnto::Blank };
    repository.restore(&blank, &target, &Job::default()).await.unwrap();
    assert_eq!(store.take_blocks(), [256, 0, 0, 0]);
    let onto = RestoreRequest {
        volume: volume(),
        backup: name("backup-2"),
        onto: RestoreOnto::Backup(name("backup-1")),
    };
    repository.restore(&onto, &target, &Job::default()).await.unwrap();
    assert_eq!(store.take_blocks(), [CHANGED, 0, 0, 0]);
    assert_eq!(target.bytes_written.into_inner(), (256 + CHANGED) * BLOCK);
    let expected = Sparse::new(CHANGED, true);
    assert!(target.words.lock().iter().all(|(block, word)| *word == expected.value(*block)));

    repository.delete_backup(&volume(), &name("backup-1"), &CancellationToken::new()).await.unwrap();
    assert_eq!(store.take_blocks(), [0, 0, 0, CHANGED]);
}

/// Rotation as a schedule does it: one new backup, the oldest goes.
#[tokio::test(start_paused = true)]
async fn a_deletion_reads_two_lists_however_many_there_are() {
    let store = CountingStore::new(Arc::new(MemoryStore::new()));
    let repository = repository(Arc::new(store.clone()));
    let mut disk = crate::disk::Disk::new(64 * 4096);
    let make = async |number: u64, disk: &mut crate::disk::Disk| {
        disk.write(number % 50 * 4, number as u8 + 1);
        let source = disk.snapshot(&format!("snapshot-of-backup-{number}"));
        repository.backup(&request(&format!("backup-{number}")), &source, &Job::default()).await.unwrap();
    };
    let delete = async |number: u64| {
        repository
            .delete_backup(&volume(), &name(&format!("backup-{number}")), &CancellationToken::new())
            .await
            .unwrap()
    };
    for number in 0..20 {
        make(number, &mut disk).await;
    }
    delete(0).await;
    for number in 20..30 {
        make(number, &mut disk).await;
        store.take_scans();
        delete(number - 19).await;
        assert_eq!(
            store.take_scans(),
            [2, 0],
            "the new one and the deleted one are read, and no listing of blocks"
        );
    }
}
