//! `intents.map`: which regions had writes in flight. A mark is on disk before it counts; taking one back may reach
//! the disk late. All blocks of the file exist from the start, so that a mark costs one small write and one sync.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::error::{Result, StoreError};
use crate::disk::{Disk, File};
use crate::geometry::{BLOCK, INTENT_REGION};
use crate::wire::message::Regions;

pub(super) const FILE: &str = "intents.map";

pub(super) struct IntentMap {
    file: Arc<dyn File>,
    bytes: Mutex<Vec<u8>>,
}

impl IntentMap {
    /// An all-clear map; a leftover of that name is replaced, since no volume counted on it.
    pub fn create(disk: &dyn Disk, size: u64) -> Result<Self> {
        let make = || {
            match disk.remove(FILE) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = disk.create(FILE)?;
            let bytes = vec![0; map_len(size)];
            file.write_at(0, &bytes)?;
            file.sync()?;
            Ok(Self { file, bytes: Mutex::new(bytes) })
        };
        make().map_err(StoreError::io(format!("create {FILE}")))
    }

    pub fn open(disk: &dyn Disk, size: u64) -> Result<Self> {
        let file = disk.open(FILE).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                StoreError::Damaged { directory: disk.describe(), problem: format!("{FILE} is missing") }
            }
            _ => StoreError::io(format!("open {FILE}"))(error),
        })?;
        let read = || {
            let mut bytes = vec![0; file.size()? as usize];
            file.read_at(0, &mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(StoreError::io(format!("read {FILE}")))?;
        let map = Self { file, bytes: Mutex::new(bytes) };
        map.grow(size)?;
        Ok(map)
    }

    /// Room for the marks of a larger volume.
    pub fn grow(&self, size: u64) -> Result<()> {
        let mut bytes = self.bytes.lock();
        let (old, new) = (bytes.len(), map_len(size));
        if old < new {
            bytes.resize(new, 0);
            self.file
                .write_at(old as u64, &bytes[old..])
                .and_then(|()| self.file.sync())
                .map_err(StoreError::io(format!("grow {FILE}")))?;
        }
        Ok(())
    }

    pub fn set(&self, regions: &[Regions]) -> Result<()> {
        let mut bytes = self.bytes.lock();
        if self.apply(&mut bytes, regions, true)? {
            self.file.sync().map_err(StoreError::io(format!("sync {FILE}")))?;
        }
        Ok(())
    }

    pub fn clear(&self, regions: &[Regions]) -> Result<()> {
        self.apply(&mut self.bytes.lock(), regions, false).map(|_| ())
    }

    /// Changes the bits and writes the blocks they are in; answers whether any bit changed. Memory follows the
    /// file, so that a failed write is not taken for a mark.
    fn apply(&self, bytes: &mut [u8], regions: &[Regions], mark: bool) -> Result<bool> {
        let mut changed = false;
        for &Regions(first, count) in regions {
            let end =
                first.checked_add(count).filter(|end| *end <= bytes.len() as u64 * 8).ok_or_else(|| {
                    StoreError::Invalid(format!("intent regions {first}+{count} are beyond the volume's end"))
                })?;
            let is_set = |bytes: &[u8], region: u64| bytes[(region / 8) as usize] >> (region % 8) & 1 == 1;
            if (first..end).all(|region| is_set(bytes, region) == mark) {
                continue;
            }
            let span = (first / 8) as usize..end.div_ceil(8) as usize;
            let mut new = bytes[span.clone()].to_vec();
            for region in first..end {
                let bit = 1 << (region % 8);
                let byte = &mut new[(region / 8) as usize - span.start];
                *byte = if mark { *byte | bit } else { *byte & !bit };
            }
            self.file.write_at(span.start as u64, &new).map_err(StoreError::io(format!("write {FILE}")))?;
            bytes[span].copy_from_slice(&new);
            changed = true;
        }
        Ok(changed)
    }

    pub fn marked(&self) -> Vec<Regions> {
        runs(&self.bytes.lock())
    }
}

pub(super) fn runs(bytes: &[u8]) -> Vec<Regions> {
    let mut runs: Vec<Regions> = Vec::new();
    for (position, &byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
            let region = position as u64 * 8 + bit;
            match runs.last_mut() {
                Some(Regions(first, count)) if *first + *count == region => *count += 1,
                _ => runs.push(Regions(region, 1)),
            }
        }
    }
    runs
}

fn map_len(size: u64) -> usize {
    size.div_ceil(INTENT_REGION).div_ceil(8).next_multiple_of(BLOCK) as usize
}
