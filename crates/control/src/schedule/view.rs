//! From the objects of the API to what the scheduler looks at.

use granary_api::longhorn::{self, Condition, DiskSpec, DiskStatus, Replica, Volume, VolumeToggle};
use granary_api::wire::ConditionStatus;
use kube::ResourceExt;

use super::model::{Copy, Disk, Node, Request, Rules};
use crate::setting::{Values, catalogue};

impl Rules {
    /// What the settings say, unless the volume says otherwise.
    pub fn of(values: &Values, volume: &Volume) -> Self {
        let choose = |toggle: Option<VolumeToggle>, setting: &str| match toggle {
            Some(VolumeToggle::Enabled) => true,
            Some(VolumeToggle::Disabled) => false,
            Some(VolumeToggle::Ignored) | None => values.is_on(setting),
        };
        Self {
            over_provisioning: values.number(catalogue::OVER_PROVISIONING),
            minimal_available: values.number(catalogue::MINIMAL_AVAILABLE),
            share_node: choose(volume.spec.replica_soft_anti_affinity, catalogue::SHARE_NODE),
            share_zone: choose(volume.spec.replica_zone_soft_anti_affinity, catalogue::SHARE_ZONE),
            share_disk: choose(volume.spec.replica_disk_soft_anti_affinity, catalogue::SHARE_DISK),
            untagged_on_tagged_nodes: values.is_on(catalogue::UNTAGGED_ON_TAGGED_NODES),
            untagged_on_tagged_disks: values.is_on(catalogue::UNTAGGED_ON_TAGGED_DISKS),
        }
    }
}

impl From<&Volume> for Request {
    fn from(volume: &Volume) -> Self {
        let used = volume.status.as_ref().and_then(|status| status.actual_size).unwrap_or(0);
        Self {
            size: volume.spec.size.unwrap_or_default().bytes(),
            fill: u64::try_from(used).unwrap_or(0),
            node_selector: volume.spec.node_selector.clone().unwrap_or_default(),
            disk_selector: volume.spec.disk_selector.clone().unwrap_or_default(),
            only_node: None,
        }
    }
}

impl Copy {
    /// None for a replica that is not counted on, or has no place.
    pub fn of(replica: &Replica) -> Option<Self> {
        let spec = &replica.spec;
        let has_failed = spec.failed_at.as_deref().is_some_and(|at| !at.is_empty());
        let node = spec.instance.node_id.clone().filter(|node| !node.is_empty())?;
        if has_failed || replica.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let disk = spec.disk_id.clone().unwrap_or_default();
        Some(Self { node, disk, evicting: spec.eviction_requested.unwrap_or(false) })
    }
}

impl From<&longhorn::Node> for Node {
    fn from(node: &longhorn::Node) -> Self {
        let status = node.status.clone().unwrap_or_default();
        let disks = node.spec.disks.iter().flatten().map(|(name, spec)| {
            disk(name, spec, status.disk_status.as_ref().and_then(|disks| disks.get(name)))
        });
        Self {
            name: node.name_any(),
            zone: status.zone.clone().unwrap_or_default(),
            ready: is_true(status.conditions.as_deref(), "Ready"),
            allows_scheduling: node.spec.allow_scheduling.unwrap_or(false),
            evicting: node.spec.eviction_requested.unwrap_or(false),
            tags: node.spec.tags.clone().unwrap_or_default(),
            disks: disks.collect(),
        }
    }
}

fn disk(name: &str, spec: &DiskSpec, status: Option<&DiskStatus>) -> Disk {
    let bytes = |number: Option<i64>| u64::try_from(number.unwrap_or(0)).unwrap_or(0);
    let conditions = status.and_then(|status| status.conditions.as_deref());
    Disk {
        name: name.to_owned(),
        id: status.and_then(|status| status.disk_uuid.clone()).unwrap_or_default(),
        path: spec.path.clone().unwrap_or_default(),
        ready: is_true(conditions, "Ready"),
        allows_scheduling: spec.allow_scheduling.unwrap_or(false),
        evicting: spec.eviction_requested.unwrap_or(false),
        tags: spec.tags.clone().unwrap_or_default(),
        maximum: bytes(status.and_then(|status| status.storage_maximum)),
        available: bytes(status.and_then(|status| status.storage_available)),
        scheduled: bytes(status.and_then(|status| status.storage_scheduled)),
        reserved: bytes(spec.storage_reserved),
    }
}

fn is_true(conditions: Option<&[Condition]>, kind: &str) -> bool {
    let found = conditions.into_iter().flatten().find(|condition| condition.type_.as_deref() == Some(kind));
    found.is_some_and(|condition| condition.status == Some(ConditionStatus::True))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_seen_as_its_object_says() {
        let object: longhorn::Node = serde_json::from_value(json!({
            "apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": { "name": "n1" },
            "spec": {
                "allowScheduling": true, "tags": ["fast"],
                "disks": { "d": { "path": "/d", "allowScheduling": true, "storageReserved": 5, "tags": ["ssd"] } },
            },
            "status": {
                "zone": "z", "conditions": [{ "type": "Ready", "status": "True" }],
                "diskStatus": { "d": {
                    "diskUUID": "u", "storageMaximum": 100, "storageAvailable": 90, "storageScheduled": 10,
                    "conditions": [{ "type": "Ready", "status": "False" }],
                } },
            },
        }))
        .unwrap();
        let node = Node::from(&object);
        assert!(node.ready && node.allows_scheduling && !node.evicting);
        assert_eq!((node.zone.as_str(), node.tags.len()), ("z", 1));
        let disk = &node.disks[0];
        assert_eq!((disk.maximum, disk.available, disk.scheduled, disk.reserved), (100, 90, 10, 5));
        assert_eq!((disk.id.as_str(), disk.path.as_str(), disk.ready), ("u", "/d", false));
    }

    #[test]
    fn a_volume_overrides_the_settings() {
        let mut volume = Volume::default();
        let rules = Rules::of(&Values::default(), &volume);
        assert_eq!(rules, Rules::default(), "the catalogue and the scheduler know the same defaults");
        volume.spec.replica_soft_anti_affinity = Some(VolumeToggle::Enabled);
        volume.spec.replica_zone_soft_anti_affinity = Some(VolumeToggle::Disabled);
        volume.spec.replica_disk_soft_anti_affinity = Some(VolumeToggle::Ignored);
        let rules = Rules::of(&Values::default(), &volume);
        assert!(rules.share_node && !rules.share_zone && rules.share_disk);
    }

    #[test]
    fn a_failed_replica_keeps_no_place() {
        let mut replica = Replica::default();
        assert_eq!(Copy::of(&replica), None, "it has no place");
        replica.spec.instance.node_id = Some("n1".into());
        replica.spec.disk_id = Some("u".into());
        replica.spec.failed_at = Some(String::new());
        let copy = Copy { node: "n1".into(), disk: "u".into(), evicting: false };
        assert_eq!(Copy::of(&replica), Some(copy));
        replica.spec.failed_at = Some("2026-01-01T00:00:00Z".into());
        assert_eq!(Copy::of(&replica), None);
    }
}
