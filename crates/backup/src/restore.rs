//! Restoring a backup, whole or as the difference to one that is there already.
//! Must never write a block whose checksum does not match.

use bytes::Bytes;
use tokio::task::spawn_blocking;

use crate::catalog::Catalog;
use crate::checksum::Checksum;
use crate::compression::{Compression, Damage};
use crate::config::{BackupConfig, BlockMapping, BlockSize};
use crate::error::{BlockPlace, Error, Result};
use crate::job::Job;
use crate::lock::LockKind;
use crate::names::{BackupName, VolumeName};
use crate::repository::Repository;
use crate::volume::Target;

/// What the volume holds before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOnto {
    /// Zeroes, or the backing image that belongs below.
    Blank,
    /// Anything: what the backup does not list is zeroed.
    Anything,
    /// Exactly this older or newer backup of the same volume: only differences are written.
    Backup(BackupName),
}

#[derive(Debug, Clone)]
pub struct RestoreRequest {
    pub volume: VolumeName,
    pub backup: BackupName,
    pub onto: RestoreOnto,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    pub blocks_fetched: u64,
    pub bytes_written: u64,
    pub bytes_zeroed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Fetch(BlockMapping),
    Zero { offset: u64, length: u64 },
}

impl Repository {
    /// Writes the backup's data to the target and flushes it. When it fails, the target holds something in between.
    pub async fn restore(
        &self,
        request: &RestoreRequest,
        target: &dyn Target,
        job: &Job,
    ) -> Result<RestoreSummary> {
        let catalog = self.catalog(&request.volume);
        let lease = self.lock(&catalog, LockKind::Shared, job.cancel()).await?;
        let result = restore_locked(request, target, job, &catalog).await;
        let held = lease.check();
        lease.release().await;
        // Every block was verified, so a lock that ran out is worth no more than a line.
        if let (Ok(_), Err(error)) = (&result, held) {
            tracing::warn!(volume = %request.volume, %error, "restored all the same");
        }
        result
    }
}

async fn restore_locked(
    request: &RestoreRequest,
    target: &dyn Target,
    job: &Job,
    catalog: &Catalog,
) -> Result<RestoreSummary> {
    let volume = catalog.load_volume().await?;
    let backup = catalog.load_finished_backup(&request.backup).await?;
    let block_size = backup.block_size()?;
    let needed = needed(&backup, block_size, volume.size);
    if target.size() < needed {
        return Err(Error::TooSmall { needed, size: target.size() });
    }
    let steps = match &request.onto {
        RestoreOnto::Blank => backup.blocks.iter().copied().map(Step::Fetch).collect(),
        RestoreOnto::Anything => with_gaps_zeroed(&backup, block_size, target.size()),
        RestoreOnto::Backup(base) => {
            let base = catalog.load_finished_backup(base).await?;
            match base.block_size()? == block_size {
                true => differences(&base, &backup, block_size, target.size()),
                false => with_gaps_zeroed(&backup, block_size, target.size()),
            }
        }
    };
    let restorer = Restorer {
        catalog,
        target,
        compression: backup.compression()?,
        block_size,
        zeroes: Checksum::of(&vec![0; block_size.as_usize()]),
    };
    let progress = job.progress();
    progress.expect(steps.iter().map(|step| restorer.length(step)).sum());
    let mut summary = RestoreSummary::default();
    job.run(steps.iter().copied().map(|step| restorer.perform(step)), |done| {
        progress.add(done.bytes_written + done.bytes_zeroed);
        summary.blocks_fetched += done.blocks_fetched;
        summary.bytes_written += done.bytes_written;
        summary.bytes_zeroed += done.bytes_zeroed;
    })
    .await?;
    target.flush().await.map_err(Error::Flush)?;
    Ok(summary)
}

/// Up to the end of the last block, of which only as much counts as the volume had.
fn needed(backup: &BackupConfig, block_size: BlockSize, volume_size: u64) -> u64 {
    let Some(last) = backup.blocks.last() else { return 0 };
    let end = last.offset + block_size.bytes();
    if volume_size > last.offset { end.min(volume_size) } else { end }
}

fn with_gaps_zeroed(backup: &BackupConfig, block_size: BlockSize, size: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut end = 0;
    for block in &backup.blocks {
        if end < block.offset {
            steps.push(Step::Zero { offset: end, length: block.offset - end });
        }
        steps.push(Step::Fetch(*block));
        end = block.offset + block_size.bytes();
    }
    if end < size {
        steps.push(Step::Zero { offset: end, length: size - end });
    }
    steps
}

/// Both lists are ordered; walks them side by side.
fn differences(base: &BackupConfig, backup: &BackupConfig, block_size: BlockSize, size: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut before = base.blocks.iter().copied().peekable();
    let zero = |block: BlockMapping| Step::Zero {
        offset: block.offset,
        length: block_size.bytes().min(size - block.offset),
    };
    for block in &backup.blocks {
        while let Some(gone) = before.next_if(|old| old.offset < block.offset) {
            steps.push(zero(gone));
        }
        let old = before.next_if(|old| old.offset == block.offset);
        if old.is_none_or(|old| old.block_checksum != block.block_checksum) {
            steps.push(Step::Fetch(*block));
        }
    }
    steps.extend(before.take_while(|gone| gone.offset < size).map(zero));
    steps
}

struct Restorer<'a> {
    catalog: &'a Catalog,
    target: &'a dyn Target,
    compression: Compression,
    block_size: BlockSize,
    /// The address of a block of zeroes, which foreign backups list like any other.
    zeroes: Checksum,
}

impl Restorer<'_> {
    /// The last block of an odd-sized volume reaches beyond its end.
    fn length(&self, step: &Step) -> u64 {
        match step {
            Step::Zero { length, .. } => *length,
            Step::Fetch(block) => self.block_size.bytes().min(self.target.size() - block.offset),
        }
    }

    async fn perform(&self, step: Step) -> Result<RestoreSummary> {
        let length = self.length(&step);
        match step {
            Step::Fetch(block) if block.block_checksum != self.zeroes => {
                let data = self.fetch(&block).await?;
                let written = self.target.write_at(block.offset, &data[..length as usize]).await;
                written.map_err(|source| Error::Target { offset: block.offset, source })?;
                Ok(RestoreSummary { blocks_fetched: 1, bytes_written: length, bytes_zeroed: 0 })
            }
            Step::Fetch(BlockMapping { offset, .. }) | Step::Zero { offset, .. } => {
                let zeroed = self.target.write_zeroes(offset, length).await;
                zeroed.map_err(|source| Error::Target { offset, source })?;
                Ok(RestoreSummary { bytes_zeroed: length, ..RestoreSummary::default() })
            }
        }
    }

    /// What arrives damaged is asked for once more before the stored object is blamed.
    async fn fetch(&self, block: &BlockMapping) -> Result<Bytes> {
        let place = || BlockPlace {
            volume: self.catalog.layout.volume().clone(),
            offset: block.offset,
            block: block.block_checksum,
            key: self.catalog.layout.block(block.block_checksum),
        };
        let first = self.fetch_once(block).await?.ok_or_else(|| Error::BlockMissing(place()))?;
        if let Ok(data) = first {
            return Ok(data);
        }
        let second = self.fetch_once(block).await?.ok_or_else(|| Error::BlockMissing(place()))?;
        second.map_err(|source| Error::BlockDamaged { place: place(), source })
    }

    async fn fetch_once(&self, block: &BlockMapping) -> Result<Option<Result<Bytes, Damage>>> {
        let key = self.catalog.layout.block(block.block_checksum);
        let Some(packed) = self.catalog.store.get(&key).await? else { return Ok(None) };
        let (compression, length, expected) =
            (self.compression, self.block_size.as_usize(), block.block_checksum);
        Ok(Some(spawn_blocking(move || compression.unpack(packed, length, expected)).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::{BackupConfig, BlockMapping, BlockSize, Step, differences, with_gaps_zeroed};
    use crate::checksum::Checksum;

    const UNIT: u64 = 4096;

    fn block((number, content): &(u64, u8)) -> BlockMapping {
        BlockMapping { offset: number * UNIT, block_checksum: Checksum::of(&[*content]) }
    }

    fn backup(blocks: &[(u64, u8)]) -> BackupConfig {
        BackupConfig { blocks: blocks.iter().map(block).collect(), ..BackupConfig::default() }
    }

    fn zero(from: u64, count: u64) -> Step {
        Step::Zero { offset: from * UNIT, length: count * UNIT }
    }

    fn fetch(number: u64, content: u8) -> Step {
        Step::Fetch(block(&(number, content)))
    }

    #[test]
    fn a_used_volume_is_zeroed_between_the_blocks() {
        let steps =
            with_gaps_zeroed(&backup(&[(1, 1), (2, 2), (5, 5)]), BlockSize::new(UNIT).unwrap(), 8 * UNIT);
        assert_eq!(steps, [zero(0, 1), fetch(1, 1), fetch(2, 2), zero(3, 2), fetch(5, 5), zero(6, 2)]);
    }

    #[test]
    fn only_differences_are_written() {
        let (from, to) =
            (backup(&[(0, 0), (1, 1), (3, 3), (6, 6), (9, 9)]), backup(&[(1, 1), (2, 2), (3, 33), (5, 5)]));
        let steps = differences(&from, &to, BlockSize::new(UNIT).unwrap(), 8 * UNIT);
        assert_eq!(
            steps,
            [zero(0, 1), fetch(2, 2), fetch(3, 33), fetch(5, 5), zero(6, 1)],
            "9 lies beyond the end"
        );
        assert!(differences(&to, &to, BlockSize::new(UNIT).unwrap(), 8 * UNIT).is_empty());
    }
}
