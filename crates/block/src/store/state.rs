//! The open store and the one way to change its metadata.
//!
//! Locks, in the order in which they are taken:
//! 1. `changes`: one change of the metadata at a time, held across its way to the disk;
//! 2. `gate`: shared by every change of content, alone for whoever replaces the head;
//! 3. a stripe: see [`Stripes`];
//! 4. a layer's index, for the time of a lookup.
//!
//! Reads take none of the first three: they work on the view they found.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::{Mutex, MutexGuard, RwLock};
use uuid::Uuid;

use super::doubt;
use super::error::{Result, StoreError};
use super::flush::SharedSync;
use super::intents::IntentMap;
use super::layer::Layer;
use super::metadata::{Metadata, SaveError, mask_file};
use super::options::Limits;
use super::purge::PurgeControl;
use super::segments;
use super::space::SpaceGauge;
use super::stripes::Stripes;
use super::view::{Layers, View};
use crate::disk::{Disk, LockGuard};
use crate::ids::LayerId;
use crate::wire::message::{self, Membership, Regions, ReplicaInfo};

/// One open replica directory. All methods may be called from many threads at once, and block on the disk.
pub struct Store {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) limits: Limits,
    pub(super) boot: String,
    pub(super) view: ArcSwap<View>,
    pub(super) changes: Mutex<()>,
    pub(super) gate: RwLock<()>,
    pub(super) stripes: Stripes,
    pub(super) space: SpaceGauge,
    pub(super) flusher: SharedSync,
    pub(super) intents: IntentMap,
    pub(super) purging: PurgeControl,
    /// How often it became the beginning of a copy of another replica: frozen layers may be filled anew after that.
    pub(super) adoptions: AtomicU64,
    pub(super) poison: ArcSwapOption<Poison>,
    pub(super) _lock: LockGuard,
}

/// Why nothing is served any more.
pub(super) struct Poison {
    reason: String,
    harm: Harm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Harm {
    /// The disk had no room for all of a change: each of its blocks is old or new, and everything else is as it was.
    /// Whoever takes the replica next knows what it did not hear to have succeeded.
    InPart,
    /// Linux forgets which pages it failed to write, so there is no way back.
    Lost,
}

/// The right to change the metadata.
pub(super) struct Change<'a> {
    store: &'a Store,
    _alone: MutexGuard<'a, ()>,
}

impl Store {
    pub fn size(&self) -> u64 {
        self.view.load().meta.size
    }

    pub fn head(&self) -> LayerId {
        self.view.load().meta.head
    }

    /// A rebuild was begun and has not ended.
    pub fn is_rebuilding(&self) -> bool {
        self.view.load().meta.rebuilding
    }

    pub fn membership(&self) -> Membership {
        self.view.load().meta.membership.clone()
    }

    pub fn info(&self) -> Result<ReplicaInfo> {
        let view = self.view.load();
        let meta = &view.meta;
        Ok(ReplicaInfo {
            replica: meta.replica,
            size: meta.size,
            membership: meta.membership.clone(),
            clean: meta.clean,
            rebuilding: meta.rebuilding,
            boot: self.boot(),
            layers: layers(&view)?,
            head: meta.head,
            intents: self.intents(),
            free: self.disk.space().map_err(StoreError::io("ask for free space"))?.free,
            purge: self.purge_progress(),
        })
    }

    /// Bytes of memory that the index of all layers takes.
    pub fn index_memory(&self) -> u64 {
        self.view.load().layers.values().map(|layer| layer.memory()).sum()
    }

    /// On disk before it returns. Marks that are set already cost nothing.
    pub fn set_intents(&self, regions: &[Regions]) -> Result<()> {
        self.usable()?;
        self.intents.set(regions).inspect_err(|error| self.poison_on_io(error))
    }

    /// Reaches the disk some time later.
    pub fn clear_intents(&self, regions: &[Regions]) -> Result<()> {
        self.usable()?;
        self.intents.clear(regions).inspect_err(|error| self.poison_on_io(error))
    }

    pub fn intents(&self) -> Vec<Regions> {
        self.intents.marked()
    }

    /// Replaces the record of who is in sync, on disk before it returns. The rules are the caller's.
    pub fn set_membership(&self, record: Membership, clean: bool, rebuilding: bool) -> Result<()> {
        let change = self.begin()?;
        let mut meta = change.meta();
        if (&meta.membership, meta.clean, meta.rebuilding) == (&record, clean, rebuilding) {
            return Ok(());
        }
        (meta.membership, meta.clean, meta.rebuilding) = (record, clean, rebuilding);
        let layers = change.layers();
        change.commit(meta, layers)
    }

    /// After a sync that failed, what is read may be older than what was written: reads ask this last of all.
    pub(super) fn usable(&self) -> Result<()> {
        match &*self.poison.load() {
            None => Ok(()),
            Some(poison) => Err(StoreError::Poisoned { reason: poison.reason.clone() }),
        }
    }

    /// Somebody opens or rebuilds the replica, and knows what it missed: that is all a full disk did to it.
    pub fn forgive_full_disk(&self) {
        self.poison.rcu(|poison| poison.clone().filter(|poison| poison.harm == Harm::Lost));
    }

    /// Once writes may be lost it is no longer the boot in which they were made.
    fn boot(&self) -> String {
        if self.lost_writes() { format!("{}+lost", self.boot) } else { self.boot.clone() }
    }

    /// It stays so until the replica is opened anew.
    pub(crate) fn lost_writes(&self) -> bool {
        self.poison.load().as_ref().is_some_and(|poison| poison.harm == Harm::Lost)
    }

    /// After a change that failed half-way nobody knows what is on disk: no other change may follow.
    pub(super) fn poison_on_io(&self, error: &StoreError) {
        if let StoreError::Io { .. } = error {
            // Noted before anybody hears of it, so that nobody can start again without knowing.
            if !self.lost_writes()
                && let Err(error) = doubt::raise(&*self.disk)
            {
                tracing::error!(%error, "cannot note that writes may be lost: rebuild this replica before using it");
            }
            self.poison_with(error, Harm::Lost);
        }
    }

    /// It never gets better by this.
    fn poison_with(&self, error: &StoreError, harm: Harm) {
        let reason = error.to_string();
        tracing::error!(directory = %self.disk.describe(), %reason, "the replica takes no more changes");
        let poison = Arc::new(Poison { reason, harm });
        self.poison.rcu(|old| match old {
            Some(old) if old.harm == Harm::Lost || harm == Harm::InPart => Some(old.clone()),
            _ => Some(poison.clone()),
        });
    }

    /// Makes the error of a change that failed. If it was for want of room and `undo` takes back what there is of it,
    /// nothing happened; otherwise it failed half-way.
    pub(super) fn without_room(
        &self,
        source: io::Error,
        undo: impl FnOnce() -> io::Result<()>,
        action: impl FnOnce() -> String,
    ) -> StoreError {
        if source.kind() != io::ErrorKind::StorageFull {
            return self.failed(action)(source);
        }
        match undo() {
            Ok(()) => self.space.was_wrong(&*self.disk, 0),
            Err(error) => self.failed(action)(error),
        }
    }

    /// There was no room for a step of a change. When earlier steps stay, the change was made in part.
    pub(super) fn in_part(&self, begun: bool, error: StoreError) -> StoreError {
        if !begun || !matches!(error, StoreError::NoSpace { .. }) {
            return error;
        }
        self.poison_with(&error, Harm::InPart);
        let source = io::Error::new(io::ErrorKind::StorageFull, error.to_string());
        StoreError::Io { action: "finish a change that was begun".to_owned(), source }
    }

    /// Makes the error of a change that failed half-way; `action` is worded only then.
    pub(super) fn failed(&self, action: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> StoreError {
        move |source| {
            let error = StoreError::Io { action: action(), source };
            self.poison_on_io(&error);
            error
        }
    }

    pub(super) fn begin(&self) -> Result<Change<'_>> {
        let alone = self.changes.lock();
        self.usable()?;
        Ok(Change { store: self, _alone: alone })
    }

    pub(super) fn sync_layer(&self, layer: &Layer) -> Result<()> {
        layer.sync().map_err(self.failed(|| format!("sync layer {}", layer.id)))
    }
}

impl Change<'_> {
    /// What nobody else can replace meanwhile.
    pub fn view(&self) -> arc_swap::Guard<Arc<View>> {
        self.store.view.load()
    }

    pub fn meta(&self) -> Metadata {
        self.view().meta.clone()
    }

    pub fn layers(&self) -> Layers {
        self.view().layers.clone()
    }

    /// The new tree counts from the moment it is on disk; files that it dooms are removed afterwards.
    pub fn commit(&self, mut meta: Metadata, layers: Layers) -> Result<()> {
        let store = self.store;
        match meta.save(&*store.disk) {
            Ok(()) => {}
            Err(SaveError::Unchanged(error)) if error.kind() == io::ErrorKind::StorageFull => {
                return Err(store.space.was_wrong(&*store.disk, 0));
            }
            Err(SaveError::Unchanged(error)) => return Err(StoreError::io("replace the metadata")(error)),
            Err(SaveError::Unknown(error)) => {
                return Err(store.failed(|| "replace the metadata".to_string())(error));
            }
        }
        // Names that are gone for good leave the list with the next change; removing one twice does no harm.
        meta.doomed.retain(|files| !remove_files(&*store.disk, *files));
        store.view.store(Arc::new(View::new(meta, layers)));
        Ok(())
    }
}

/// Removes a layer's files; `true` when none is there any more and the directory knows it durably.
pub(super) fn remove_files(disk: &dyn Disk, files: Uuid) -> bool {
    let gone = |name: &str| match disk.remove(name) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => {
            tracing::warn!(directory = %disk.describe(), name, %error, "cannot remove the file of a dropped layer");
            false
        }
    };
    let mut names = segments::all_names(files).chain([mask_file(files)]);
    names.all(|name| gone(&name)) && disk.sync_names().is_ok()
}

fn layers(view: &View) -> Result<Vec<message::Layer>> {
    let describe = |record: &super::metadata::LayerRecord| {
        let (layer, _) = view.layer(record.id)?;
        Ok(message::Layer {
            id: record.id,
            parent: record.parent,
            absorbed: record.absorbed.clone(),
            snapshot: record.snapshot.clone(),
            removed: record.removed,
            complete: record.complete,
            backing: record.backing.as_ref().map(|backing| backing.path.clone()),
            size: record.size,
            allocated: layer.allocated().map_err(StoreError::io(format!("size of layer {}", record.id)))?,
        })
    };
    view.meta.layers.iter().map(describe).collect()
}
