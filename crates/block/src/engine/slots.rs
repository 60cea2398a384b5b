//! Small sets of replicas. A slot is the engine's place for one replica, whatever its state.

use std::fmt;

/// The engine's place for one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u8);

impl Slot {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How many places there are: five replicas, and room to exchange all of them.
pub const MAX_SLOTS: usize = 16;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotSet(u16);

impl SlotSet {
    pub const EMPTY: Self = Self(0);

    pub const fn insert(&mut self, slot: Slot) {
        self.0 |= 1 << slot.0;
    }

    /// Whether it was in.
    pub const fn remove(&mut self, slot: Slot) -> bool {
        let was = self.contains(slot);
        self.0 &= !(1 << slot.0);
        was
    }

    pub const fn contains(self, slot: Slot) -> bool {
        self.0 & (1 << slot.0) != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Slot> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let next = (rest != 0).then(|| Slot(rest.trailing_zeros() as u8))?;
            rest &= rest - 1;
            Some(next)
        })
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        let mut set = Self::EMPTY;
        for slot in slots {
            set.insert(slot);
        }
        set
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|slot| slot.0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_slots_behaves_like_one() {
        let mut set: SlotSet = [Slot(0), Slot(3), Slot(15)].into_iter().collect();
        assert_eq!(set.len(), 3);
        assert!(set.remove(Slot(3)));
        assert!(!set.remove(Slot(3)));
        assert_eq!(set.iter().collect::<Vec<_>>(), [Slot(0), Slot(15)]);
        assert_eq!(set.without([Slot(0)].into_iter().collect()).iter().collect::<Vec<_>>(), [Slot(15)]);
        assert!(SlotSet::EMPTY.is_empty());
    }
}
