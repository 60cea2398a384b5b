//! A disk in memory with snapshots: the source of backups, the target of restores, and what both are compared with.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use granary_backup::{Extent, Source, Target};
use parking_lot::Mutex;

/// What one chunk of the disk is, and thus what changes are noticed by.
pub const CHUNK: u64 = 1024;

/// Only chunks that were written; the rest is zeroes.
pub type Content = BTreeMap<u64, Vec<u8>>;

#[derive(Default)]
pub struct Disk {
    pub size: u64,
    pub content: Content,
    pub snapshots: BTreeMap<String, Content>,
}

impl Disk {
    pub fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    /// Fills one chunk, or as much of it as there is.
    pub fn write(&mut self, chunk: u64, value: u8) {
        let length = CHUNK.min(self.size - chunk * CHUNK) as usize;
        self.content.insert(chunk, vec![value; length]);
    }

    pub fn discard(&mut self, chunk: u64) {
        self.content.remove(&chunk);
    }

    pub fn snapshot(&mut self, name: &str) -> SnapshotSource {
        self.snapshots.insert(name.to_owned(), self.content.clone());
        SnapshotSource {
            size: self.size,
            content: self.content.clone(),
            others: self.snapshots.clone(),
            knows_changes: true,
            bytes_read: AtomicU64::new(0),
        }
    }
}

pub struct SnapshotSource {
    size: u64,
    content: Content,
    others: BTreeMap<String, Content>,
    pub knows_changes: bool,
    pub bytes_read: AtomicU64,
}

#[async_trait]
impl Source for SnapshotSource {
    fn size(&self) -> u64 {
        self.size
    }

    async fn allocated(&self) -> io::Result<Vec<Extent>> {
        Ok(self.content.keys().map(|chunk| Extent::new(chunk * CHUNK, CHUNK)).collect())
    }

    async fn changed_since(&self, snapshot: &str) -> io::Result<Option<Vec<Extent>>> {
        let Some(before) = self.others.get(snapshot).filter(|_| self.knows_changes) else { return Ok(None) };
        let mut chunks: Vec<u64> = before.keys().chain(self.content.keys()).copied().collect();
        chunks.sort_unstable();
        chunks.dedup();
        let changed = chunks.into_iter().filter(|chunk| before.get(chunk) != self.content.get(chunk));
        Ok(Some(changed.map(|chunk| Extent::new(chunk * CHUNK, CHUNK)).collect()))
    }

    async fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        assert!(offset + buffer.len() as u64 <= self.size, "reads stay within the volume");
        self.bytes_read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        buffer.fill(0);
        let end = offset + buffer.len() as u64;
        for (chunk, data) in self.content.range(offset / CHUNK..end.div_ceil(CHUNK)) {
            let start = (chunk * CHUNK - offset) as usize;
            buffer[start..start + data.len()].copy_from_slice(data);
        }
        Ok(())
    }
}

/// A volume to restore to.
pub struct Volume {
    bytes: Mutex<Vec<u8>>,
    pub bytes_written: AtomicU64,
    pub flushes: AtomicU64,
}

impl Volume {
    /// Full of what must not be there afterwards.
    pub fn dirty(size: u64) -> Self {
        Self::of(vec![0xAA; size as usize])
    }

    pub fn blank(size: u64) -> Self {
        Self::of(vec![0; size as usize])
    }

    pub fn holding(content: &Content, size: u64) -> Self {
        Self::of(bytes_of(content, size))
    }

    fn of(bytes: Vec<u8>) -> Self {
        Self { bytes: Mutex::new(bytes), bytes_written: AtomicU64::new(0), flushes: AtomicU64::new(0) }
    }

    #[track_caller]
    pub fn assert_holds(&self, content: &Content) {
        let bytes = self.bytes.lock();
        assert!(*bytes == bytes_of(content, bytes.len() as u64), "the restored volume differs");
        assert_eq!(self.flushes.load(Ordering::Relaxed), 1);
    }
}

fn bytes_of(content: &Content, size: u64) -> Vec<u8> {
    let mut bytes = vec![0; size as usize];
    for (chunk, data) in content {
        let start = (chunk * CHUNK) as usize;
        bytes[start..start + data.len()].copy_from_slice(data);
    }
    bytes
}

#[async_trait]
impl Target for Volume {
    fn size(&self) -> u64 {
        self.bytes.lock().len() as u64
    }

    async fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.bytes_written.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.bytes.lock()[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    async fn write_zeroes(&self, offset: u64, length: u64) -> io::Result<()> {
        self.bytes.lock()[offset as usize..][..length as usize].fill(0);
        Ok(())
    }

    async fn flush(&self) -> io::Result<()> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
