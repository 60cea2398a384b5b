//! Group `longhorn.io/v1beta2`: replicated block volumes and everything they consist of, as Longhorn defines them.
//! Typed are the fields of the classic (v1) data engine; those of the SPDK one are carried unread. Types only.

mod backing_image;
mod backing_image_data_source;
mod backing_image_manager;
mod backup;
mod backup_target;
mod backup_volume;
mod engine;
mod engine_image;
mod instance;
mod instance_manager;
mod node;
mod replica;
mod setting;
mod share_manager;
mod snapshot;
mod volume;
mod volume_attachment;

pub use backing_image::{
    BackingImage, BackingImageDiskFileSpec, BackingImageDiskFileStatus, BackingImageSourceType,
    BackingImageSpec, BackingImageState, BackingImageStatus,
};
pub use backing_image_data_source::{
    BackingImageDataSource, BackingImageDataSourceSpec, BackingImageDataSourceStatus,
};
pub use backing_image_manager::{
    BackingImageFileInfo, BackingImageManager, BackingImageManagerSpec, BackingImageManagerState,
    BackingImageManagerStatus,
};
pub use backup::{Backup, BackupMode, BackupSpec, BackupState, BackupStatus, CompressionMethod};
pub use backup_target::{BackupTarget, BackupTargetSpec, BackupTargetStatus};
pub use backup_volume::{BackupVolume, BackupVolumeSpec, BackupVolumeStatus};
pub use engine::{
    Engine, EngineBackupStatus, EngineCloneStatus, EngineSpec, EngineStatus, PurgeStatus, RebuildStatus,
    ReplicaMode, RestoreStatus, SnapshotInfo,
};
pub use engine_image::{
    EngineImage, EngineImageSpec, EngineImageState, EngineImageStatus, EngineVersionDetails,
};
pub use instance::{InstanceSpec, InstanceState, InstanceStatus};
pub use instance_manager::{
    InstanceManager, InstanceManagerSpec, InstanceManagerState, InstanceManagerStatus, InstanceManagerType,
    InstanceProcess, InstanceProcessSpec, InstanceProcessStatus, InstanceType,
};
pub use node::{DiskDriver, DiskSpec, DiskStatus, DiskType, Node, NodeSpec, NodeStatus, SnapshotCheckStatus};
pub use replica::{Replica, ReplicaSpec, ReplicaStatus};
pub use setting::{Setting, SettingSpec, SettingStatus};
pub use share_manager::{ShareManager, ShareManagerSpec, ShareManagerState, ShareManagerStatus};
pub use snapshot::{Snapshot, SnapshotSpec, SnapshotStatus};
pub use volume::{
    AccessMode, CloneMode, CloneState, CloneStatus, DataLayout, DataLayoutMode, DataLayoutType, DataLocality,
    KubernetesStatus, ReplicaAutoBalance, Robustness, SnapshotDataIntegrity, SwitchoverState, TopologyTerm,
    Volume, VolumeSpec, VolumeState, VolumeStatus, VolumeToggle, WorkloadStatus,
};
pub use volume_attachment::{
    AttacherType, AttachmentTicket, AttachmentTicketStatus, VolumeAttachment, VolumeAttachmentSpec,
    VolumeAttachmentStatus,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::{ConditionStatus, Extra, closed_enum};

pub const GROUP: &str = "longhorn.io";
pub const VERSION: &str = "v1beta2";

closed_enum! {
    /// Which data engine serves a volume: the classic one, or SPDK.
    pub enum DataEngine {
        V1 = "v1",
        V2 = "v2",
    }
}

closed_enum! {
    /// How a volume is presented on its node.
    pub enum Frontend {
        BlockDev = "blockdev",
        Iscsi = "iscsi",
        Nvmf = "nvmf",
        Ublk = "ublk",
        Unset = "",
    }
}

/// One aspect of an object; times are RFC 3339 texts.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub type_: Option<String>,
    pub status: Option<ConditionStatus>,
    pub last_probe_time: Option<String>,
    pub last_transition_time: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
