//! The reference index as an object: what it covers, the counts, and a checksum over all of it.
//! Must never decode into something that was not written: damage reads as "there is none".
//!
//! ```text
//! "GRNYREF1" | header length u32 LE | header JSON | (block 32 bytes | count u64 LE)*, by block | checksum 32 bytes
//! ```

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::checksum::Checksum;
use crate::config::BlockMapping;
use crate::names::BackupName;

const MAGIC: &[u8; 8] = b"GRNYREF1";
const RECORD: usize = Checksum::LENGTH + 8;

/// What the index remembers of a backup it has counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredBackup {
    /// The configuration's version in the listing: another one is another backup.
    pub version: String,
    pub snapshot_created_at: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    pub backups: BTreeMap<BackupName, CoveredBackup>,
    counts: HashMap<Checksum, u64>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    backups: BTreeMap<String, CoveredBackup>,
}

impl References {
    pub fn add(&mut self, name: BackupName, backup: CoveredBackup, blocks: &[BlockMapping]) {
        self.backups.insert(name, backup);
        for block in blocks {
            *self.counts.entry(block.block_checksum).or_default() += 1;
        }
    }

    /// Takes one backup out and returns the blocks that nobody uses any more.
    pub fn remove(&mut self, name: &BackupName, blocks: &[BlockMapping]) -> Vec<Checksum> {
        if self.backups.remove(name).is_none() {
            return Vec::new();
        }
        let mut unused = Vec::new();
        for block in blocks {
            if let Some(count) = self.counts.get_mut(&block.block_checksum) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&block.block_checksum);
                    unused.push(block.block_checksum);
                }
            }
        }
        unused
    }

    pub fn contains(&self, block: Checksum) -> bool {
        self.counts.contains_key(&block)
    }

    pub fn blocks(&self) -> impl Iterator<Item = Checksum> {
        self.counts.keys().copied()
    }

    pub fn block_count(&self) -> u64 {
        self.counts.len() as u64
    }

    /// The backup of the newest snapshot.
    pub fn newest(&self) -> Option<(&BackupName, &CoveredBackup)> {
        let taken = |backup: &CoveredBackup| backup.snapshot_created_at.parse::<jiff::Timestamp>().ok();
        self.backups.iter().max_by_key(|(_, backup)| taken(backup))
    }

    pub fn encode(&self) -> serde_json::Result<Bytes> {
        let backups = self.backups.iter().map(|(name, backup)| (name.to_string(), backup.clone())).collect();
        let header = serde_json::to_vec(&Header { backups })?;
        let mut records: Vec<_> = self.counts.iter().collect();
        records.sort_unstable_by_key(|(block, _)| **block);
        let mut out =
            Vec::with_capacity(MAGIC.len() + 4 + header.len() + records.len() * RECORD + Checksum::LENGTH);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&(header.len() as u32).to_le_bytes());
        out.extend_from_slice(&header);
        for (block, count) in records {
            out.extend_from_slice(block.as_bytes());
            out.extend_from_slice(&count.to_le_bytes());
        }
        let sum = Checksum::of(&out);
        out.extend_from_slice(sum.as_bytes());
        Ok(out.into())
    }

    pub fn decode(data: &[u8]) -> Option<Self> {
        let (data, sum) = data.split_last_chunk()?;
        if Checksum::of(data).as_bytes() != sum {
            return None;
        }
        let rest = data.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first_chunk()?;
        let (header, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let header: Header = serde_json::from_slice(header).ok()?;
        let (records, []) = rest.as_chunks::<RECORD>() else { return None };
        let record = |record: &[u8; RECORD]| {
            let (block, count) = record.split_first_chunk()?;
            let count = u64::from_le_bytes(count.try_into().ok()?);
            (count > 0).then_some((Checksum::from_bytes(*block), count))
        };
        let counts = records.iter().map(record).collect::<Option<_>>()?;
        let backups =
            header.backups.into_iter().map(|(name, backup)| Some((BackupName::new(name).ok()?, backup)));
        Some(Self { backups: backups.collect::<Option<_>>()?, counts })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, proptest};

    use super::{CoveredBackup, References};
    use crate::checksum::Checksum;
    use crate::config::BlockMapping;
    use crate::names::BackupName;

    fn blocks(numbers: &[u8]) -> Vec<BlockMapping> {
        let block = |(position, number): (usize, &u8)| BlockMapping {
            offset: position as u64 * 4096,
            block_checksum: Checksum::of(&[*number]),
        };
        numbers.iter().enumerate().map(block).collect()
    }

    fn backup(number: usize) -> (BackupName, CoveredBackup) {
        let covered = CoveredBackup {
            version: format!("v{number}"),
            snapshot_created_at: format!("2026-01-{:02}T00:00:00Z", number + 1),
        };
        (BackupName::new(format!("backup-{number}")).unwrap(), covered)
    }

    fn references(lists: &[Vec<u8>]) -> References {
        let mut references = References::default();
        for (number, list) in lists.iter().enumerate() {
            let (name, covered) = backup(number);
            references.add(name, covered, &blocks(list));
        }
        references
    }

    fn lists() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(0..20u8, 0..12), 1..6)
    }

    proptest! {
        #[test]
        fn a_block_is_free_when_its_last_backup_goes(lists in lists()) {
            let mut index = references(&lists);
            let mut left = lists.clone();
            for number in 0..lists.len() {
                let gone = std::mem::take(&mut left[number]);
                let mut unused = index.remove(&backup(number).0, &blocks(&gone));
                let mut expected: Vec<_> = gone.iter().filter(|block| !left.iter().flatten().any(|other| other == *block)).collect();
                expected.sort();
                expected.dedup();
                let mut expected: Vec<_> = expected.into_iter().map(|block| Checksum::of(&[*block])).collect();
                expected.sort();
                unused.sort();
                assert_eq!(unused, expected);
            }
            assert_eq!(index, References::default());
        }

        #[test]
        fn it_goes_round_and_notices_damage(lists in lists(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let index = references(&lists);
            let encoded = index.encode().unwrap();
            assert_eq!(References::decode(&encoded), Some(index));
            let mut damaged = encoded.to_vec();
            damaged[at.index(encoded.len())] ^= 1 << bit;
            assert_eq!(References::decode(&damaged), None);
            assert_eq!(References::decode(&encoded[..at.index(encoded.len())]), None);
        }
    }

    #[test]
    fn the_newest_is_that_of_the_newest_snapshot() {
        let index = references(&[vec![], vec![], vec![]]);
        assert_eq!(index.newest().unwrap().0.as_str(), "backup-2");
    }
}
