//! From a directory to an open store: created anew, or found and checked. Refuses what it does not understand.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::{Mutex, RwLock};

use super::doubt;
use super::error::{Result, StoreError};
use super::flush::SharedSync;
use super::intents::{self, IntentMap};
use super::layer::Layer;
use super::metadata::{self, BackingRecord, FORMAT, LayerRecord, Metadata, SaveError, is_size};
use super::options::{BackingOptions, CreateOptions, Limits, OpenOptions};
use super::probe::probe;
use super::purge::PurgeControl;
use super::space::SpaceGauge;
use super::state::{Store, remove_files};
use super::stripes::Stripes;
use super::view::{Layers, View};
use crate::disk::{Disk, LockError, LockGuard};
use crate::geometry::BLOCK;
use crate::wire::message::Membership;

impl Store {
    pub fn create(disk: Arc<dyn Disk>, options: CreateOptions) -> Result<Self> {
        check_size(options.size)?;
        let lock = lock(&*disk)?;
        clear_for_new(&*disk)?;
        probe(&*disk)?;
        let base =
            options.backing.map(|backing| backing_record(&*disk, backing, options.size)).transpose()?;
        let head = LayerRecord::empty(options.head, base.as_ref().map(|base| base.id), options.size);
        let meta = Metadata {
            format: FORMAT,
            replica: options.replica,
            volume: None,
            size: options.size,
            head: head.id,
            membership: Membership::default(),
            clean: true,
            rebuilding: false,
            layers: base.into_iter().chain([head]).collect(),
            doomed: Vec::new(),
        };
        meta.check().map_err(StoreError::Tree)?;
        make_files(&*disk, &meta)?;
        save_new(&*disk, &meta)?;
        assemble(disk, meta, options.limits, lock)
    }

    pub fn open(disk: Arc<dyn Disk>, options: OpenOptions) -> Result<Self> {
        if !exists(&*disk, metadata::FILE)? {
            return Err(StoreError::NotAVolume { directory: disk.describe() });
        }
        let lock = lock(&*disk)?;
        doubt::settle(&*disk).map_err(StoreError::io("sync what an earlier failure left in doubt"))?;
        let mut meta = Metadata::load(&*disk)?;
        match probe(&*disk) {
            // A full disk must not keep a volume from being read; it was probed when the volume was made.
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::StorageFull => {}
            other => other?,
        }
        meta.doomed.retain(|files| !remove_files(&*disk, *files));
        assemble(disk, meta, options.limits, lock)
    }
}

fn assemble(disk: Arc<dyn Disk>, meta: Metadata, limits: Limits, lock: LockGuard) -> Result<Store> {
    let mut layers = Layers::new();
    for record in &meta.layers {
        layers.insert(record.id, Arc::new(Layer::open(&*disk, record)?));
    }
    let intents = IntentMap::open(&*disk, meta.size)?;
    let space = SpaceGauge::new(&*disk, limits.reserve)?;
    let boot = doubt::boot(&*disk).map_err(StoreError::io("ask for the boot id"))?;
    Ok(Store {
        disk,
        limits,
        boot,
        view: ArcSwap::from_pointee(View::new(meta, layers)),
        changes: Mutex::new(()),
        gate: RwLock::new(()),
        stripes: Stripes::new(),
        space,
        flusher: SharedSync::default(),
        intents,
        purging: PurgeControl::default(),
        adoptions: AtomicU64::new(0),
        poison: ArcSwapOption::empty(),
        _lock: lock,
    })
}

pub(super) fn check_size(size: u64) -> Result<()> {
    if is_size(size) {
        Ok(())
    } else {
        Err(StoreError::Size {
            size,
            reason: "it must be a multiple of 4096 bytes, more than 0, at most 64 TiB",
        })
    }
}

pub(super) fn lock(disk: &dyn Disk) -> Result<LockGuard> {
    disk.lock().map_err(|error| match error {
        LockError::Held(holder) => StoreError::InUse { directory: disk.describe(), holder },
        LockError::Io(error) => StoreError::io(format!("lock {}", disk.describe()))(error),
    })
}

/// Files of the layers that are new, and the map of intents; durable with their names when it returns.
pub(super) fn make_files(disk: &dyn Disk, meta: &Metadata) -> Result<()> {
    for record in meta.layers.iter().filter(|record| record.id == meta.head) {
        Layer::create(disk, record)?;
    }
    IntentMap::create(disk, meta.size)?;
    disk.sync_names().map_err(StoreError::io("sync the new files' names"))
}

pub(super) fn save_new(disk: &dyn Disk, meta: &Metadata) -> Result<()> {
    meta.save(disk).map_err(|error| match error {
        SaveError::Unchanged(error) | SaveError::Unknown(error) => {
            StoreError::io(format!("write {}", metadata::FILE))(error)
        }
    })
}

/// A directory in which a volume may be made. Leftovers of an attempt that a crash ended are removed as long as they
/// hold nothing that is not elsewhere too.
pub(super) fn clear_for_new(disk: &dyn Disk) -> Result<()> {
    if exists(disk, metadata::FILE)? {
        return Err(StoreError::AlreadyAVolume { directory: disk.describe() });
    }
    let mut foreign = Vec::new();
    let names = disk.names().map_err(StoreError::io(format!("list {}", disk.describe())))?;
    for name in names {
        let ours = name.starts_with("layer-") || name == intents::FILE || name == metadata::TEMPORARY;
        if !ours {
            continue;
        }
        let look = || {
            let file = disk.open(&name)?;
            Ok(!name.starts_with("layer-") || file.links()? > 1 || file.next_data(0)?.is_none())
        };
        if look().map_err(StoreError::io(format!("look at {name}")))? {
            disk.remove(&name).map_err(StoreError::io(format!("remove {name}")))?;
        } else {
            foreign.push(name);
        }
    }
    if foreign.is_empty() {
        Ok(())
    } else {
        Err(StoreError::NotEmpty { directory: disk.describe(), names: foreign.join(", ") })
    }
}

pub(super) fn backing_record(disk: &dyn Disk, backing: BackingOptions, size: u64) -> Result<LayerRecord> {
    let problem = |problem: String| StoreError::Backing { path: backing.path.clone(), problem };
    let (_, identity) = disk.open_image(&backing.path).map_err(|error| problem(error.to_string()))?;
    let rounded = identity.size.next_multiple_of(BLOCK);
    if rounded > size {
        return Err(problem(format!("it has {} bytes, more than the volume's {size}", identity.size)));
    }
    let mut record = LayerRecord::empty(backing.layer, None, rounded);
    record.backing = Some(BackingRecord { path: backing.path, identity });
    Ok(record)
}

pub(super) fn exists(disk: &dyn Disk, name: &str) -> Result<bool> {
    match disk.open_read_only(name) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io(format!("open {name} in {}", disk.describe()))(error)),
    }
}
