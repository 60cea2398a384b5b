//! VolumeAttachment: the wish to have a volume attached to a node.
//!
//! Owns the rules of this kind; its spec never changes. Must never attach anything.

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{bool_at, fill, name, str_at};
use super::{Builtin, Column, PLAIN, column, human};

pub static VOLUME_ATTACHMENT: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "VolumeAttachment",
    plural: "volumeattachments",
    singular: "volumeattachment",
    has_status: true,
    needs_version: true,
    schema: VolumeAttachment::json_schema,
    default: |attachment| fill(attachment, "/status/attached", false),
    columns: &[
        column::NAME,
        Column { format: "name", ..Column::text("Attacher", "The CSI driver that must act.") },
        Column::text("PV", "The volume to attach."),
        Column::text("Node", "The node to attach it to."),
        Column::boolean("Attached", "Whether the volume is attached now."),
        column::AGE,
    ],
    row,
    ..PLAIN
};

fn row(attachment: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(attachment).into(),
        str_at(attachment, "/spec/attacher").into(),
        str_at(attachment, "/spec/source/persistentVolumeName").into(),
        str_at(attachment, "/spec/nodeName").into(),
        bool_at(attachment, "/status/attached").into(),
        human::age(attachment, now).into(),
    ]
}
