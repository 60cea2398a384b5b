//! Keeps changes of the same part of the volume apart: writes share a stripe, whoever moves or drops blocks has it
//! alone. Nobody ever waits for a second stripe while holding one exclusively, and whoever shares one goes before those
//! who only wait to have it alone, so there is no order to obey.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::geometry::Range;

/// As long as the largest request, several times over, so that few requests are split.
pub(super) const STRIPE: u64 = 4 << 20;
const COUNT: u64 = 64;

pub(super) struct Stripes(Vec<RwLock<()>>);

impl Stripes {
    pub fn new() -> Self {
        Self((0..COUNT).map(|_| RwLock::new(())).collect())
    }

    pub fn share(&self, offset: u64) -> RwLockReadGuard<'_, ()> {
        self.stripe(offset).read()
    }

    /// For whoever shares another one already: never waits for somebody who waits.
    pub fn share_too(&self, offset: u64) -> RwLockReadGuard<'_, ()> {
        self.stripe(offset).read_recursive()
    }

    pub fn alone(&self, offset: u64) -> RwLockWriteGuard<'_, ()> {
        self.stripe(offset).write()
    }

    fn stripe(&self, offset: u64) -> &RwLock<()> {
        &self.0[(offset / STRIPE % COUNT) as usize]
    }
}

/// The parts of a range, each within one stripe and none longer than `most`.
pub(super) fn pieces(range: Range, most: u64) -> impl Iterator<Item = Range> {
    let mut at = range.offset;
    std::iter::from_fn(move || {
        (at < range.end()).then(|| {
            let end = range.end().min((at / STRIPE + 1) * STRIPE).min(at.saturating_add(most));
            let piece = Range::new(at, end - at);
            at = end;
            piece
        })
    })
}
