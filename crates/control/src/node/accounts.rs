//! What is promised to replicas, for each disk of a node. Counted anew from the replicas each time.

use std::collections::BTreeMap;

use granary_api::longhorn::{Node, NodeStatus, Replica};
use kube::ResourceExt;

/// The status of a node with the promises that `replicas` are.
pub fn with_promises(node: &Node, replicas: &[Replica]) -> NodeStatus {
    let mut status = node.status.clone().unwrap_or_default();
    let name = node.name_any();
    for disk in status.disk_status.iter_mut().flat_map(BTreeMap::values_mut) {
        let Some(id) = disk.disk_uuid.as_deref().filter(|id| !id.is_empty()) else { continue };
        let here = replicas.iter().filter(|replica| {
            replica.spec.instance.node_id.as_deref() == Some(&name)
                && replica.spec.disk_id.as_deref() == Some(id)
        });
        let promised: BTreeMap<String, i64> = here
            .map(|replica| (replica.name_any(), replica.spec.instance.volume_size.unwrap_or_default().0))
            .collect();
        disk.storage_scheduled = Some(promised.values().fold(0, |sum: i64, size| sum.saturating_add(*size)));
        disk.scheduled_replica = Some(promised);
    }
    status
}

#[cfg(test)]
mod tests {
    use granary_api::longhorn::{DiskStatus, NodeSpec, ReplicaSpec};
    use granary_api::wire::IntString;

    use super::*;

    fn replica(name: &str, node: &str, disk: &str, size: i64) -> Replica {
        let mut replica = Replica::new(name, ReplicaSpec::default());
        replica.spec.instance.node_id = Some(node.into());
        replica.spec.instance.volume_size = Some(IntString(size));
        replica.spec.disk_id = Some(disk.into());
        replica
    }

    #[test]
    fn each_disk_knows_its_replicas_and_nobody_elses() {
        let mut node = Node::new("n1", NodeSpec::default());
        let disk = |id: &str| DiskStatus { disk_uuid: Some(id.into()), ..DiskStatus::default() };
        let disks =
            [("a".to_owned(), disk("u-a")), ("b".to_owned(), disk("u-b")), ("new".to_owned(), disk(""))];
        node.status = Some(NodeStatus { disk_status: Some(disks.into()), ..NodeStatus::default() });
        let replicas = [
            replica("r1", "n1", "u-a", 5),
            replica("r2", "n1", "u-a", 7),
            replica("r3", "n2", "u-a", 100),
            replica("r4", "n1", "", 100),
        ];
        let status = with_promises(&node, &replicas);
        let disks = status.disk_status.unwrap();
        assert_eq!(disks["a"].storage_scheduled, Some(12));
        assert_eq!(
            disks["a"].scheduled_replica.clone().unwrap().into_keys().collect::<Vec<_>>(),
            ["r1", "r2"]
        );
        assert_eq!((disks["b"].storage_scheduled, disks["new"].storage_scheduled), (Some(0), None));
    }
}
