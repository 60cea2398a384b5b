//! Why a copy has no place: one obstacle for each disk or node, in words a person can act on.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    NodeNotReady,
    NodeSchedulingOff,
    NodeEvicting,
    NodeTags(Vec<String>),
    NodeTagged,
    OtherNodeOnly(String),
    NodeHasCopy,
    ZoneHasCopy(String),
    NoDisks,
    DiskNotReady,
    DiskSchedulingOff,
    DiskEvicting,
    DiskTags(Vec<String>),
    DiskTagged,
    DiskHasCopy,
    /// Bytes that could still be promised, and that are asked for.
    Promised {
        left: u64,
        asked: u64,
    },
    /// Bytes that are free, and that must be.
    Free {
        free: u64,
        needed: u64,
    },
}

/// What an obstacle is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    Node(String),
    Disk { node: String, disk: String },
}

/// No disk can take the copy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NoPlace {
    pub obstacles: Vec<(Where, Obstacle)>,
}

/// A condition's message is read by people; beyond this only the count helps.
const SHOWN: usize = 8;

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.obstacles.is_empty() {
            return f.write_str("there are no nodes with disks; add one to nodes.longhorn.io");
        }
        f.write_str("no disk can take a replica: ")?;
        for (index, (place, obstacle)) in self.obstacles.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{place} {obstacle}")?;
        }
        match self.obstacles.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(f, "node {node}"),
            Self::Disk { node, disk } => write!(f, "disk {disk} of node {node}"),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeNotReady | Self::DiskNotReady => f.write_str("is not ready"),
            Self::NodeSchedulingOff | Self::DiskSchedulingOff => f.write_str("has allowScheduling off"),
            Self::NodeEvicting | Self::DiskEvicting => f.write_str("is being evicted"),
            Self::NodeTags(tags) | Self::DiskTags(tags) => {
                write!(f, "lacks the tags {} that the volume selects", tags.join(", "))
            }
            Self::NodeTagged => {
                f.write_str("has tags and the volume selects none (allow-empty-node-selector-volume)")
            }
            Self::DiskTagged => {
                f.write_str("has tags and the volume selects none (allow-empty-disk-selector-volume)")
            }
            Self::OtherNodeOnly(node) => write!(f, "is not {node}, the only node this replica may be on"),
            Self::NodeHasCopy => {
                f.write_str("has a replica of the volume already (replica-soft-anti-affinity is off)")
            }
            Self::ZoneHasCopy(zone) => write!(
                f,
                "is in zone {zone:?}, which has a replica already (replica-zone-soft-anti-affinity is off)"
            ),
            Self::NoDisks => f.write_str("has no disks"),
            Self::DiskHasCopy => {
                f.write_str("has a replica of the volume already (replica-disk-soft-anti-affinity is off)")
            }
            Self::Promised { left, asked } => write!(
                f,
                "has {} left to promise and {} are asked for (storage-over-provisioning-percentage)",
                bytes(*left),
                bytes(*asked)
            ),
            Self::Free { free, needed } => write!(
                f,
                "has {} free and more than {} must be (storage-minimal-available-percentage)",
                bytes(*free),
                bytes(*needed)
            ),
        }
    }
}

fn bytes(count: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.iter().find(|(_, shift)| count >> shift > 0) {
        Some((unit, shift)) => {
            let tenths = (u128::from(count) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{count} B"),
    }
}
