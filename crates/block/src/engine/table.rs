//! What is under way: guest requests, their parts, and questions to replicas. One table, one kind of key; a key that
//! was given back is never mistaken for its successor.

use bytes::Bytes;

use crate::engine::event::{GuestError, GuestId};
use crate::engine::filling::Copying;
use crate::engine::groups::Group;
use crate::engine::slots::{Slot, SlotSet};
use crate::geometry::Range;

/// One guest request; ends when all its parts have.
#[derive(Debug)]
pub struct Job {
    pub guest: GuestId,
    pub kind: JobKind,
    pub bytes: u64,
    pub began: u64,
    pub parts: u32,
    pub error: Option<GuestError>,
    /// For reads: where in the guest's range each piece belongs.
    pub pieces: Vec<(u64, Bytes)>,
    /// The guest's own range, not aligned.
    pub offset: u64,
    pub len: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobKind {
    Read,
    Write,
    Zero,
    Flush,
}

/// A piece of work on one aligned range, done as a whole on one or all replicas.
#[derive(Debug)]
pub struct Part {
    /// `None`: nobody waits for it any more, but it still has to be the same everywhere.
    pub job: Option<usize>,
    pub range: Range,
    pub work: Work,
    pub stage: Stage,
    /// Who has not answered yet.
    pub waiting: SlotSet,
    /// Who said, before changing anything, that there is no space.
    pub refused: SlotSet,
    pub applied: SlotSet,
    /// Noted in the write-intent map.
    pub marked: bool,
    /// Was sent at least once: some replica may have it.
    pub begun: bool,
    /// The number of the requests now out for it; older answers are not counted.
    pub wire: u64,
    pub sent: u64,
}

#[derive(Debug, Clone)]
pub enum Work {
    Read,
    Write {
        data: Bytes,
        durable: bool,
    },
    /// Bytes that do not fill their blocks: the blocks are read first. Turns into `Write`.
    Merge {
        at: u64,
        data: Bytes,
        durable: bool,
    },
    Zero {
        allocate: bool,
        durable: bool,
    },
    Flush,
}

impl Work {
    pub const fn changes(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Merge { .. } | Self::Zero { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waits until the volume flows.
    Backlog,
    /// Waits for its range.
    Range,
    /// Waits for the write-intent mark.
    Intent,
    /// Out at one replica (reads) or all.
    Out(Option<Slot>),
    /// All answers are in; waits until the record of who is in sync is safe.
    Held,
}

#[derive(Debug)]
pub enum Entry {
    Job(Job),
    Part(Part),
    Group(Group),
    Copying(Copying),
}

#[derive(Debug, Default)]
pub struct Table {
    entries: slab::Slab<Entry>,
    counter: u64,
}

impl Table {
    pub fn insert(&mut self, entry: Entry) -> usize {
        self.entries.insert(entry)
    }

    pub fn remove(&mut self, key: usize) -> Option<Entry> {
        self.entries.try_remove(key)
    }

    pub fn get_mut(&mut self, key: usize) -> Option<&mut Entry> {
        self.entries.get_mut(key)
    }

    pub fn part(&mut self, key: usize) -> Option<&mut Part> {
        match self.entries.get_mut(key) {
            Some(Entry::Part(part)) => Some(part),
            _ => None,
        }
    }

    pub fn job(&mut self, key: usize) -> Option<&mut Job> {
        match self.entries.get_mut(key) {
            Some(Entry::Job(job)) => Some(job),
            _ => None,
        }
    }

    pub fn group(&mut self, key: usize) -> Option<&mut Group> {
        match self.entries.get_mut(key) {
            Some(Entry::Group(group)) => Some(group),
            _ => None,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter()
    }

    pub fn keys(&self) -> Vec<usize> {
        self.entries.iter().map(|(key, _)| key).collect()
    }

    /// A new request number for an entry: the low half finds the entry, the high half tells its uses apart.
    pub fn wire_id(&mut self, key: usize) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        (self.counter << 32) | key as u64
    }

    pub const fn key_of(wire: u64) -> usize {
        (wire & 0xffff_ffff) as usize
    }
}
