//! How many snapshots a volume may have. Kept by the running engine only: whoever sets them sets them again.

use crate::v1::Snapshot;

/// 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotLimits {
    pub count: u32,
    pub bytes: u64,
}

impl SnapshotLimits {
    /// Whether another one may be made of what the head holds.
    pub fn admit(self, snapshots: &[Snapshot], head: u64) -> Result<(), String> {
        let kept = snapshots.iter().filter(|snapshot| !snapshot.removed);
        let count = kept.clone().count();
        if self.count > 0 && count >= self.count as usize {
            return Err(format!(
                "the volume has {count} snapshots, and may have {}; remove one first",
                self.count
            ));
        }
        let bytes = kept.map(|snapshot| snapshot.allocated).sum::<u64>() + head;
        if self.bytes > 0 && bytes > self.bytes {
            return Err(format!(
                "with another one the volume's snapshots would have {bytes} bytes, and may have {}; remove one first",
                self.bytes
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_snapshots_do_not_count() {
        let snapshot = |allocated, removed| Snapshot { allocated, removed, ..Default::default() };
        let snapshots = [snapshot(10, false), snapshot(20, false), snapshot(40, true)];
        let admits = |count, bytes, head| SnapshotLimits { count, bytes }.admit(&snapshots, head).is_ok();
        assert!(admits(0, 0, 1000));
        assert!(admits(3, 0, 0) && !admits(2, 0, 0));
        assert!(admits(0, 35, 5) && !admits(0, 34, 5));
    }
}
