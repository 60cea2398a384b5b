//! Random histories of volumes and their clones, block by block against a model: what was flushed is there, what was
//! not is old or new, and snapshots never change, whatever crashes in the middle of whatever.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::{block, read_from_outside, spec};
use crate::disk::Disk;
use crate::disk::directory::Directory;
use crate::disk::simulated::Simulated;
use crate::geometry::{BLOCK, Range};
use crate::ids::LayerId;
use crate::store::stripes::STRIPE;
use crate::store::{CloneOptions, CreateOptions, OpenOptions, Store, StoreError, inspect};

/// Everything happens around a border between two stripes.
const FIRST: u64 = STRIPE / BLOCK - 12;
const WINDOW: u64 = 24;
const SIZE: u64 = FIRST + WINDOW;

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Zero(u64, u64),
    Allocate(u64, u64),
    Snapshot,
    Remove(usize),
    Revert(usize),
    Purge,
    Clone(usize),
    Expand(u64),
    Flush,
    Reopen,
    Crash(u64),
}

/// One step on one of the volumes; with a number, the power goes after that many changes of the disk.
#[derive(Clone, Debug)]
struct Move {
    volume: usize,
    step: Step,
    cut: Option<(u64, u64)>,
}

fn step() -> impl Strategy<Value = Step> {
    let span = || (0..WINDOW, 1..10u64);
    prop_oneof![
        8 => span().prop_map(|(at, len)| Step::Write(at, len)),
        4 => span().prop_map(|(at, len)| Step::Zero(at, len)),
        1 => span().prop_map(|(at, len)| Step::Allocate(at, len)),
        4 => Just(Step::Snapshot),
        2 => any::<usize>().prop_map(Step::Remove),
        1 => any::<usize>().prop_map(Step::Revert),
        3 => Just(Step::Purge),
        1 => any::<usize>().prop_map(Step::Clone),
        1 => (1..8u64).prop_map(Step::Expand),
        2 => Just(Step::Flush),
        1 => Just(Step::Reopen),
        1 => any::<u64>().prop_map(Step::Crash),
    ]
}

fn moves(crashes: bool) -> impl Strategy<Value = Vec<Move>> {
    let cut = if crashes {
        prop::option::weighted(0.15, (0..40u64, any::<u64>())).boxed()
    } else {
        Just(None).boxed()
    };
    let one = (0..3usize, step(), cut).prop_map(|(volume, step, cut)| Move { volume, step, cut });
    prop::collection::vec(one, 1..60)
}

/// What a block may read as: the last flushed value and everything since; the last one is what it reads as now.
type Possible = Vec<u64>;

/// A change of the tree that the power cut short: it happened or it did not.
#[derive(Clone)]
enum Doubt {
    Snapshot(String),
    Remove(String),
    Revert(LayerId, Vec<u64>),
}

struct Volume {
    disk: Arc<dyn Disk>,
    store: Option<Store>,
    /// From block `FIRST` on.
    content: Vec<Possible>,
    snapshots: Vec<(String, Vec<u64>)>,
    doubt: Option<Doubt>,
}

struct World {
    volumes: Vec<Volume>,
    simulated: Option<Simulated>,
    sibling: Box<dyn Fn() -> Arc<dyn Disk>>,
    stamps: u64,
}

impl Volume {
    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.store = None;
        self.store = Some(Store::open(self.disk.clone(), OpenOptions::default()).unwrap());
    }

    fn now(&self) -> Vec<u64> {
        self.content.iter().map(|possible| *possible.last().unwrap()).collect()
    }

    fn set(&mut self, at: u64, len: u64, value: impl Fn(u64) -> u64) {
        let end = (at + len).min(self.content.len() as u64);
        for position in at..end {
            self.content[position as usize].push(value(position));
        }
    }

    fn settle(&mut self, content: Vec<u64>) {
        self.content = content.into_iter().map(|value| vec![value]).collect();
    }

    fn range(&self) -> Range {
        Range::of_blocks(FIRST..FIRST + self.content.len() as u64)
    }

    fn check(&self) {
        let store = self.store();
        assert_eq!(store.read_stamps(self.range()), self.now());
        let listed: BTreeSet<String> = store
            .info()
            .unwrap()
            .layers
            .into_iter()
            .filter(|layer| !layer.removed)
            .filter_map(|layer| layer.snapshot)
            .map(|snapshot| snapshot.name)
            .collect();
        assert_eq!(listed, self.snapshots.iter().map(|snapshot| snapshot.0.clone()).collect());
        for (name, content) in &self.snapshots {
            let range = Range::of_blocks(FIRST..FIRST + content.len() as u64);
            assert_eq!(&store.read_snapshot(name, range), content, "snapshot {name}");
            self.check_from_outside(name, content);
        }
    }

    /// What a reader without the replica is told: the snapshot, and for every older one that it stands on, what
    /// changed since.
    fn check_from_outside(&self, name: &str, content: &[u64]) {
        let meta = &self.store().view.load().meta;
        let layer = meta.snapshot(name).unwrap().id;
        let range = Range::of_blocks(FIRST..FIRST + content.len() as u64);
        let told = read_from_outside(self.store(), layer, None, range).unwrap();
        assert_eq!(told.iter().map(|told| told.unwrap_or(0)).collect::<Vec<_>>(), content, "{name}");
        for older in meta.ancestry(layer) {
            let named =
                |(name, _): &&(String, Vec<u64>)| meta.snapshot(name).is_some_and(|it| it.id == older.id);
            let Some((base, before)) = self.snapshots.iter().find(named) else { continue };
            let changes = read_from_outside(self.store(), layer, Some(older.id), range).unwrap();
            let patched = changes.iter().enumerate();
            let patched = patched.map(|(at, told)| told.unwrap_or(before.get(at).copied().unwrap_or(0)));
            assert_eq!(patched.collect::<Vec<_>>(), content, "{name} since {base}");
        }
    }

    /// Whether a change that was cut short has happened.
    fn decide(&mut self) {
        let meta = self.store().view.load().meta.clone();
        match self.doubt.take() {
            Some(Doubt::Snapshot(name)) if meta.snapshot(&name).is_some() => {
                let now = self.now();
                self.settle(now.clone());
                self.snapshots.push((name, now));
            }
            Some(Doubt::Remove(name)) if meta.snapshot(&name).is_none() => {
                self.snapshots.retain(|snapshot| snapshot.0 != name);
            }
            Some(Doubt::Revert(head, content)) if meta.head == head => self.settle(content),
            _ => {}
        }
    }

    /// The disk decided; the model follows, if that was among the possibilities.
    fn learn(&mut self) {
        self.reopen();
        self.decide();
        let size = self.store().size() / BLOCK - FIRST;
        while (self.content.len() as u64) < size {
            self.content.push(vec![0]);
        }
        let found = self.store().read_stamps(self.range());
        for (position, value) in found.iter().enumerate() {
            let possible = &self.content[position];
            assert!(possible.contains(value), "block {position} reads {value}, possible are {possible:?}");
        }
        self.settle(found);
    }
}

impl World {
    fn new(simulated: Option<Simulated>, sibling: Box<dyn Fn() -> Arc<dyn Disk>>) -> Self {
        let disk = sibling();
        let store = Store::create(disk.clone(), CreateOptions::new(SIZE * BLOCK)).unwrap();
        let content = vec![vec![0]; WINDOW as usize];
        let volume = Volume { disk, store: Some(store), content, snapshots: Vec::new(), doubt: None };
        Self { volumes: vec![volume], simulated, sibling, stamps: 0 }
    }

    fn play(&mut self, mut step: Move) {
        step.volume %= self.volumes.len();
        if let (Some((after, _)), Some(disk)) = (step.cut, &self.simulated) {
            disk.cut_power_after(after);
        }
        let failed = self.apply(step.volume, &step.step).is_err();
        let off = self.simulated.as_ref().is_some_and(|disk| !disk.has_power());
        assert!(off || !failed, "{step:?} failed without a reason");
        match (step.cut, &self.simulated) {
            (Some((_, seed)), Some(_)) => self.crash(seed),
            _ => self.volumes[step.volume].check(),
        }
    }

    fn crash(&mut self, seed: u64) {
        let Some(disk) = self.simulated.clone() else { return };
        for volume in &mut self.volumes {
            volume.store = None;
        }
        disk.crash(seed);
        for volume in &mut self.volumes {
            volume.learn();
            volume.check();
        }
    }

    fn apply(&mut self, index: usize, step: &Step) -> Result<(), StoreError> {
        self.stamps += 1000;
        let stamps = self.stamps;
        let volume = &mut self.volumes[index];
        let clip = |at: u64, len: u64, volume: &Volume| {
            let end = (at + len).min(volume.content.len() as u64);
            (at < end).then(|| Range::of_blocks(FIRST + at..FIRST + end))
        };
        match *step {
            Step::Write(at, len) => {
                let Some(range) = clip(at, len, volume) else { return Ok(()) };
                let bytes: Vec<u8> =
                    range.blocks().flat_map(|number| block(stamps + number - FIRST)).collect();
                volume.set(at, len, |position| stamps + position);
                volume.store().write(range.offset, &bytes)
            }
            Step::Zero(at, len) | Step::Allocate(at, len) => {
                let Some(range) = clip(at, len, volume) else { return Ok(()) };
                volume.set(at, len, |_| 0);
                volume.store().zero(range, matches!(step, Step::Allocate(..)))
            }
            Step::Snapshot => snapshot(volume, stamps),
            Step::Remove(which) => {
                let Some(which) = pick(volume, which) else { return Ok(()) };
                let name = volume.snapshots[which].0.clone();
                volume.doubt = Some(Doubt::Remove(name.clone()));
                volume.store().remove_snapshot(&name)?;
                volume.decide();
                Ok(())
            }
            Step::Revert(which) => {
                let Some(which) = pick(volume, which) else { return Ok(()) };
                revert(volume, which)
            }
            Step::Purge => volume.store().purge(),
            Step::Expand(more) => {
                let size = volume.content.len() as u64 + more;
                volume.store().expand((FIRST + size) * BLOCK)?;
                volume.content.resize(size as usize, vec![0]);
                Ok(())
            }
            Step::Flush => {
                volume.store().flush()?;
                let now = volume.now();
                volume.settle(now);
                Ok(())
            }
            Step::Reopen => {
                volume.store = None;
                volume.store = Some(Store::open(volume.disk.clone(), OpenOptions::default())?);
                Ok(())
            }
            Step::Crash(seed) => {
                self.crash(seed);
                Ok(())
            }
            Step::Clone(which) => self.clone(index, which),
        }
    }

    fn clone(&mut self, index: usize, which: usize) -> Result<(), StoreError> {
        let volume = &self.volumes[index];
        let Some(which) = pick(volume, which).filter(|_| self.volumes.len() < 3) else { return Ok(()) };
        let (name, content) = volume.snapshots[which].clone();
        let disk = (self.sibling)();
        volume.store().clone_to(&name, &*disk, &CloneOptions::default())?;
        let store = Some(Store::open(disk.clone(), OpenOptions::default())?);
        let mut clone = Volume { disk, store, content: Vec::new(), snapshots: Vec::new(), doubt: None };
        clone.settle(content);
        clone.check();
        self.volumes.push(clone);
        Ok(())
    }
}

fn pick(volume: &Volume, which: usize) -> Option<usize> {
    (!volume.snapshots.is_empty()).then(|| which % volume.snapshots.len())
}

fn snapshot(volume: &mut Volume, stamps: u64) -> Result<(), StoreError> {
    let name = format!("s{stamps}");
    volume.doubt = Some(Doubt::Snapshot(name.clone()));
    volume.store().snapshot(spec(&name), LayerId::random())?;
    volume.decide();
    Ok(())
}

fn revert(volume: &mut Volume, which: usize) -> Result<(), StoreError> {
    let (name, mut content) = volume.snapshots[which].clone();
    content.resize(volume.content.len(), 0);
    let head = LayerId::random();
    volume.doubt = Some(Doubt::Revert(head, content));
    volume.store().revert(&name, head)?;
    volume.decide();
    Ok(())
}

/// Nothing but what is meant to be there, and everything that is.
fn no_problems(world: &World) {
    for volume in &world.volumes {
        assert_eq!(inspect(&*volume.disk).unwrap().problems, []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn any_history_with_crashes_reads_as_the_model(moves in moves(true)) {
        let disk = Simulated::new();
        let sibling = disk.clone();
        let mut world = World::new(Some(disk), Box::new(move || Arc::new(sibling.sibling())));
        for step in moves {
            world.play(step);
        }
    }

    #[test]
    fn any_history_without_crashes_leaves_nothing_behind(moves in moves(false)) {
        let disk = Simulated::new();
        let sibling = disk.clone();
        let mut world = World::new(None, Box::new(move || Arc::new(sibling.sibling())));
        for step in moves {
            world.play(step);
        }
        no_problems(&world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_history_on_a_real_directory_reads_as_the_model(moves in moves(false)) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().to_owned();
        let count = std::cell::Cell::new(0);
        let mut world = World::new(
            None,
            Box::new(move || {
                count.set(count.get() + 1);
                Arc::new(Directory::create(path.join(format!("volume-{}", count.get()))).unwrap())
            }),
        );
        for step in moves {
            world.play(step);
        }
        no_problems(&world);
    }
}
