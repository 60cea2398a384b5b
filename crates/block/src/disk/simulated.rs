//! A file system in memory that loses what was not synced: each block, each punched hole, each length and each name
//! on its own, as a seed decides. It can also fail, fill up, and lose power at any call. For tests only.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Disk, File, ImageIdentity, LockError, LockGuard, Space};
use crate::geometry::BLOCK;

type Block = Arc<[u8; BLOCK as usize]>;
type Name = (u32, String);

/// Room that nobody counts.
const ENDLESS: u64 = 1 << 50;

/// One directory of a simulated file system; clones are handles of the same one.
#[derive(Clone)]
pub struct Simulated {
    fs: Arc<Mutex<FileSystem>>,
    directory: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    Punch,
    Sync,
    Names,
    /// A write that finds no room, even if it replaces something, as file systems do that never write in place. Some of
    /// its blocks may be written.
    Room,
}

#[derive(Clone, Default)]
struct FileSystem {
    /// Handles from before the last crash are dead.
    epoch: u64,
    names: BTreeMap<Name, u64>,
    durable: BTreeMap<Name, u64>,
    pending: Vec<NameChange>,
    inodes: BTreeMap<u64, Inode>,
    images: BTreeMap<String, (u64, ImageIdentity)>,
    locked: BTreeSet<u32>,
    next: u64,
    directories: u32,
    capacity: u64,
    faults: Vec<(Operation, u64)>,
    power: Option<u64>,
    changes: u64,
}

#[derive(Clone)]
enum NameChange {
    Add(Name, u64),
    Rename(Name, Name),
    Remove(Name),
}

#[derive(Clone, Default)]
struct Inode {
    live: Content,
    durable: Content,
    dirty: BTreeSet<u64>,
}

#[derive(Clone, Default)]
struct Content {
    len: u64,
    blocks: BTreeMap<u64, Block>,
}

impl Default for Simulated {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulated {
    pub fn new() -> Self {
        let fs = FileSystem { capacity: ENDLESS, directories: 1, ..FileSystem::default() };
        Self { fs: Arc::new(Mutex::new(fs)), directory: 0 }
    }

    /// Another, empty directory of the same file system.
    pub fn sibling(&self) -> Self {
        let mut fs = self.fs.lock();
        fs.directories += 1;
        Self { fs: self.fs.clone(), directory: fs.directories - 1 }
    }

    /// An independent copy of everything as it is, synced or not.
    pub fn fork(&self) -> Self {
        let mut fs = self.fs.lock().clone();
        fs.epoch += 1;
        fs.locked.clear();
        Self { fs: Arc::new(Mutex::new(fs)), directory: self.directory }
    }

    /// The power goes and comes back: of everything that was not synced, the seed decides what is left.
    pub fn crash(&self, seed: u64) {
        self.fs.lock().crash(&mut Dice(seed));
    }

    /// After that many more changes every call fails, until the next [`Simulated::crash`].
    pub fn cut_power_after(&self, changes: u64) {
        self.fs.lock().power = Some(changes);
    }

    pub fn has_power(&self) -> bool {
        self.fs.lock().power != Some(0)
    }

    /// How many changes (writes, punches, syncs, names) there were so far.
    pub fn changes(&self) -> u64 {
        self.fs.lock().changes
    }

    /// One operation of that kind fails, after that many more of them have gone well.
    pub fn fail(&self, operation: Operation, after: u64) {
        self.fs.lock().faults.push((operation, after));
    }

    /// Nothing that was asked to fail fails any more.
    pub fn clear_faults(&self) {
        self.fs.lock().faults.clear();
    }

    pub fn set_capacity(&self, bytes: u64) {
        self.fs.lock().capacity = bytes;
    }

    /// Somebody else takes all the room there is but this much.
    pub fn fill_up(&self, left: u64) {
        let mut fs = self.fs.lock();
        fs.capacity = fs.used() + left;
    }

    pub fn make_room(&self) {
        self.set_capacity(ENDLESS);
    }

    /// A file outside every directory, as a backing image is.
    pub fn add_image(&self, path: &str, bytes: &[u8], modified: jiff::Timestamp) {
        let mut fs = self.fs.lock();
        let mut content = Content::default();
        content.write(0, bytes);
        let inode = fs.next;
        fs.next += 1;
        fs.inodes.insert(inode, Inode { live: content.clone(), durable: content, dirty: BTreeSet::new() });
        let identity = ImageIdentity { size: bytes.len() as u64, modified };
        fs.images.insert(path.to_owned(), (inode, identity));
    }

    fn name(&self, name: &str) -> Name {
        (self.directory, name.to_owned())
    }

    fn handle(&self, fs: &FileSystem, inode: u64, writable: bool) -> Arc<dyn File> {
        Arc::new(SimulatedFile { fs: self.fs.clone(), epoch: fs.epoch, inode, writable })
    }

    fn find(&self, name: &str, writable: bool) -> io::Result<Arc<dyn File>> {
        let mut fs = self.fs.lock();
        fs.step(Operation::Read)?;
        let inode = *fs.names.get(&self.name(name)).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(&fs, inode, writable))
    }
}

impl Disk for Simulated {
    fn describe(&self) -> String {
        format!("simulated-{}", self.directory)
    }

    fn lock(&self) -> Result<LockGuard, LockError> {
        let mut fs = self.fs.lock();
        if !fs.locked.insert(self.directory) {
            return Err(LockError::Held(Some(std::process::id())));
        }
        Ok(Box::new(SimulatedLock { fs: self.fs.clone(), directory: self.directory, epoch: fs.epoch }))
    }

    fn lock_holder(&self) -> io::Result<Option<u32>> {
        Ok(self.fs.lock().locked.contains(&self.directory).then(std::process::id))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.find(name, true)
    }

    fn open_read_only(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.find(name, false)
    }

    fn open_image(&self, path: &str) -> io::Result<(Arc<dyn File>, ImageIdentity)> {
        let fs = self.fs.lock();
        let (inode, identity) = fs.images.get(path).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok((self.handle(&fs, inode, false), identity))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut fs = self.fs.lock();
        fs.step(Operation::Names)?;
        let name = self.name(name);
        if fs.names.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = fs.next;
        fs.next += 1;
        fs.inodes.insert(inode, Inode::default());
        fs.rename(NameChange::Add(name, inode));
        Ok(self.handle(&fs, inode, true))
    }

    fn link(&self, name: &str, into: &dyn Disk) -> io::Result<()> {
        let any: &dyn std::any::Any = into;
        let into = any.downcast_ref::<Self>().filter(|into| Arc::ptr_eq(&into.fs, &self.fs));
        let into = into.ok_or(io::ErrorKind::CrossesDevices)?;
        let mut fs = self.fs.lock();
        fs.step(Operation::Names)?;
        let inode = *fs.names.get(&self.name(name)).ok_or(io::ErrorKind::NotFound)?;
        let new = into.name(name);
        if fs.names.contains_key(&new) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs.rename(NameChange::Add(new, inode));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut fs = self.fs.lock();
        fs.step(Operation::Names)?;
        if !fs.names.contains_key(&self.name(from)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        fs.rename(NameChange::Rename(self.name(from), self.name(to)));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut fs = self.fs.lock();
        fs.step(Operation::Names)?;
        if !fs.names.contains_key(&self.name(name)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        fs.rename(NameChange::Remove(self.name(name)));
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let fs = self.fs.lock();
        Ok(fs.names.keys().filter(|name| name.0 == self.directory).map(|name| name.1.clone()).collect())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut fs = self.fs.lock();
        fs.step(Operation::Sync)?;
        let (mine, others) = std::mem::take(&mut fs.pending)
            .into_iter()
            .partition(|change| change.directory() == self.directory);
        fs.pending = others;
        let mut durable = std::mem::take(&mut fs.durable);
        for change in Vec::<NameChange>::from_iter(mine) {
            change.apply(&mut durable);
        }
        fs.durable = durable;
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        let fs = self.fs.lock();
        Ok(Space { free: fs.free(), total: fs.capacity })
    }

    fn block_size(&self) -> io::Result<u64> {
        Ok(BLOCK)
    }

    fn boot_id(&self) -> io::Result<String> {
        Ok(format!("boot-{}", self.fs.lock().epoch))
    }
}

impl NameChange {
    fn directory(&self) -> u32 {
        match self {
            Self::Add(name, _) | Self::Rename(name, _) | Self::Remove(name) => name.0,
        }
    }

    /// A change that builds on one that was lost is lost with it.
    fn apply(self, names: &mut BTreeMap<Name, u64>) {
        match self {
            Self::Add(name, inode) => {
                names.insert(name, inode);
            }
            Self::Rename(from, to) => {
                if let Some(inode) = names.remove(&from) {
                    names.insert(to, inode);
                }
            }
            Self::Remove(name) => {
                names.remove(&name);
            }
        }
    }
}

impl FileSystem {
    /// Counts one operation, and makes it fail if that was asked for.
    fn step(&mut self, operation: Operation) -> io::Result<()> {
        let change = operation != Operation::Read;
        match &mut self.power {
            Some(0) => return Err(io::Error::other("the power is off")),
            Some(left) if change => *left -= 1,
            _ => {}
        }
        self.changes += u64::from(change);
        if self.fires(operation) { Err(io::Error::other("an injected failure")) } else { Ok(()) }
    }

    fn fires(&mut self, operation: Operation) -> bool {
        let mut failed = false;
        self.faults.retain_mut(|(kind, after)| {
            if *kind != operation {
                return true;
            }
            let fires = *after == 0;
            failed |= fires;
            *after = after.saturating_sub(1);
            !fires
        });
        failed
    }

    fn rename(&mut self, change: NameChange) {
        change.clone().apply(&mut self.names);
        self.pending.push(change);
        let mut used: BTreeSet<u64> = self.names.values().chain(self.durable.values()).copied().collect();
        used.extend(self.images.values().map(|image| image.0));
        used.extend(self.pending.iter().filter_map(|change| match change {
            NameChange::Add(_, inode) => Some(*inode),
            _ => None,
        }));
        // Open files without a name live on in their handles' memory on a real system; here they stay until a crash.
        self.inodes.retain(|inode, content| used.contains(inode) || !content.live.blocks.is_empty());
    }

    fn free(&self) -> u64 {
        if self.capacity == ENDLESS {
            return ENDLESS;
        }
        self.capacity.saturating_sub(self.used())
    }

    fn used(&self) -> u64 {
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        let used = |inode: &u64| self.inodes.get(inode).map_or(0, |inode| inode.live.blocks.len() as u64);
        named.iter().map(used).sum::<u64>() * BLOCK
    }

    /// How many of these blocks of a file, from the first on, can be written before there is no more room.
    fn fitting(&mut self, inode: u64, blocks: Range<u64>) -> u64 {
        let all = blocks.end - blocks.start;
        if self.fires(Operation::Room) {
            return Dice(self.changes).below(all.max(1));
        }
        let mut room = self.free() / BLOCK;
        let held = self.inodes.get(&inode).map(|inode| &inode.live.blocks);
        for block in blocks.clone() {
            if held.is_some_and(|held| held.contains_key(&block)) {
                continue;
            }
            if room == 0 {
                return block - blocks.start;
            }
            room -= 1;
        }
        all
    }

    /// What the kernel does after a write-back that failed: the pages count as written, and sooner or later what is on
    /// the disk takes their place.
    fn drop_unsynced(&mut self, inode: u64) {
        let mut dice = Dice(self.changes);
        if let Some(inode) = self.inodes.get_mut(&inode) {
            inode.drop_unsynced(&mut dice);
        }
    }

    fn crash(&mut self, dice: &mut Dice) {
        self.epoch += 1;
        self.power = None;
        self.locked.clear();
        self.faults.clear();
        let keep_names = dice.share();
        for change in std::mem::take(&mut self.pending) {
            if dice.wins(keep_names) {
                change.apply(&mut self.durable);
            }
        }
        self.names = self.durable.clone();
        let mut used: BTreeSet<u64> = self.names.values().copied().collect();
        used.extend(self.images.values().map(|image| image.0));
        self.inodes.retain(|inode, _| used.contains(inode));
        for inode in self.inodes.values_mut() {
            inode.crash(dice);
        }
    }
}

impl Inode {
    fn drop_unsynced(&mut self, dice: &mut Dice) {
        let keep = dice.share();
        for block in std::mem::take(&mut self.dirty) {
            if !dice.wins(keep) {
                self.forget(block..block + 1);
            }
        }
    }

    /// Clean pages are read from the disk again when they are needed.
    fn forget(&mut self, blocks: Range<u64>) {
        let known: BTreeSet<u64> = self.live.blocks.range(blocks.clone()).map(|(block, _)| *block).collect();
        let stored: BTreeSet<u64> = self.durable.blocks.range(blocks).map(|(block, _)| *block).collect();
        for block in known.union(&stored).filter(|block| !self.dirty.contains(block)) {
            match self.durable.blocks.get(block) {
                Some(bytes) => self.live.blocks.insert(*block, bytes.clone()),
                None => self.live.blocks.remove(block),
            };
        }
    }

    fn crash(&mut self, dice: &mut Dice) {
        let keep = dice.share();
        if dice.wins(keep) {
            self.durable.len = self.live.len;
        }
        for block in std::mem::take(&mut self.dirty) {
            if dice.wins(keep) {
                match self.live.blocks.get(&block) {
                    Some(bytes) => self.durable.blocks.insert(block, bytes.clone()),
                    None => self.durable.blocks.remove(&block),
                };
            }
        }
        let end = self.durable.len.div_ceil(BLOCK);
        self.durable.blocks.retain(|block, _| *block < end);
        self.live = self.durable.clone();
    }
}

impl Content {
    fn read(&self, offset: u64, into: &mut [u8]) {
        for_blocks(offset, into.len(), |block, within, part| match self.blocks.get(&block) {
            Some(bytes) => into[part].copy_from_slice(&bytes[within]),
            None => into[part].fill(0),
        });
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        for_blocks(offset, data.len(), |block, within, part| {
            let bytes = self.blocks.entry(block).or_insert_with(|| Arc::new([0; BLOCK as usize]));
            Arc::make_mut(bytes)[within].copy_from_slice(&data[part]);
        });
        self.len = self.len.max(offset + data.len() as u64);
    }
}

fn for_blocks(offset: u64, len: usize, mut each: impl FnMut(u64, Range<usize>, Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let start = (at % BLOCK) as usize;
        let count = (BLOCK as usize - start).min(len - done);
        each(at / BLOCK, start..start + count, done..done + count);
        done += count;
    }
}

struct SimulatedFile {
    fs: Arc<Mutex<FileSystem>>,
    epoch: u64,
    inode: u64,
    writable: bool,
}

impl SimulatedFile {
    fn with<T>(&self, operation: Operation, work: impl FnOnce(&mut Inode) -> io::Result<T>) -> io::Result<T> {
        let mut fs = self.fs.lock();
        if fs.epoch != self.epoch {
            return Err(io::Error::other("a file that was open before the crash"));
        }
        if operation != Operation::Read && !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if let Err(error) = fs.step(operation) {
            if operation == Operation::Sync && fs.power != Some(0) {
                fs.drop_unsynced(self.inode);
            }
            return Err(error);
        }
        work(fs.inodes.entry(self.inode).or_default())
    }
}

impl File for SimulatedFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.with(Operation::Read, |inode| {
            inode.live.read(offset, into);
            Ok(())
        })
    }

    fn read_cached(&self, offset: u64, into: &mut [u8]) -> io::Result<bool> {
        self.read_at(offset, into).map(|()| true)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let blocks = offset / BLOCK..(offset + data.len() as u64).div_ceil(BLOCK);
        self.with(Operation::Write, |_| Ok(()))?;
        let mut fs = self.fs.lock();
        let end = blocks.start + fs.fitting(self.inode, blocks.clone());
        let inode = fs.inodes.entry(self.inode).or_default();
        let fits = data.len().min((end * BLOCK).saturating_sub(offset) as usize);
        if fits > 0 {
            inode.live.write(offset, &data[..fits]);
            inode.dirty.extend(blocks.start..end);
        }
        if end == blocks.end { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        self.with(Operation::Punch, |inode| {
            let blocks = range.start / BLOCK..range.end / BLOCK;
            let held: Vec<u64> = inode.live.blocks.range(blocks).map(|(block, _)| *block).collect();
            for block in held {
                inode.live.blocks.remove(&block);
                inode.dirty.insert(block);
            }
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(Operation::Sync, |inode| {
            for block in std::mem::take(&mut inode.dirty) {
                match inode.live.blocks.get(&block) {
                    Some(bytes) => inode.durable.blocks.insert(block, bytes.clone()),
                    None => inode.durable.blocks.remove(&block),
                };
            }
            inode.durable.len = inode.live.len;
            Ok(())
        })
    }

    fn forget(&self, range: Range<u64>) {
        let mut fs = self.fs.lock();
        if fs.epoch != self.epoch {
            return;
        }
        if let Some(inode) = fs.inodes.get_mut(&self.inode) {
            inode.forget(range.start / BLOCK..range.end.div_ceil(BLOCK));
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(Operation::Write, |inode| {
            let gone: Vec<u64> =
                inode.live.blocks.range(len.div_ceil(BLOCK)..).map(|(block, _)| *block).collect();
            for block in gone {
                inode.live.blocks.remove(&block);
                inode.dirty.insert(block);
            }
            inode.live.len = len;
            Ok(())
        })
    }

    fn size(&self) -> io::Result<u64> {
        self.with(Operation::Read, |inode| Ok(inode.live.len))
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.with(Operation::Read, |inode| {
            let mut run: Option<Range<u64>> = None;
            for (&block, _) in inode.live.blocks.range(offset / BLOCK..) {
                match &mut run {
                    None => run = Some(block..block + 1),
                    Some(run) if run.end == block => run.end += 1,
                    Some(_) => break,
                }
            }
            Ok(run.map(|run| run.start * BLOCK..run.end * BLOCK))
        })
    }

    fn allocated(&self) -> io::Result<u64> {
        self.with(Operation::Read, |inode| Ok(inode.live.blocks.len() as u64 * BLOCK))
    }

    fn links(&self) -> io::Result<u64> {
        let fs = self.fs.lock();
        Ok(fs.names.values().filter(|inode| **inode == self.inode).count() as u64)
    }
}

struct SimulatedLock {
    fs: Arc<Mutex<FileSystem>>,
    directory: u32,
    epoch: u64,
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut fs = self.fs.lock();
        if fs.epoch == self.epoch {
            fs.locked.remove(&self.directory);
        }
    }
}

/// A stream of numbers that its seed alone decides.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    /// How much of something survives, in quarters: nothing and everything are as likely as a mixture.
    fn share(&mut self) -> u64 {
        self.below(5)
    }

    fn wins(&mut self, quarters: u64) -> bool {
        self.below(4) < quarters
    }
}
