//! A verifier: every block carries its number and a version, and what a volume may return after whatever happened to
//! it follows from which versions were written, acknowledged and flushed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use granary_frontend::{Volume, VolumeError};

pub const BLOCK: usize = 4096;
const WRITERS: u64 = 8;
const HANGS: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Known {
    issued: Vec<u64>,
    acknowledged: Vec<u64>,
    flushed: Vec<u64>,
}

#[derive(Clone)]
pub struct Stamps {
    known: Rc<RefCell<Known>>,
    stop: Rc<Cell<bool>>,
    random: Rc<Cell<u64>>,
}

fn stamped(block: usize, version: u64) -> Bytes {
    let stamp = [(block as u64).to_le_bytes(), version.to_le_bytes()].concat();
    stamp.repeat(BLOCK / 16).into()
}

impl Stamps {
    /// A failure is repeated with the same seed, as far as processes repeat.
    pub fn new(blocks: usize, seed: u64) -> Self {
        let known =
            Known { issued: vec![0; blocks], acknowledged: vec![0; blocks], flushed: vec![0; blocks] };
        Self {
            known: Rc::new(RefCell::new(known)),
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

    pub fn writes(&self) -> u64 {
        self.known.borrow().acknowledged.iter().sum()
    }

    /// Writes each block once, and flushes.
    pub async fn fill<V: Volume>(&self, volume: &V) {
        let blocks = self.known.borrow().issued.len();
        for block in 0..blocks {
            self.write(volume, block).await.unwrap();
        }
        self.flush(volume).await.unwrap();
    }

    /// Writers on blocks of their own and a flusher, until told to stop or until something fails.
    pub fn load<V: Volume>(&self, volume: &V) -> Load {
        self.stop.set(false);
        let writers = (0..WRITERS).map(|writer| {
            let (stamps, volume) = (self.clone(), volume.clone());
            tokio::task::spawn_local(async move {
                let blocks = stamps.known.borrow().issued.len() as u64;
                while !stamps.stop.get() {
                    let block = stamps.random(blocks / WRITERS) * WRITERS + writer;
                    stamps.write(&volume, block as usize).await?;
                }
                Ok(())
            })
        });
        let mut tasks: Vec<_> = writers.collect();
        let (stamps, volume) = (self.clone(), volume.clone());
        tasks.push(tokio::task::spawn_local(async move {
            while !stamps.stop.get() {
                stamps.flush(&volume).await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        }));
        Load { tasks, stamps: self.clone() }
    }

    async fn write<V: Volume>(&self, volume: &V, block: usize) -> Result<(), VolumeError> {
        let version = self.known.borrow().issued[block] + 1;
        self.known.borrow_mut().issued[block] = version;
        volume.write((block * BLOCK) as u64, stamped(block, version), false).await?;
        self.known.borrow_mut().acknowledged[block] = version;
        Ok(())
    }

    async fn flush<V: Volume>(&self, volume: &V) -> Result<(), VolumeError> {
        let before = self.known.borrow().acknowledged.clone();
        volume.flush().await?;
        self.known.borrow_mut().flushed = before;
        Ok(())
    }

    /// Nothing crashed that may lose what was only acknowledged: every block is what was acknowledged last.
    pub async fn check_acknowledged<V: Volume>(&self, volume: &V) {
        let least = self.known.borrow().acknowledged.clone();
        self.check(volume, &least).await;
    }

    /// Every block is at least what was flushed, and what it is now is what it is from here on.
    pub async fn check_flushed<V: Volume>(&self, volume: &V) {
        let least = self.known.borrow().flushed.clone();
        let found = self.check(volume, &least).await;
        let mut known = self.known.borrow_mut();
        known.acknowledged.clone_from(&found);
        // A version that was issued and lost must not be taken for the next one with the same number.
        known.flushed = found;
    }

    async fn check<V: Volume>(&self, volume: &V, least: &[u64]) -> Vec<u64> {
        let most = self.known.borrow().issued.clone();
        let mut found = Vec::new();
        for block in 0..least.len() {
            let data = volume.read((block * BLOCK) as u64, BLOCK as u32).await.unwrap();
            let version = u64::from_le_bytes(data[8..16].try_into().unwrap());
            let expected = if version == 0 { Bytes::from(vec![0; BLOCK]) } else { stamped(block, version) };
            assert!(data == expected, "block {block} is torn or not its own");
            let range = least[block]..=most[block];
            assert!(range.contains(&version), "block {block} has version {version}, not one of {range:?}");
            found.push(version);
        }
        found
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
}
