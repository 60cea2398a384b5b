//! The store on real file systems, made for the test on loop devices: what it relies on holds there, also after a
//! loss of power. Needs root, e2fsprogs and xfsprogs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use granary_block::disk::directory::Directory;
use granary_block::geometry::{BLOCK, Range};
use granary_block::ids::LayerId;
use granary_block::store::{CloneOptions, CreateOptions, OpenOptions, Store, StoreError, inspect};
use granary_block::wire::message::{FailureKind, SnapshotSpec};

const MIB: u64 = 1 << 20;
/// Blocks the histories play on.
const WINDOW: u64 = 64;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Ext4,
    Xfs,
}

impl Kind {
    fn make(self, image: &Path) {
        let image = image.to_str().unwrap();
        match self {
            Self::Ext4 => run("e2fsprogs", "mkfs.ext4", &["-q", "-F", "-b", "4096", image]),
            Self::Xfs => run("xfsprogs", "mkfs.xfs", &["-q", "-f", image]),
        }
    }
}

fn run(package: &str, program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; install the package {package}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}(this test needs root)");
}

/// A file system in an image file, mounted until dropped.
struct Mounted {
    root: PathBuf,
}

impl Mounted {
    fn new(kind: Kind, image: &Path, root: PathBuf) -> Self {
        std::fs::create_dir_all(&root).unwrap();
        // A copy of a mounted xfs has the original's identity.
        let options = if matches!(kind, Kind::Xfs) { "loop,nouuid" } else { "loop" };
        run("mount", "mount", &["-o", options, image.to_str().unwrap(), root.to_str().unwrap()]);
        Self { root }
    }

    fn disk(&self, name: &str) -> Arc<Directory> {
        Arc::new(Directory::create(self.root.join(name)).unwrap())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("mount", "umount", &[self.root.to_str().unwrap()]);
    }
}

fn image(directory: &Path, kind: Kind, size: u64) -> PathBuf {
    let path = directory.join("image");
    std::fs::File::create(&path).unwrap().set_len(size).unwrap();
    kind.make(&path);
    path
}

fn block(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().repeat(BLOCK as usize / 8)
}

fn stamps(store: &Store) -> Vec<u64> {
    let mut bytes = vec![0; (WINDOW * BLOCK) as usize];
    store.read_into(Range::of_blocks(0..WINDOW), &mut bytes).unwrap();
    let stamp = |bytes: &[u8]| {
        let first = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        assert!(bytes.chunks(8).all(|part| part == first.to_le_bytes()), "a torn block");
        first
    };
    bytes.chunks(BLOCK as usize).map(stamp).collect()
}

fn spec(name: &str) -> SnapshotSpec {
    SnapshotSpec {
        name: name.to_owned(),
        created: jiff::Timestamp::UNIX_EPOCH,
        user_created: true,
        labels: std::collections::BTreeMap::new(),
    }
}

/// Numbers that a seed alone decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A volume with what each of its blocks may read as after a loss of power; the last is what it reads as now.
struct Tracked {
    store: Store,
    possible: Vec<Vec<u64>>,
    snapshots: Vec<(String, String)>,
    turn: u64,
}

impl Tracked {
    fn new(mounted: &Mounted) -> Self {
        let store = Store::create(mounted.disk("volume"), CreateOptions::new(64 * MIB)).unwrap();
        Self { store, possible: vec![vec![0]; WINDOW as usize], snapshots: Vec::new(), turn: 0 }
    }

    fn settle(&mut self) {
        for possible in &mut self.possible {
            possible.drain(..possible.len() - 1);
        }
    }

    fn play(&mut self, dice: &mut Dice) {
        self.turn += 1;
        let at = dice.below(WINDOW);
        let end = (at + 1 + dice.below(12)).min(WINDOW);
        let range = Range::of_blocks(at..end);
        match dice.below(16) {
            0..=7 => {
                let stamp = self.turn * 1000;
                let bytes: Vec<u8> = (at..end).flat_map(|position| block(stamp + position)).collect();
                self.store.write(range.offset, &bytes).unwrap();
                (at..end).for_each(|position| self.possible[position as usize].push(stamp + position));
            }
            8..=11 => {
                self.store.zero(range, dice.below(4) == 0).unwrap();
                (at..end).for_each(|position| self.possible[position as usize].push(0));
            }
            12 => {
                let name = format!("s{}", self.turn);
                self.store.snapshot(spec(&name), LayerId::random()).unwrap();
                self.settle();
                self.snapshots.push((name.clone(), self.store.checksum(Some(&name)).unwrap()));
            }
            13 if self.snapshots.len() > 2 => {
                let which = dice.below(self.snapshots.len() as u64) as usize;
                let (name, _) = self.snapshots.swap_remove(which);
                self.store.remove_snapshot(&name).unwrap();
            }
            14 => self.store.purge().unwrap(),
            _ => {
                self.store.flush().unwrap();
                self.settle();
            }
        }
        let now: Vec<u64> = self.possible.iter().map(|possible| possible[possible.len() - 1]).collect();
        assert_eq!(stamps(&self.store), now, "turn {}", self.turn);
    }

    fn check_after_power_loss(&self, mounted: &Mounted) {
        let store = Store::open(mounted.disk("volume"), OpenOptions::default()).unwrap();
        for (position, value) in stamps(&store).iter().enumerate() {
            let possible = &self.possible[position];
            assert!(possible.contains(value), "block {position} reads {value}, possible are {possible:?}");
        }
        for (name, digest) in &self.snapshots {
            assert_eq!(&store.checksum(Some(name)).unwrap(), digest, "snapshot {name} changed");
        }
        assert_eq!(inspect(&*mounted.disk("volume")).unwrap().problems, []);
    }
}

fn survives_power_loss(kind: Kind) {
    let here = tempfile::tempdir().unwrap();
    let image = image(here.path(), kind, 400 * MIB);
    let mounted = Mounted::new(kind, &image, here.path().join("mounted"));
    let mut volume = Tracked::new(&mounted);
    let mut dice = Dice(20_261_116);
    for round in 0..8 {
        for _ in 0..40 {
            volume.play(&mut dice);
        }
        // What the device has now, without what the file system still keeps in memory: as if the power had gone.
        let copy = here.path().join("copy");
        run("coreutils", "cp", &["--sparse=always", image.to_str().unwrap(), copy.to_str().unwrap()]);
        let after = Mounted::new(kind, &copy, here.path().join(format!("after-{round}")));
        volume.check_after_power_loss(&after);
    }
    drop(volume);
    drop(mounted);
}

/// Programs that one test starts hold, for a moment, the files that another has open: then nothing can be unmounted.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn ext4_keeps_every_block_old_or_new() {
    let _alone = alone();
    survives_power_loss(Kind::Ext4);
}

#[test]
fn xfs_keeps_every_block_old_or_new() {
    let _alone = alone();
    survives_power_loss(Kind::Xfs);
}

#[test]
fn discards_and_purges_give_space_back_and_clones_take_none() {
    let _alone = alone();
    for kind in [Kind::Ext4, Kind::Xfs] {
        let here = tempfile::tempdir().unwrap();
        let image = image(here.path(), kind, 400 * MIB);
        let mounted = Mounted::new(kind, &image, here.path().join("mounted"));
        let store = Store::create(mounted.disk("volume"), CreateOptions::new(256 * MIB)).unwrap();
        let used =
            |store: &Store| store.info().unwrap().layers.iter().map(|layer| layer.allocated).sum::<u64>();
        for piece in 0..32 {
            store.write(piece * MIB, &vec![7; MIB as usize]).unwrap();
        }
        store.flush().unwrap();
        assert!((32 * MIB..34 * MIB).contains(&used(&store)), "{kind:?}: {}", used(&store));
        store.zero(Range::new(0, 16 * MIB), false).unwrap();
        assert!((16 * MIB..18 * MIB).contains(&used(&store)), "{kind:?}: {}", used(&store));
        store.snapshot(spec("golden"), LayerId::random()).unwrap();
        let free = store.info().unwrap().free;
        store.clone_to("golden", &*mounted.disk("clone"), &CloneOptions::default()).unwrap();
        assert!(free - store.info().unwrap().free < MIB, "{kind:?}");
        let clone = Store::open(mounted.disk("clone"), OpenOptions::default()).unwrap();
        assert_eq!(clone.checksum(None).unwrap(), store.checksum(Some("golden")).unwrap());
        let elsewhere = tempfile::tempdir().unwrap();
        let other = Directory::open(elsewhere.path()).unwrap();
        let refused = store.clone_to("golden", &other, &CloneOptions::default()).unwrap_err();
        assert!(matches!(refused, StoreError::CrossDevice { .. }), "{refused}");
        drop((store, clone));
    }
}

#[test]
fn a_full_file_system_refuses_writes_whole_and_everything_else_goes_on() {
    let _alone = alone();
    for kind in [Kind::Ext4, Kind::Xfs] {
        let here = tempfile::tempdir().unwrap();
        let image = image(here.path(), kind, 400 * MIB);
        let mounted = Mounted::new(kind, &image, here.path().join("mounted"));
        let store = Store::create(mounted.disk("volume"), CreateOptions::new(1024 * MIB)).unwrap();
        let mut at = 0;
        let refused = loop {
            match store.write(at, &vec![1; MIB as usize]) {
                Ok(()) => at += MIB,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), FailureKind::NoSpace, "{kind:?}: {refused}");
        assert!(at > 256 * MIB, "{kind:?}: refused after {at}");
        store.flush().unwrap();
        store.write(0, &block(5)).unwrap();
        store.snapshot(spec("full"), LayerId::random()).unwrap();
        store.zero(Range::new(0, at), false).unwrap();
        store.flush().unwrap();
        assert_eq!(stamps(&store), [0; WINDOW as usize]);
        store.remove_snapshot("full").unwrap();
        store.purge().unwrap();
        store.write(0, &vec![1; MIB as usize]).unwrap();
        store.flush().unwrap();
        drop(store);
    }
}

#[test]
fn a_file_system_with_small_blocks_is_refused_with_what_to_use() {
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("image");
    std::fs::File::create(&path).unwrap().set_len(64 * MIB).unwrap();
    run("e2fsprogs", "mkfs.ext4", &["-q", "-F", "-b", "1024", path.to_str().unwrap()]);
    let mounted = Mounted::new(Kind::Ext4, &path, here.path().join("mounted"));
    let refused = Store::create(mounted.disk("volume"), CreateOptions::new(MIB)).err().unwrap();
    assert!(refused.to_string().contains("1024 bytes"), "{refused}");
    assert!(refused.to_string().contains("mkfs.ext4 -b 4096"), "{refused}");
}
