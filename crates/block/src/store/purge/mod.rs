//! Giving back the space of removed layers, while everything else goes on. A removed layer is folded into its only
//! child, or the child into its files, whichever moves less; every reader sees the same bytes throughout, and a
//! crash or a stop at any point loses only work. Decides what to fold; how is in `fold`.

mod fold;
mod plan;

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::error::{Result, StoreError};
use super::state::Store;
use crate::geometry::BLOCK;
use crate::wire::message::Progress;
use plan::{Step, plan};

#[derive(Default)]
pub(super) struct PurgeControl {
    running: Mutex<()>,
    stop: AtomicBool,
    progress: Mutex<Progress>,
}

impl Store {
    /// Runs to the end on the caller's thread. `Busy` while one is running or the replica is being rebuilt. Layers
    /// that have several children, or share their files with a clone, are left for a later purge.
    pub fn purge(&self) -> Result<()> {
        let Some(_alone) = self.purging.running.try_lock() else {
            return Err(StoreError::Busy { what: "a purge" });
        };
        self.purging.stop.store(false, Ordering::SeqCst);
        *self.purging.progress.lock() =
            Progress { running: true, total: self.removed_bytes(), ..Progress::default() };
        let outcome = self.fold_all();
        let mut progress = self.purging.progress.lock();
        progress.running = false;
        match &outcome {
            Ok(()) => progress.done = progress.total,
            Err(error) => progress.error = Some(error.to_string()),
        }
        outcome
    }

    /// Makes a running purge return `Stopped` soon; the next one goes on from there.
    pub fn stop_purge(&self) {
        self.purging.stop.store(true, Ordering::SeqCst);
    }

    pub fn purge_progress(&self) -> Progress {
        self.purging.progress.lock().clone()
    }

    fn fold_all(&self) -> Result<()> {
        loop {
            self.may_go_on()?;
            let view = self.view.load_full();
            let Some(step) = plan(&view)? else {
                return Ok(());
            };
            match step {
                Step::Delete(layer) => self.delete_leaf(layer)?,
                Step::Up(pair) => self.fold_up(&view, pair)?,
                Step::Down(pair) => self.fold_down(&view, pair)?,
            }
        }
    }

    fn may_go_on(&self) -> Result<()> {
        if self.purging.stop.load(Ordering::SeqCst) {
            return Err(StoreError::Stopped { what: "the purge" });
        }
        if self.is_rebuilding() {
            return Err(StoreError::Busy { what: "a rebuild" });
        }
        self.usable()
    }

    fn removed_bytes(&self) -> u64 {
        let view = self.view.load();
        let removed = view.meta.layers.iter().filter(|record| record.removed);
        let held = |id| view.layers.get(&id).map_or(0, |layer| layer.data_len());
        removed.map(|record| held(record.id) * BLOCK).sum()
    }

    fn purged(&self, bytes: u64) {
        let mut progress = self.purging.progress.lock();
        progress.done = (progress.done + bytes).min(progress.total);
    }
}
