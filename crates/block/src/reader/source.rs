//! Where a volume's replicas are, and what one of them says of a snapshot. Decides nothing about the others.

use std::time::Duration;

use super::error::Problem;
use crate::ids::LayerId;
use crate::wire::address::Address;
use crate::wire::connection::Connection;
use crate::wire::handshake::SNAPSHOT_READS;
use crate::wire::key::Key;
use crate::wire::message::{Layer, ReplicaInfo, SnapshotSpec};

/// Connecting, proving the key and asking who it is.
const DIAL_LIMIT: Duration = Duration::from_secs(5);

/// A volume, by its replicas. Not all of them need to be named, or reachable.
#[derive(Clone, Debug)]
pub struct Source {
    pub volume: String,
    pub key: Key,
    pub replicas: Vec<Address>,
}

/// A snapshot as one replica has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub layer: LayerId,
    pub size: u64,
    pub spec: SnapshotSpec,
    /// What it stands on, nearest first. Folding makes it shorter on one replica sooner than on another.
    pub below: Vec<Layer>,
}

impl Source {
    /// Connects to one replica that can serve the snapshot.
    pub(super) async fn connect(
        &self,
        address: &Address,
        is_it: impl Fn(&Layer) -> bool,
    ) -> Result<(Connection, Standing), Problem> {
        let (connection, info) = Connection::dial(address, &self.volume, &self.key, DIAL_LIMIT).await?;
        let standing = Standing::find(&info, is_it)?;
        if connection.version < SNAPSHOT_READS {
            return Err(Problem::TooOld);
        }
        Ok((connection, standing))
    }
}

impl Standing {
    fn find(info: &ReplicaInfo, is_it: impl Fn(&Layer) -> bool) -> Result<Self, Problem> {
        if info.rebuilding {
            return Err(Problem::Rebuilding);
        }
        let listed = info.layers.iter().filter(|layer| !layer.removed);
        let found = listed.filter_map(|layer| Some((layer, layer.snapshot.clone()?)));
        let (layer, spec) = found.into_iter().find(|(layer, _)| is_it(layer)).ok_or(Problem::NoSnapshot)?;
        let parent = |layer: &&Layer| {
            let parent = layer.parent?;
            info.layers.iter().find(|it| it.id == parent)
        };
        // No longer than the tree has layers, whatever a broken peer says.
        let chain = std::iter::successors(Some(layer), parent).take(info.layers.len());
        let below = chain.skip(1).cloned().collect();
        Ok(Self { layer: layer.id, size: layer.size, spec, below })
    }

    pub fn stands_on(&self, layer: LayerId) -> bool {
        layer == self.layer || self.below.iter().any(|below| below.id == layer)
    }
}
