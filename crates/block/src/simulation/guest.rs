//! The guest's expectation: which contents each block may have. Blocks carry stamps; zero is a stamp too.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;

use crate::engine::{Answer, GuestError, GuestOp};
use crate::geometry::BLOCK;

pub type Stamp = u64;

#[derive(Clone, Debug, Default)]
struct Block {
    /// What a read may return.
    allowed: BTreeSet<Stamp>,
    /// What it may fall back to when nobody kept the writes since the last flush, with the request that wrote it:
    /// zeroes are written more than once.
    since_flush: BTreeSet<(u64, Stamp)>,
    writing: u32,
    /// Goes up with every write that is begun or ends.
    version: u64,
}

#[derive(Debug)]
enum Pending {
    Write { first: u64, stamps: Vec<Stamp>, losses: u64 },
    Read { first: u64, count: u64, allowed: Vec<BTreeSet<Stamp>>, versions: Vec<u64> },
    Flush { since: Vec<BTreeSet<(u64, Stamp)>>, losses: u64 },
}

#[derive(Debug, Default)]
pub struct Guest {
    blocks: Vec<Block>,
    pending: HashMap<u64, Pending>,
    next: u64,
    stamp: Stamp,
    /// How often everything that was not flushed may have been lost. An answer that was on its way then says nothing
    /// about what is left.
    losses: u64,
    pub acknowledged: u64,
    pub flushed: u64,
    pub reads_checked: u64,
}

impl Guest {
    pub fn new(blocks: u64) -> Self {
        let empty = Block { allowed: [0].into(), since_flush: [(0, 0)].into(), ..Block::default() };
        Self { blocks: vec![empty; blocks as usize], ..Self::default() }
    }

    pub fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    fn id(&mut self, pending: Pending) -> u64 {
        self.next += 1;
        self.pending.insert(self.next, pending);
        self.next
    }

    fn change(&mut self, first: u64, stamps: Vec<Stamp>) -> u64 {
        for (at, stamp) in stamps.iter().enumerate() {
            let block = &mut self.blocks[first as usize + at];
            block.allowed.insert(*stamp);
            block.since_flush.insert((self.next + 1, *stamp));
            block.writing += 1;
            block.version += 1;
        }
        let losses = self.losses;
        self.id(Pending::Write { first, stamps, losses })
    }

    pub fn write(&mut self, first: u64, count: u64, durable: bool) -> (u64, GuestOp) {
        let mut data = Vec::with_capacity((count * BLOCK) as usize);
        let mut stamps = Vec::new();
        for _ in 0..count {
            self.stamp += 1;
            stamps.push(self.stamp);
            for _ in 0..BLOCK / 8 {
                data.extend_from_slice(&self.stamp.to_le_bytes());
            }
        }
        let id = self.change(first, stamps);
        (id, GuestOp::Write { offset: first * BLOCK, data: Bytes::from(data), durable })
    }

    pub fn zero(&mut self, first: u64, count: u64, allocate: bool) -> (u64, GuestOp) {
        let id = self.change(first, vec![0; count as usize]);
        (id, GuestOp::Zero { offset: first * BLOCK, len: count * BLOCK, allocate, durable: false })
    }

    pub fn flush(&mut self) -> (u64, GuestOp) {
        // Only what was answered before is covered; what is being written may still be lost.
        let since = self
            .blocks
            .iter()
            .map(|block| {
                let may_be_last =
                    |(_, stamp): &&(u64, Stamp)| block.writing > 0 || block.allowed.contains(stamp);
                block.since_flush.iter().filter(may_be_last).copied().collect()
            })
            .collect();
        let id = self.id(Pending::Flush { since, losses: self.losses });
        (id, GuestOp::Flush)
    }

    pub fn read(&mut self, first: u64, count: u64) -> (u64, GuestOp) {
        let range = first as usize..(first + count) as usize;
        let allowed = self.blocks[range.clone()].iter().map(|block| block.allowed.clone()).collect();
        let versions = self.blocks[range].iter().map(|block| block.version).collect();
        let id = self.id(Pending::Read { first, count, allowed, versions });
        (id, GuestOp::Read { offset: first * BLOCK, len: (count * BLOCK) as u32 })
    }

    /// Takes an answer; true when it was the end of a flush that went well.
    pub fn answered(&mut self, id: u64, result: Result<Answer, GuestError>) -> bool {
        match (self.pending.remove(&id), result) {
            (Some(Pending::Write { first, stamps, losses }), result) => {
                for (at, stamp) in stamps.into_iter().enumerate() {
                    let block = &mut self.blocks[first as usize + at];
                    block.writing -= 1;
                    block.version += 1;
                    if result.is_ok() && block.writing == 0 && losses == self.losses {
                        // With others under way at the same time, any of them may be the last.
                        block.settle(stamp);
                    }
                }
                self.acknowledged += u64::from(result.is_ok());
                false
            }
            (Some(Pending::Read { first, count, allowed, versions }), Ok(Answer::Data(data))) => {
                self.check_read(first, count, &allowed, &versions, &data);
                false
            }
            (Some(Pending::Flush { since, losses }), Ok(_)) if losses == self.losses => {
                for (block, then) in self.blocks.iter_mut().zip(since) {
                    block.since_flush.retain(|written| written.0 > id || then.contains(written));
                }
                self.flushed += 1;
                true
            }
            (Some(_), _) | (None, _) => false,
        }
    }

    fn check_read(
        &mut self,
        first: u64,
        count: u64,
        before: &[BTreeSet<Stamp>],
        versions: &[u64],
        data: &[u8],
    ) {
        assert_eq!(data.len() as u64, count * BLOCK);
        for (at, bytes) in data.chunks(BLOCK as usize).enumerate() {
            let number = first as usize + at;
            let found = stamp_of(bytes).unwrap_or_else(|| panic!("block {number} is torn"));
            let block = &mut self.blocks[number];
            assert!(
                block.allowed.contains(&found) || before[at].contains(&found),
                "block {number} reads {found}, allowed are {:?}, before {:?}",
                block.allowed,
                before[at]
            );
            self.reads_checked += 1;
            // Nothing else happened to it: what was seen once is what it is.
            if block.writing == 0 && block.version == versions[at] {
                block.allowed = [found].into();
            }
        }
    }

    /// The engine died: whoever waited will never hear, and what was under way may or may not be there.
    pub fn abandoned(&mut self) {
        let waiting: Vec<_> = self.pending.drain().collect();
        for (_, pending) in waiting {
            if let Pending::Write { first, stamps, .. } = pending {
                for at in 0..stamps.len() {
                    let block = &mut self.blocks[first as usize + at];
                    block.writing -= 1;
                    block.version += 1;
                }
            }
        }
    }

    /// Nobody is left who kept what was not flushed.
    pub fn unflushed_may_be_lost(&mut self) {
        self.losses += 1;
        for block in &mut self.blocks {
            block.allowed.extend(block.since_flush.iter().map(|(_, stamp)| stamp));
            block.version += 1;
        }
    }
}

impl Block {
    fn settle(&mut self, last: Stamp) {
        // Every stamp is written once, so whatever is older than the last write that ended alone is gone.
        self.allowed = [last].into();
    }
}

fn stamp_of(bytes: &[u8]) -> Option<Stamp> {
    let first = &bytes[..8];
    let stamp = Stamp::from_le_bytes(first.try_into().ok()?);
    bytes.chunks(8).all(|word| word == first).then_some(stamp)
}
