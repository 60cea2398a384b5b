//! The choice of a disk: every rule that forbids one is named; of the rest, the one that spreads best is taken.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::model::{Copy, Disk, Node, Place, Request, Rules};
use super::reason::{NoPlace, Obstacle, Where};

/// The best disk for one more copy of a volume that has `copies`.
///
/// Copies go to an unused zone first, then to an unused node, then to the disk with fewest copies, then to the one
/// with most room. Equal ones are taken by name, so that the same cluster gives the same answer.
pub fn place(request: &Request, rules: &Rules, nodes: &[Node], copies: &[Copy]) -> Result<Place, NoPlace> {
    let used = Used::of(nodes, copies);
    let mut obstacles = Vec::new();
    let mut open: Vec<(&Node, &Disk)> = Vec::new();
    for node in nodes {
        if let Some(obstacle) = node_obstacle(request, rules, node, &used) {
            obstacles.push((Where::Node(node.name.clone()), obstacle));
            continue;
        }
        for disk in &node.disks {
            match disk_obstacle(request, rules, disk, &used) {
                Some(obstacle) => {
                    let place = Where::Disk { node: node.name.clone(), disk: disk.name.clone() };
                    obstacles.push((place, obstacle));
                }
                None => open.push((node, disk)),
            }
        }
    }
    let best = open.into_iter().min_by_key(|(node, disk)| {
        (
            used.zones.contains(node.zone.as_str()),
            used.nodes.contains(node.name.as_str()),
            used.copies_on(&disk.id),
            Reverse(disk.available.saturating_sub(disk.reserved)),
            (&node.name, &disk.name),
        )
    });
    match best {
        Some((node, disk)) => {
            Ok(Place { node: node.name.clone(), disk: disk.id.clone(), path: disk.path.clone() })
        }
        None => Err(NoPlace { obstacles }),
    }
}

/// What the volume's copies occupy. One that shall leave occupies its disk only: its successor may take its zone
/// and its node, but not fill the same disk again.
struct Used<'a> {
    zones: BTreeSet<&'a str>,
    nodes: BTreeSet<&'a str>,
    disks: Vec<&'a str>,
}

impl<'a> Used<'a> {
    fn of(nodes: &'a [Node], copies: &'a [Copy]) -> Self {
        let staying: BTreeSet<&str> =
            copies.iter().filter(|copy| !copy.evicting).map(|copy| copy.node.as_str()).collect();
        let zones = nodes.iter().filter(|node| staying.contains(node.name.as_str()));
        Self {
            zones: zones.map(|node| node.zone.as_str()).collect(),
            nodes: staying,
            disks: copies.iter().map(|copy| copy.disk.as_str()).collect(),
        }
    }

    fn copies_on(&self, disk: &str) -> usize {
        self.disks.iter().filter(|used| **used == disk).count()
    }
}

fn node_obstacle(request: &Request, rules: &Rules, node: &Node, used: &Used<'_>) -> Option<Obstacle> {
    let missing = missing(&request.node_selector, &node.tags);
    if let Some(only) = &request.only_node
        && *only != node.name
    {
        return Some(Obstacle::OtherNodeOnly(only.clone()));
    }
    if !node.ready {
        Some(Obstacle::NodeNotReady)
    } else if !node.allows_scheduling {
        Some(Obstacle::NodeSchedulingOff)
    } else if node.evicting {
        Some(Obstacle::NodeEvicting)
    } else if !missing.is_empty() {
        Some(Obstacle::NodeTags(missing))
    } else if request.node_selector.is_empty() && !node.tags.is_empty() && !rules.untagged_on_tagged_nodes {
        Some(Obstacle::NodeTagged)
    } else if !rules.share_node && used.nodes.contains(node.name.as_str()) {
        Some(Obstacle::NodeHasCopy)
    } else if !rules.share_zone && used.zones.contains(node.zone.as_str()) {
        Some(Obstacle::ZoneHasCopy(node.zone.clone()))
    } else if node.disks.is_empty() {
        Some(Obstacle::NoDisks)
    } else {
        None
    }
}

fn disk_obstacle(request: &Request, rules: &Rules, disk: &Disk, used: &Used<'_>) -> Option<Obstacle> {
    let missing = missing(&request.disk_selector, &disk.tags);
    if !disk.ready || disk.id.is_empty() {
        Some(Obstacle::DiskNotReady)
    } else if !disk.allows_scheduling {
        Some(Obstacle::DiskSchedulingOff)
    } else if disk.evicting {
        Some(Obstacle::DiskEvicting)
    } else if !missing.is_empty() {
        Some(Obstacle::DiskTags(missing))
    } else if request.disk_selector.is_empty() && !disk.tags.is_empty() && !rules.untagged_on_tagged_disks {
        Some(Obstacle::DiskTagged)
    } else if !rules.share_disk && used.copies_on(&disk.id) > 0 {
        Some(Obstacle::DiskHasCopy)
    } else {
        space_obstacle(request, rules, disk)
    }
}

fn space_obstacle(request: &Request, rules: &Rules, disk: &Disk) -> Option<Obstacle> {
    let promisable = percent(disk.maximum.saturating_sub(disk.reserved), rules.over_provisioning);
    let left = promisable.saturating_sub(disk.scheduled);
    if request.size > left {
        return Some(Obstacle::Promised { left, asked: request.size });
    }
    let needed = percent(disk.maximum, rules.minimal_available).saturating_add(request.fill);
    if disk.available <= needed {
        return Some(Obstacle::Free { free: disk.available, needed });
    }
    None
}

fn percent(of: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

fn missing(wanted: &[String], tags: &[String]) -> Vec<String> {
    wanted.iter().filter(|tag| !tags.contains(tag)).cloned().collect()
}
