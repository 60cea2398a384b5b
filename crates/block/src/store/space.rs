//! Room on the file system, asked rarely: a write that would not fit is refused before anything of it is applied.
//! Only counts; never frees anything.

use parking_lot::Mutex;

use super::error::{Result, StoreError};
use crate::disk::Disk;

/// After this much the file system is asked again, since others fill it too. Well below the usual reserve.
const ASK_AFTER: u64 = 16 << 20;

pub(super) struct SpaceGauge {
    reserve: u64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    free: u64,
    taken: u64,
}

impl SpaceGauge {
    pub fn new(disk: &dyn Disk, reserve: u64) -> Result<Self> {
        let space = disk.space().map_err(StoreError::io("ask for free space"))?;
        let known = Mutex::new(Known { free: space.free, taken: 0 });
        Ok(Self { reserve: reserve.min(space.total / 16), known })
    }

    /// Counts on that many bytes of new blocks.
    pub fn take(&self, disk: &dyn Disk, needed: u64) -> Result<()> {
        if needed == 0 {
            return Ok(());
        }
        let mut known = self.known.lock();
        if known.taken >= ASK_AFTER || known.free < needed.saturating_add(self.reserve) {
            let free = disk.space().map_err(StoreError::io("ask for free space"))?.free;
            *known = Known { free, taken: 0 };
            if free < needed.saturating_add(self.reserve) {
                let directory = disk.describe();
                return Err(StoreError::NoSpace { directory, needed, free, reserve: self.reserve });
            }
        }
        known.free -= needed;
        known.taken += needed;
        Ok(())
    }

    /// The file system said that it is full, whatever was known: the next one asks.
    pub fn was_wrong(&self, disk: &dyn Disk, needed: u64) -> StoreError {
        *self.known.lock() = Known::default();
        let free = disk.space().map_or(0, |space| space.free);
        StoreError::NoSpace { directory: disk.describe(), needed, free, reserve: self.reserve }
    }
}
