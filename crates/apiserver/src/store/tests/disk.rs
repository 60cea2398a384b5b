//! A disk in memory that loses power and returns errors. Only what was synced is sure to be there afterwards.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::{Database, StorageBackend};

use super::Dice;
use crate::store::database::Opener;

/// What reaches a disk in one piece.
const SECTOR: usize = 512;

#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// What a reader sees.
    seen: Vec<u8>,
    /// What would be there after a loss of power now, at least.
    synced: Vec<u8>,
    unsynced: Vec<Operation>,
    trouble: Option<Trouble>,
    off: bool,
}

#[derive(Debug, Clone)]
enum Operation {
    Write { offset: usize, bytes: Vec<u8> },
    Resize(usize),
}

/// What is going to happen, and when.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    /// Power goes at the n-th change from now.
    PowerCut { after: u64 },
    /// Changes fail from the n-th on, until somebody repairs the disk.
    Errors { after: u64, seed: u64 },
    /// Only so many bytes can still be written.
    Full { bytes: u64 },
    /// Reads fail from the n-th on.
    BadReads { after: u64 },
    /// The n-th change is made and reported as failed; later ones work.
    LostAnswer { after: u64, happened: bool },
}

fn apply(target: &mut Vec<u8>, operation: &Operation) {
    match operation {
        Operation::Resize(len) => target.resize(*len, 0),
        Operation::Write { offset, bytes } => {
            let end = offset + bytes.len();
            if target.len() < end {
                target.resize(end, 0);
            }
            target[*offset..end].copy_from_slice(bytes);
        }
    }
}

impl State {
    /// Some of what was not synced got through, in any order, each sector for itself.
    fn lose_cache(&mut self, dice: &mut Dice) {
        for operation in std::mem::take(&mut self.unsynced) {
            match operation {
                Operation::Resize(_) if dice.below(2) == 0 => apply(&mut self.synced, &operation),
                Operation::Resize(_) => {}
                Operation::Write { offset, bytes } => {
                    let fate = dice.below(4);
                    for (i, sector) in bytes.chunks(SECTOR).enumerate() {
                        let arrives = match fate {
                            0 => false,
                            1 => true,
                            _ => dice.below(2) == 0,
                        };
                        if arrives {
                            let offset = offset + i * SECTOR;
                            apply(&mut self.synced, &Operation::Write { offset, bytes: sector.to_vec() });
                        }
                    }
                }
            }
        }
        self.seen = self.synced.clone();
    }

    fn countdown(after: &mut u64) -> bool {
        let now = *after == 0;
        *after = after.saturating_sub(1);
        now
    }

    /// Whether the next change of `bytes` bytes may happen.
    fn change(&mut self, bytes: usize) -> io::Result<()> {
        if self.off {
            return Err(broken());
        }
        match &mut self.trouble {
            Some(Trouble::PowerCut { after }) => {
                self.off = Self::countdown(after);
                if self.off { Err(broken()) } else { Ok(()) }
            }
            Some(Trouble::Errors { after, .. }) => {
                if Self::countdown(after) {
                    Err(broken())
                } else {
                    Ok(())
                }
            }
            Some(Trouble::Full { bytes: left }) => match left.checked_sub(bytes as u64) {
                Some(rest) => {
                    *left = rest;
                    Ok(())
                }
                None => Err(io::Error::from(io::ErrorKind::StorageFull)),
            },
            _ => Ok(()),
        }
    }

    fn perform(&mut self, operation: Operation) {
        apply(&mut self.seen, &operation);
        self.unsynced.push(operation);
    }

    /// Whether the answer to the change just made gets lost.
    fn answer(&mut self) -> io::Result<()> {
        let Some(Trouble::LostAnswer { after, happened: happened @ false }) = &mut self.trouble else {
            return Ok(());
        };
        *happened = Self::countdown(after);
        if *happened { Err(broken()) } else { Ok(()) }
    }
}

fn broken() -> io::Error {
    io::Error::other("the simulated disk does not answer")
}

impl Disk {
    /// A disk with an empty database on it, as the store leaves it behind when it makes one.
    pub fn formatted() -> Self {
        let disk = Self::default();
        drop(Database::builder().create_with_backend(disk.clone()).unwrap());
        disk
    }

    pub fn opener(&self) -> Opener {
        let disk = self.clone();
        Box::new(move |_| Database::builder().set_cache_size(1 << 20).create_with_backend(disk.clone()))
    }

    pub fn arm(&self, trouble: Trouble) {
        self.0.lock().trouble = Some(trouble);
    }

    /// The disk works again; nothing that was written is lost.
    pub fn repair(&self) {
        self.0.lock().trouble = None;
    }

    pub fn fail_once_done(&self, after: u64) {
        self.arm(Trouble::LostAnswer { after, happened: false });
    }

    pub fn failed_once(&self) -> bool {
        matches!(self.0.lock().trouble, Some(Trouble::LostAnswer { happened: true, .. }))
    }

    pub fn image(&self) -> Vec<u8> {
        self.0.lock().seen.clone()
    }

    pub fn replace(&self, image: Vec<u8>) {
        let mut state = self.0.lock();
        state.unsynced.clear();
        state.synced.clone_from(&image);
        state.seen = image;
    }

    pub fn is_off(&self) -> bool {
        self.0.lock().off
    }

    /// Turns the machine off and on again.
    pub fn power_cycle(&self, dice: &mut Dice) {
        let mut state = self.0.lock();
        state.lose_cache(dice);
        state.trouble = None;
        state.off = false;
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.off {
            return Err(broken());
        }
        if let Some(Trouble::BadReads { after }) = &mut state.trouble
            && State::countdown(after)
        {
            return Err(broken());
        }
        let start = offset as usize;
        let found = state.seen.get(start..start + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        state.change(0)?;
        state.perform(Operation::Resize(len as usize));
        state.answer()
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        if let Err(error) = state.change(0) {
            // What a kernel does: the pages it could not write are forgotten, the next sync succeeds.
            if let Some(Trouble::Errors { seed, .. }) = state.trouble
                && !state.off
            {
                state.lose_cache(&mut Dice::new(seed));
            }
            return Err(error);
        }
        for operation in std::mem::take(&mut state.unsynced) {
            apply(&mut state.synced, &operation);
        }
        state.answer()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        let offset = offset as usize;
        match state.change(data.len()) {
            Ok(()) => {
                state.perform(Operation::Write { offset, bytes: data.to_vec() });
                state.answer()
            }
            Err(error) => {
                // A part of it may be there all the same.
                state.perform(Operation::Write { offset, bytes: data[..data.len() / 2].to_vec() });
                Err(error)
            }
        }
    }
}
