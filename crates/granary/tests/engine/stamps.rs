//! A verifier: every block carries its number and a version, and what a volume may return after whatever happened to
//! it follows from which versions were written, acknowledged and flushed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use granary_frontend::{Volume, VolumeError};

use crate::cluster::HANGS;

pub const BLOCK: usize = 4096;
const WRITERS: u64 = 8;
/// How long a writer leaves a volume alone that has just failed it.
const BREATH: Duration = Duration::from_millis(50);

/// What is known of one block; the numbers are versions.
#[derive(Clone, Copy, Default)]
struct Block {
    issued: u64,
    acknowledged: u64,
    flushed: u64,
    /// Read during the life of this engine.
    seen: u64,
    /// What it was when everything stood still, and the newest version that was issued until then: those between the
    /// two were lost, and must not come back.
    settled: u64,
    lost: u64,
}

impl Block {
    /// What it is now is what it is from here on.
    fn settle(&mut self, version: u64) {
        let issued = self.issued;
        *self = Self {
            issued,
            acknowledged: version,
            flushed: version,
            seen: version,
            settled: version,
            lost: issued,
        };
    }

    fn assert_may_be(&self, number: usize, version: u64, least: u64) {
        let Self { issued, settled, lost, .. } = *self;
        let alive = version == settled || version > lost;
        assert!(
            alive && (least..=issued).contains(&version),
            "block {number} has version {version}, which is not one of {least}..={issued}, or was lost before: it was \
             found with {settled} when {lost} was the newest"
        );
    }
}

/// When a version was issued and, if it was, acknowledged, in the order of the verifier's own doings.
#[derive(Clone, Copy)]
struct Moments {
    issued: u64,
    acknowledged: Option<u64>,
}

#[derive(Clone)]
pub struct Stamps {
    blocks: Rc<RefCell<Vec<Block>>>,
    /// Of each block, each version's; the first belongs to version 1.
    history: Rc<RefCell<Vec<Vec<Moments>>>>,
    clock: Rc<Cell<u64>>,
    stop: Rc<Cell<bool>>,
    random: Rc<Cell<u64>>,
}

fn stamped(block: usize, version: u64) -> Bytes {
    let stamp = [(block as u64).to_le_bytes(), version.to_le_bytes()].concat();
    stamp.repeat(BLOCK / 16).into()
}

fn version_of(block: usize, data: &Bytes) -> u64 {
    let version = u64::from_le_bytes(data[8..16].try_into().unwrap());
    let expected = if version == 0 { Bytes::from(vec![0; BLOCK]) } else { stamped(block, version) };
    assert!(*data == expected, "block {block} is torn or not its own");
    version
}

impl Stamps {
    /// A failure is repeated with the same seed, as far as processes repeat.
    pub fn new(blocks: usize, seed: u64) -> Self {
        Self {
            blocks: Rc::new(RefCell::new(vec![Block::default(); blocks])),
            history: Rc::new(RefCell::new(vec![Vec::new(); blocks])),
            clock: Rc::default(),
            stop: Rc::default(),
            random: Rc::new(Cell::new(seed | 1)),
        }
    }

    fn random(&self, below: u64) -> u64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        state % below
    }

    pub fn stop(&self) {
        self.stop.set(true);
    }

    /// How many writes were acknowledged, more or less: what was lost with an engine counts too.
    pub fn writes(&self) -> u64 {
        self.versions().iter().sum()
    }

    /// What was acknowledged last, of each block.
    pub fn versions(&self) -> Vec<u64> {
        self.blocks.borrow().iter().map(|block| block.acknowledged).collect()
    }

    fn len(&self) -> usize {
        self.blocks.borrow().len()
    }

    /// Writes each block once, and flushes.
    pub async fn fill<V: Volume>(&self, volume: &V) {
        for block in 0..self.len() {
            self.write(volume, block).await.unwrap();
        }
        self.flush(volume).await.unwrap();
    }

    /// Writers on blocks of their own, a reader and a flusher, until told to stop or until something fails.
    pub fn load<V: Volume>(&self, volume: &V) -> Load {
        self.start(volume, false)
    }

    /// The same, but what fails is tried again.
    pub fn stubborn_load<V: Volume>(&self, volume: &V) -> Load {
        self.start(volume, true)
    }

    fn start<V: Volume>(&self, volume: &V, stubborn: bool) -> Load {
        self.stop.set(false);
        for block in self.blocks.borrow_mut().iter_mut() {
            block.seen = 0;
        }
        let blocks = self.len() as u64;
        let mut tasks: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (stamps, volume) = (self.clone(), volume.clone());
                tokio::task::spawn_local(self.clone().repeat(stubborn, async move || {
                    let block = stamps.random(blocks / WRITERS) * WRITERS + writer;
                    stamps.write(&volume, block as usize).await
                }))
            })
            .collect();
        let (stamps, reader) = (self.clone(), volume.clone());
        tasks.push(tokio::task::spawn_local(
            self.clone()
                .repeat(stubborn, async move || stamps.look(&reader, stamps.random(blocks) as usize).await),
        ));
        let (stamps, flusher) = (self.clone(), volume.clone());
        tasks.push(tokio::task::spawn_local(self.clone().repeat(stubborn, async move || {
            tokio::time::sleep(Duration::from_millis(20)).await;
            stamps.flush(&flusher).await
        })));
        Load { tasks, stamps: self.clone() }
    }

    async fn repeat(
        self,
        stubborn: bool,
        work: impl AsyncFn() -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        while !self.stop.get() {
            match work().await {
                Err(_) if stubborn => tokio::time::sleep(BREATH).await,
                other => other?,
            }
        }
        Ok(())
    }

    async fn write<V: Volume>(&self, volume: &V, block: usize) -> Result<(), VolumeError> {
        let version = self.blocks.borrow()[block].issued + 1;
        self.blocks.borrow_mut()[block].issued = version;
        let moments = Moments { issued: self.tick(), acknowledged: None };
        self.history.borrow_mut()[block].push(moments);
        volume.write((block * BLOCK) as u64, stamped(block, version), false).await?;
        self.blocks.borrow_mut()[block].acknowledged = version;
        self.history.borrow_mut()[block][version as usize - 1].acknowledged = Some(self.tick());
        Ok(())
    }

    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    async fn flush<V: Volume>(&self, volume: &V) -> Result<(), VolumeError> {
        let before = self.versions();
        volume.flush().await?;
        for (block, acknowledged) in self.blocks.borrow_mut().iter_mut().zip(before) {
            block.flushed = acknowledged;
        }
        Ok(())
    }

    /// A read under load shows what was acknowledged or read before it began, or something newer: a replica that was
    /// left behind would show less.
    async fn look<V: Volume>(&self, volume: &V, number: usize) -> Result<(), VolumeError> {
        let Block { acknowledged, seen, .. } = self.blocks.borrow()[number];
        let least = acknowledged.max(seen);
        let data = volume.read((number * BLOCK) as u64, BLOCK as u32).await?;
        let version = version_of(number, &data);
        let block = &mut self.blocks.borrow_mut()[number];
        block.assert_may_be(number, version, least);
        block.seen = version;
        Ok(())
    }

    /// Nothing crashed that may lose what was only acknowledged: every block is what was acknowledged last.
    pub async fn check_acknowledged<V: Volume>(&self, volume: &V) {
        self.check(volume, |block| block.acknowledged).await;
    }

    /// Every block is at least what was flushed, and what it is now is what it is from here on.
    pub async fn check_flushed<V: Volume>(&self, volume: &V) {
        self.check(volume, |block| block.flushed).await;
    }

    /// The volume is what it was at some moment between these two: there is a time before which everything that was
    /// acknowledged is in it, and after which nothing that was issued is. What came later is forgotten.
    pub async fn check_moment<V: Volume>(&self, volume: &V, (from, to): (u64, u64)) {
        let (mut earliest, mut latest) = (from, to);
        for number in 0..self.len() {
            let data = volume.read((number * BLOCK) as u64, BLOCK as u32).await.unwrap();
            let version = version_of(number, &data) as usize;
            let history = &self.history.borrow()[number];
            if version > 0 {
                earliest = earliest.max(history[version - 1].issued);
            }
            if let Some(missing) = history[version..].iter().find_map(|moments| moments.acknowledged) {
                latest = latest.min(missing);
            }
            let block = &mut self.blocks.borrow_mut()[number];
            block.settle(version as u64);
        }
        assert!(
            earliest <= latest,
            "something issued at {earliest} is there, and something acknowledged at {latest} is not"
        );
    }

    /// Now, as [`Self::check_moment`] counts.
    pub fn moment(&self) -> u64 {
        self.tick()
    }

    async fn check<V: Volume>(&self, volume: &V, least: impl Fn(&Block) -> u64) {
        for number in 0..self.len() {
            let data = volume.read((number * BLOCK) as u64, BLOCK as u32).await.unwrap();
            let version = version_of(number, &data);
            let block = &mut self.blocks.borrow_mut()[number];
            block.assert_may_be(number, version, least(block));
            block.settle(version);
        }
    }
}

pub struct Load {
    tasks: Vec<tokio::task::JoinHandle<Result<(), VolumeError>>>,
    stamps: Stamps,
}

impl Load {
    /// Ends it; no request may have failed.
    pub async fn finish(self) {
        self.stamps.stop();
        for task in self.tasks {
            task.await.unwrap().expect("no request fails");
        }
    }

    /// The volume was torn away from it: everybody must notice.
    pub async fn torn_away(self) {
        for task in self.tasks {
            let ended = tokio::time::timeout(HANGS, task).await.expect("a request is never answered");
            ended.unwrap().expect_err("the volume is gone");
        }
    }

    /// Ends it, whatever became of its requests.
    pub async fn end(self) {
        self.stamps.stop();
        for task in self.tasks {
            let ended = tokio::time::timeout(HANGS, task).await.expect("a request is never answered");
            // What the volume could not do is no failure of the test; what was wrong is.
            ended.unwrap().ok();
        }
    }
}
