//! Group `snapshot.storage.k8s.io/v1`: snapshots of claims, as the external-snapshotter defines them.
//! On a cluster its controllers own these objects; on one machine Granary does. Types only.

mod content;
mod snapshot_class;
mod volume_snapshot;

pub use content::{
    VolumeSnapshotContent, VolumeSnapshotContentSource, VolumeSnapshotContentSpec,
    VolumeSnapshotContentStatus,
};
pub use snapshot_class::{DeletionPolicy, VolumeSnapshotClass, VolumeSnapshotClassSpec};
pub use volume_snapshot::{VolumeSnapshot, VolumeSnapshotSource, VolumeSnapshotSpec, VolumeSnapshotStatus};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::Extra;

pub const GROUP: &str = "snapshot.storage.k8s.io";
pub const VERSION: &str = "v1";

/// Why the last attempt at a snapshot failed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct VolumeSnapshotError {
    pub time: Option<Time>,
    pub message: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
