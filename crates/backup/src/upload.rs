//! One block's way into the store: read, address, look whether it is there, pack, write.
//! Must never list a block before it is in the store.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use crate::catalog::Catalog;
use crate::checksum::Checksum;
use crate::compression::Compression;
use crate::config::{BlockMapping, BlockSize};
use crate::error::{Error, Result};
use crate::volume::Source;

/// What to do about blocks that may be in the store already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Look before writing.
    Ask,
    /// The volume is new: nothing is there.
    New,
    /// Write all anew, to heal what may be damaged.
    Rewrite,
}

pub struct Uploader<'a> {
    pub catalog: &'a Catalog,
    pub source: &'a dyn Source,
    pub compression: Compression,
    pub block_size: BlockSize,
    pub keep_zeroes: bool,
    pub presence: Presence,
    /// Blocks that are in the store, or will be when this job succeeds.
    pub known: Mutex<HashSet<Checksum>>,
    pub counts: Counts,
}

#[derive(Debug, Default)]
pub struct Counts {
    pub new_blocks: AtomicU64,
    pub new_bytes: AtomicU64,
    pub rewritten_bytes: AtomicU64,
}

impl Uploader<'_> {
    /// `None` for a block of zeroes, which needs no place in the list.
    pub async fn upload(&self, offset: u64) -> Result<Option<BlockMapping>> {
        let mut block = vec![0; self.block_size.as_usize()];
        // The last block of an odd-sized volume is filled up with zeroes.
        let length = self.block_size.bytes().min(self.source.size() - offset) as usize;
        let read = self.source.read_at(offset, &mut block[..length]).await;
        read.map_err(|source| Error::Source { offset, source })?;

        let block = Bytes::from(block);
        let keep_zeroes = self.keep_zeroes;
        let hashed = spawn_blocking(move || {
            let checksum = (keep_zeroes || !is_zero(&block)).then(|| Checksum::of(&block));
            checksum.map(|checksum| (checksum, block))
        });
        let Some((block_checksum, block)) = hashed.await? else { return Ok(None) };
        // If it is under way just now and fails, this whole job fails.
        if self.known.lock().insert(block_checksum) {
            self.store(block_checksum, block).await?;
        }
        Ok(Some(BlockMapping { offset, block_checksum }))
    }

    async fn store(&self, checksum: Checksum, block: Bytes) -> Result<()> {
        let key = self.catalog.layout.block(checksum);
        let is_there = self.presence != Presence::New && self.catalog.store.head(&key).await?.is_some();
        if is_there && self.presence != Presence::Rewrite {
            return Ok(());
        }
        let compression = self.compression;
        let packed = spawn_blocking(move || compression.pack(block)).await?.map_err(Error::Pack)?;
        let bytes = packed.len() as u64;
        self.catalog.store.put(&key, packed).await?;
        if is_there {
            self.counts.rewritten_bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.counts.new_blocks.fetch_add(1, Ordering::Relaxed);
            self.counts.new_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Comparing a block with itself, one byte on, runs at the speed of memory.
fn is_zero(block: &[u8]) -> bool {
    match block {
        [] => true,
        [first, rest @ ..] => *first == 0 && block[..rest.len()] == *rest,
    }
}

#[cfg(test)]
mod tests {
    use super::is_zero;

    #[test]
    fn one_bit_is_not_zero() {
        let mut block = [0; 100];
        assert!(is_zero(&block) && is_zero(&[]) && is_zero(&[0]));
        for position in [0, 1, 50, 98, 99] {
            block[position] = 1;
            assert!(!is_zero(&block));
            block[position] = 0;
        }
        assert!(!is_zero(&[1; 100]));
    }
}
