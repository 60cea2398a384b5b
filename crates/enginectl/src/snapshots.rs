//! A chain of layers as people think of it: snapshots with a parent and children. Layers that carry no name (a
//! backing image, what a clone inherited) are stepped over.

use granary_block::ids::LayerId;
use granary_block::wire::message::{Layer, SnapshotSpec};

use crate::v1;

/// The name under which the volume itself appears among a snapshot's children.
pub const HEAD: &str = "volume-head";

/// Oldest first.
pub fn list(layers: &[Layer]) -> Vec<v1::Snapshot> {
    let mut snapshots: Vec<_> = layers
        .iter()
        .filter_map(|layer| layer.snapshot.as_ref().map(|spec| describe(layers, layer, spec)))
        .collect();
    snapshots.sort_by_cached_key(|snapshot| depth(layers, &snapshot.name));
    snapshots
}

/// The volume itself, as the layer that takes what is written.
pub fn head(layers: &[Layer], head: Option<LayerId>) -> Option<v1::Snapshot> {
    let head = find(layers, head?)?;
    Some(v1::Snapshot {
        name: HEAD.to_owned(),
        parent: named_parent(layers, head).map(name).unwrap_or_default(),
        allocated: head.allocated,
        ..v1::Snapshot::default()
    })
}

fn describe(layers: &[Layer], layer: &Layer, spec: &SnapshotSpec) -> v1::Snapshot {
    let children =
        layers.iter().filter(|child| named_parent(layers, child).is_some_and(|parent| parent.id == layer.id));
    v1::Snapshot {
        name: spec.name.clone(),
        created: spec.created.to_string(),
        user_created: spec.user_created,
        labels: spec.labels.clone(),
        parent: named_parent(layers, layer).map(name).unwrap_or_default(),
        children: children.map(name).collect(),
        allocated: layer.allocated,
        removed: layer.removed,
    }
}

fn name(layer: &Layer) -> String {
    layer.snapshot.as_ref().map_or_else(|| HEAD.to_owned(), |spec| spec.name.clone())
}

fn find(layers: &[Layer], id: LayerId) -> Option<&Layer> {
    layers.iter().find(|layer| layer.id == id)
}

fn named_parent<'a>(layers: &'a [Layer], layer: &Layer) -> Option<&'a Layer> {
    let mut parent = find(layers, layer.parent?)?;
    while parent.snapshot.is_none() {
        parent = find(layers, parent.parent?)?;
    }
    Some(parent)
}

/// How many layers a snapshot stands on.
fn depth(layers: &[Layer], name: &str) -> usize {
    let named = |layer: &&Layer| layer.snapshot.as_ref().is_some_and(|spec| spec.name == name);
    let mut at = layers.iter().find(named);
    let mut depth = 0;
    while let Some(parent) = at.and_then(|layer| layer.parent) {
        at = find(layers, parent);
        depth += 1;
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> LayerId {
        LayerId(uuid::Uuid::from_u128(number))
    }

    fn layer(number: u128, parent: Option<u128>, name: Option<&str>) -> Layer {
        let snapshot = name.map(|name| SnapshotSpec {
            name: name.to_owned(),
            created: jiff::Timestamp::UNIX_EPOCH,
            user_created: true,
            labels: Default::default(),
        });
        Layer {
            id: id(number),
            parent: parent.map(id),
            absorbed: Vec::new(),
            snapshot,
            removed: false,
            complete: true,
            backing: None,
            size: 4096,
            allocated: 0,
        }
    }

    #[test]
    fn a_tree_of_layers_reads_as_a_family() {
        // base image (1) <- a (2) <- b (3) <- c (4), and after a revert to b: head (5)
        let layers = [
            layer(5, Some(3), None),
            layer(4, Some(3), Some("c")),
            layer(3, Some(2), Some("b")),
            layer(2, Some(1), Some("a")),
            layer(1, None, None),
        ];
        let seen: Vec<_> = list(&layers)
            .into_iter()
            .map(|snapshot| (snapshot.name, snapshot.parent, snapshot.children))
            .collect();
        let expected = [("a", "", vec!["b"]), ("b", "a", vec![HEAD, "c"]), ("c", "b", vec![])];
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(name, parent, children)| {
                (name.to_owned(), parent.to_owned(), children.into_iter().map(str::to_owned).collect())
            })
            .collect();
        assert_eq!(seen, expected);
        let above = head(&layers, Some(id(5))).unwrap();
        assert_eq!((above.name.as_str(), above.parent.as_str()), (HEAD, "b"));
        assert_eq!(head(&layers, None), None);
    }
}
