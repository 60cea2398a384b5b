//! One layer: a sparse file of content, a sparse bitmap of what it hides, and the index of both in memory.
//! A block's presence is the file system's own: a lost write is simply not there, and the older layer shows.
//! Data wins over the mask of its own layer, so the mask of a layer in use only ever grows.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::blocks::BlockSet;
use super::error::{Result, StoreError};
use super::metadata::{LayerRecord, mask_file};
use super::segments;
use crate::disk::{Disk, File};
use crate::geometry::BLOCK;
use crate::ids::LayerId;
use crate::wire::message::RunKind;

/// How much of a mask is written or read at a time.
const MASK_PIECE: u64 = 64 << 10;

pub(super) struct Layer {
    pub id: LayerId,
    pub data: Arc<dyn File>,
    /// `None` for a backing image: nothing is below it.
    mask: Option<Arc<dyn File>>,
    index: RwLock<Index>,
    /// Held while bytes of the mask are made from the index and written.
    masking: Mutex<()>,
    /// Writes to the mask so far, and how many of them are known to be on disk.
    mask_written: AtomicU64,
    mask_synced: AtomicU64,
    /// Shared with everybody who reads the layer as itself, so that its files are not taken over meanwhile.
    pub pin: Arc<()>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    pub data: BlockSet,
    /// Blocks below which nothing shows through.
    pub mask: BlockSet,
}

impl Index {
    /// What the layer says of the first block, and up to where it says the same.
    pub fn run(&self, blocks: Range<u64>) -> (RunKind, u64) {
        let (present, end) = self.data.run(blocks.clone());
        if present {
            return (RunKind::Data, end);
        }
        if self.mask.is_empty() {
            return (RunKind::Absent, end);
        }
        let (hidden, end) = self.mask.run(blocks.start..end);
        (if hidden { RunKind::Zero } else { RunKind::Absent }, end)
    }
}

impl Layer {
    /// Makes the files, which become durable with the next sync of names.
    pub fn create(disk: &dyn Disk, record: &LayerRecord) -> Result<Self> {
        let data = create_segments(disk, record, 0)?;
        let mask = create_sized(disk, &mask_file(record.files), mask_len(record.size))?;
        Ok(Self::assemble(record.id, segments::join(data), Some(mask), Index::default()))
    }

    pub fn open(disk: &dyn Disk, record: &LayerRecord) -> Result<Self> {
        if record.backing.is_some() {
            return Self::open_backing(disk, record);
        }
        let open = |name: String, len: u64| {
            let file = disk.open(&name).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => damaged(disk, format!("{name} is missing")),
                _ => StoreError::io(format!("open {name}"))(error),
            })?;
            let found = file.size().map_err(StoreError::io(format!("size of {name}")))?;
            if found < len {
                return Err(damaged(disk, format!("{name} has {found} bytes, {len} are expected")));
            }
            Ok(file)
        };
        let data = (0..segments::count(record.size))
            .map(|segment| {
                open(segments::name(record.files, segment), segments::segment_len(record.size, segment))
            })
            .collect::<Result<_>>()?;
        let data = segments::join(data);
        let mask = open(mask_file(record.files), mask_len(record.size))?;
        let index = load(&*data, Some(&*mask), record.size)
            .map_err(StoreError::io(format!("find what layer {} holds", record.id)))?;
        Ok(Self::assemble(record.id, data, Some(mask), index))
    }

    fn open_backing(disk: &dyn Disk, record: &LayerRecord) -> Result<Self> {
        let Some(backing) = &record.backing else {
            return Err(StoreError::Tree(format!("layer {} is not a backing image", record.id)));
        };
        let problem = |problem: String| StoreError::Backing { path: backing.path.clone(), problem };
        let (file, found) = disk.open_image(&backing.path).map_err(|error| problem(error.to_string()))?;
        if found != backing.identity {
            return Err(problem(format!(
                "it was {} bytes of {} and is now {} bytes of {}; put the original back",
                backing.identity.size, backing.identity.modified, found.size, found.modified
            )));
        }
        let index = load(&*file, None, record.size).map_err(|error| problem(error.to_string()))?;
        Ok(Self::assemble(record.id, file, None, index))
    }

    fn assemble(id: LayerId, data: Arc<dyn File>, mask: Option<Arc<dyn File>>, index: Index) -> Self {
        Self {
            id,
            data,
            mask,
            index: RwLock::new(index),
            masking: Mutex::new(()),
            mask_written: AtomicU64::new(0),
            mask_synced: AtomicU64::new(0),
            pin: Arc::new(()),
        }
    }

    /// These files as those of another layer, whose readers stay its readers.
    pub fn taking_the_place_of(&self, other: &Self) -> Self {
        let index = self.index.read().clone();
        Self {
            pin: other.pin.clone(),
            ..Self::assemble(other.id, self.data.clone(), self.mask.clone(), index)
        }
    }

    /// The same layer with room for more than its files can hold. Nobody may be changing it meanwhile.
    pub fn with_more_segments(&self, disk: &dyn Disk, record: &LayerRecord, had: u64) -> Result<Self> {
        create_segments(disk, record, had)?;
        let open = |name: String| disk.open(&name).map_err(StoreError::io(format!("open {name}")));
        let parts = segments::names(record.files, record.size).map(open).collect::<Result<_>>()?;
        let longer = Self {
            pin: self.pin.clone(),
            ..Self::assemble(self.id, segments::join(parts), self.mask.clone(), self.index.read().clone())
        };
        longer.mask_written.store(1, Ordering::SeqCst);
        Ok(longer)
    }

    pub fn run(&self, blocks: Range<u64>) -> (RunKind, u64) {
        self.index.read().run(blocks)
    }

    pub fn data_count(&self, blocks: Range<u64>) -> u64 {
        self.index.read().data.count(blocks)
    }

    pub fn next_data(&self, blocks: Range<u64>) -> Option<Range<u64>> {
        self.index.read().data.next(blocks)
    }

    pub fn next_masked(&self, blocks: Range<u64>) -> Option<Range<u64>> {
        self.index.read().mask.next(blocks)
    }

    pub fn masked_run(&self, blocks: Range<u64>) -> (bool, u64) {
        self.index.read().mask.run(blocks)
    }

    /// How many blocks of content there are.
    pub fn data_len(&self) -> u64 {
        self.index.read().data.len()
    }

    pub fn memory(&self) -> u64 {
        let index = self.index.read();
        index.data.memory() + index.mask.memory()
    }

    pub fn optimise(&self) {
        let mut index = self.index.write();
        index.data.optimise();
        index.mask.optimise();
    }

    /// Writes content and then says so: a reader in between still gets the older layer's.
    pub fn put(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let new = self.put_new(offset, bytes)?;
        self.put_rest(offset, bytes, new)
    }

    /// The first half of [`Layer::put`]: writes the blocks that the layer does not have, which is what may not fit, and
    /// does not say so yet. Answers how many there were.
    pub fn put_new(&self, offset: u64, bytes: &[u8]) -> io::Result<u64> {
        let blocks = offset / BLOCK..(offset + bytes.len() as u64) / BLOCK;
        let all = blocks.end - blocks.start;
        let new = all - self.data_count(blocks.clone());
        if new == all {
            self.data.write_at(offset, bytes)?;
        } else if new > 0 {
            self.put_where(false, blocks, bytes)?;
        }
        Ok(new)
    }

    /// The second half of [`Layer::put`]: replaces what the layer has, and says that everything is there.
    pub fn put_rest(&self, offset: u64, bytes: &[u8], new: u64) -> io::Result<()> {
        let blocks = offset / BLOCK..(offset + bytes.len() as u64) / BLOCK;
        if new == 0 {
            return self.data.write_at(offset, bytes);
        }
        if new < blocks.end - blocks.start {
            self.put_where(true, blocks.clone(), bytes)?;
        }
        self.index.write().data.insert(blocks);
        Ok(())
    }

    /// Writes those of the blocks that the layer has, or those that it has not.
    fn put_where(&self, held: bool, blocks: Range<u64>, bytes: &[u8]) -> io::Result<()> {
        self.each_run(blocks.clone(), held, |run| {
            let part =
                ((run.start - blocks.start) * BLOCK) as usize..((run.end - blocks.start) * BLOCK) as usize;
            self.data.write_at(run.start * BLOCK, &bytes[part])
        })
    }

    /// After a write that did not fit: the file holds no block that the layer does not say it has.
    pub fn take_back(&self, blocks: Range<u64>) -> io::Result<()> {
        self.each_run(blocks, false, |run| self.data.punch(run.start * BLOCK..run.end * BLOCK))
    }

    fn each_run(
        &self,
        blocks: Range<u64>,
        held: bool,
        mut each: impl FnMut(Range<u64>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut at = blocks.start;
        while at < blocks.end {
            let (found, end) = self.index.read().data.run(at..blocks.end);
            if found == held {
                each(at..end)?;
            }
            at = end;
        }
        Ok(())
    }

    /// Drops content. What must stay hidden below has been masked, durably, before.
    pub fn drop_data(&self, blocks: Range<u64>) -> io::Result<()> {
        let mut at = blocks.start;
        while let Some(run) = self.next_data(at..blocks.end) {
            self.data.punch(run.start * BLOCK..run.end * BLOCK)?;
            self.index.write().data.remove(run.clone());
            at = run.end;
        }
        Ok(())
    }

    /// Hides (or shows again) what is below. On disk after [`Layer::sync_mask`]. When it does not fit nothing changes.
    pub fn set_mask(&self, blocks: Range<u64>, hidden: bool) -> io::Result<()> {
        let Some(file) = &self.mask else {
            return Ok(());
        };
        let _alone = self.masking.lock();
        let mut at = blocks.start;
        while at < blocks.end {
            let end = blocks.end.min((at / 8 + MASK_PIECE) * 8);
            let bytes = self.mask_bytes(at..end, hidden);
            if let Err(error) = file.write_at(at / 8, &bytes) {
                if error.kind() == io::ErrorKind::StorageFull {
                    self.restore_mask(&**file, blocks.start..end)?;
                }
                return Err(error);
            }
            at = end;
        }
        let mut index = self.index.write();
        if hidden {
            index.mask.insert(blocks);
        } else {
            index.mask.remove(blocks);
        }
        self.mask_written.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Writes what the mask says of these blocks, block of the file by block of the file, as far as a write that did not
    /// fit can have come: the first that is not there ends it.
    fn restore_mask(&self, file: &dyn File, blocks: Range<u64>) -> io::Result<()> {
        let mut at = blocks.start;
        while at < blocks.end {
            let end = blocks.end.min((at / 8 / BLOCK + 1) * BLOCK * 8);
            let bytes = self.known_mask(at / 8..end.div_ceil(8));
            match file.write_at(at / 8, &bytes) {
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                other => other?,
            }
            at = end;
        }
        Ok(())
    }

    fn known_mask(&self, bytes: Range<u64>) -> Vec<u8> {
        let index = self.index.read();
        let byte =
            |at: u64| (0..8).fold(0, |byte, bit| byte | u8::from(index.mask.contains(at * 8 + bit)) << bit);
        bytes.map(byte).collect()
    }

    /// The bytes of the mask that cover these blocks, with these blocks set or cleared and their neighbours as they
    /// are.
    fn mask_bytes(&self, blocks: Range<u64>, hidden: bool) -> Vec<u8> {
        let first = blocks.start / 8;
        let last = (blocks.end - 1) / 8;
        let mut bytes = vec![if hidden { 0xff } else { 0 }; (last - first + 1) as usize];
        let index = self.index.read();
        for edge in [first, last] {
            let mut byte = 0u8;
            for bit in 0..8 {
                let block = edge * 8 + bit;
                let set = if blocks.contains(&block) { hidden } else { index.mask.contains(block) };
                byte |= u8::from(set) << bit;
            }
            bytes[(edge - first) as usize] = byte;
        }
        bytes
    }

    /// Makes every earlier change of the mask durable; free when it is already.
    pub fn sync_mask(&self) -> io::Result<()> {
        let written = self.mask_written.load(Ordering::SeqCst);
        if let Some(mask) = &self.mask
            && self.mask_synced.load(Ordering::SeqCst) < written
        {
            mask.sync()?;
            self.mask_synced.fetch_max(written, Ordering::SeqCst);
        }
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.sync_mask()?;
        self.data.sync()
    }

    /// Another volume reads these files too, so they are never changed.
    pub fn is_shared(&self) -> io::Result<bool> {
        Ok(self.mask.is_none() || self.data.links()? > 1)
    }

    pub fn is_backing(&self) -> bool {
        self.mask.is_none()
    }

    /// Room for more; what is beyond the old size is not there.
    pub fn grow(&self, size: u64) -> io::Result<()> {
        self.data.set_len(size)?;
        self.data.sync()?;
        if let Some(mask) = &self.mask {
            mask.set_len(mask_len(size))?;
            mask.sync()?;
        }
        Ok(())
    }

    pub fn allocated(&self) -> io::Result<u64> {
        if self.is_backing() {
            return self.data.allocated();
        }
        Ok(self.data.allocated()? + self.mask.as_ref().map_or(Ok(0), |mask| mask.allocated())?)
    }

    /// Reads for a background job: what was not in memory before is not left there.
    pub fn read_aside(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if !self.data.read_cached(offset, into)? {
            self.data.read_at(offset, into)?;
            self.data.forget(offset..offset + into.len() as u64);
        }
        Ok(())
    }
}

pub(super) const fn mask_len(size: u64) -> u64 {
    (size / BLOCK).div_ceil(8).next_multiple_of(BLOCK)
}

/// Walks the extents of both files. Costs as much as there are extents, whatever the size of the volume.
pub(super) fn load(data: &dyn File, mask: Option<&dyn File>, size: u64) -> io::Result<Index> {
    let mut index = Index::default();
    let mut at = 0;
    while let Some(run) = data.next_data(at)? {
        if run.start >= size {
            break;
        }
        index.data.insert(run.start / BLOCK..run.end.min(size).div_ceil(BLOCK));
        at = run.end;
    }
    if let Some(mask) = mask {
        load_mask(mask, size / BLOCK, &mut index.mask)?;
    }
    index.data.optimise();
    index.mask.optimise();
    Ok(index)
}

fn load_mask(mask: &dyn File, blocks: u64, into: &mut BlockSet) -> io::Result<()> {
    let mut bytes = vec![0; MASK_PIECE as usize];
    let mut at = 0;
    while let Some(run) = mask.next_data(at)? {
        let mut offset = run.start;
        while offset < run.end {
            let piece = &mut bytes[..(run.end - offset).min(MASK_PIECE) as usize];
            mask.read_at(offset, piece)?;
            for_each_run(piece, |bits| {
                let hidden = offset * 8 + bits.start..(offset * 8 + bits.end).min(blocks);
                if !hidden.is_empty() {
                    into.insert(hidden);
                }
            });
            offset += piece.len() as u64;
        }
        at = run.end;
    }
    Ok(())
}

/// Calls back with every run of set bits.
fn for_each_run(bytes: &[u8], mut each: impl FnMut(Range<u64>)) {
    let mut open: Option<u64> = None;
    for (position, &byte) in bytes.iter().enumerate() {
        let base = position as u64 * 8;
        match (byte, open) {
            (0, None) | (0xff, Some(_)) => continue,
            _ => {}
        }
        for bit in 0..8 {
            match (byte >> bit & 1 == 1, open) {
                (true, None) => open = Some(base + bit),
                (false, Some(start)) => {
                    each(start..base + bit);
                    open = None;
                }
                _ => {}
            }
        }
    }
    if let Some(start) = open {
        each(start..bytes.len() as u64 * 8);
    }
}

/// The content files from one segment on.
fn create_segments(disk: &dyn Disk, record: &LayerRecord, first: u64) -> Result<Vec<Arc<dyn File>>> {
    (first..segments::count(record.size))
        .map(|segment| {
            let len = segments::segment_len(record.size, segment);
            create_sized(disk, &segments::name(record.files, segment), len)
        })
        .collect()
}

fn create_sized(disk: &dyn Disk, name: &str, len: u64) -> Result<Arc<dyn File>> {
    let file = create_over_leftover(disk, name)?;
    file.set_len(len).and_then(|()| file.sync()).map_err(StoreError::io(format!("size {name}")))?;
    Ok(file)
}

/// A crash may have left a file of a layer that never came to be. It is empty; one that is not is somebody's data.
fn create_over_leftover(disk: &dyn Disk, name: &str) -> Result<Arc<dyn File>> {
    let action = || format!("create {name}");
    match disk.create(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let old = disk.open(name).map_err(StoreError::io(action()))?;
            if old.next_data(0).map_err(StoreError::io(action()))?.is_some() {
                return Err(damaged(disk, format!("{name} is in the way and holds data of no known layer")));
            }
            disk.remove(name).map_err(StoreError::io(action()))?;
            disk.create(name).map_err(StoreError::io(action()))
        }
        other => other.map_err(StoreError::io(action())),
    }
}

fn damaged(disk: &dyn Disk, problem: String) -> StoreError {
    StoreError::Damaged { directory: disk.describe(), problem }
}
