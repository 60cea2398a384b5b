//! VolumeAttachment: the tickets of all who want a volume attached, and whether they have it.
//! Has the name of its volume; not the kind of the same name in `storage.k8s.io`.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Condition;
use crate::wire::{Extra, open_enum};

open_enum! {
    /// Who wants a volume attached.
    pub enum AttacherType {
        CsiAttacher = "csi-attacher",
        LonghornApi = "longhorn-api",
        SnapshotController = "snapshot-controller",
        BackupController = "backup-controller",
        VolumeCloneController = "volume-clone-controller",
        SalvageController = "salvage-controller",
        ShareManagerController = "share-manager-controller",
        VolumeRestoreController = "volume-restore-controller",
        VolumeEvictionController = "volume-eviction-controller",
        VolumeExpansionController = "volume-expansion-controller",
        BackingImageDataSourceController = "bim-ds-controller",
        VolumeRebuildingController = "volume-rebuilding-controller",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "VolumeAttachment",
    plural = "volumeattachments",
    namespaced,
    status = "VolumeAttachmentStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Who wants a volume attached, and where.",
    shortname = "lhva",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct VolumeAttachmentSpec {
    /// By ticket id.
    pub attachment_tickets: Option<BTreeMap<String, AttachmentTicket>>,
    pub volume: String,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// One wish for an attachment; the highest priority wins.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentTicket {
    /// Also the key in the map.
    pub id: Option<String>,
    #[serde(rename = "type")]
    pub type_: Option<AttacherType>,
    #[serde(rename = "nodeID")]
    pub node_id: Option<String>,
    /// disableFrontend, lastAttachedBy.
    pub parameters: Option<BTreeMap<String, String>>,
    /// Raised by the owner with every change.
    pub generation: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeAttachmentStatus {
    /// By ticket id.
    pub attachment_ticket_statuses: Option<BTreeMap<String, AttachmentTicketStatus>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

/// Whether a ticket got what it wants.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentTicketStatus {
    pub id: Option<String>,
    pub satisfied: bool,
    /// Satisfied.
    pub conditions: Option<Vec<Condition>>,
    /// Of the ticket this status is about.
    pub generation: Option<i64>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
