//! VolumeAttachment: the wish to have a volume attached to a node.
//!
//! Owns the rules of this kind; its spec never changes. Must never attach anything.

use granary_api::names;
use jiff::Timestamp;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use schemars::JsonSchema;
use serde_json::Value;

use super::access::{bool_at, fill, name, str_at};
use super::field::Field;
use super::persistent_volume::check_inline_spec;
use super::{Builtin, Column, PLAIN, column, human};
use crate::error::FieldError;

/// Keys and values of the metadata that the driver hands over.
const MAX_METADATA_SIZE: usize = 256 * 1024;
const MAX_MESSAGE: usize = 1024;

pub static VOLUME_ATTACHMENT: Builtin = Builtin {
    group: "storage.k8s.io",
    kind: "VolumeAttachment",
    plural: "volumeattachments",
    singular: "volumeattachment",
    has_status: true,
    needs_version: true,
    schema: VolumeAttachment::json_schema,
    default: |attachment| fill(attachment, "/status/attached", false),
    validate,
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

fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = Field::root(new);
    let spec = root.at("spec");
    spec.at("attacher").csi_driver_name(errors);
    check_source(&spec.at("source"), errors);
    spec.at("nodeName").follow(names::dns1123_subdomain, errors);
    check_status(&root.at("status"), errors);
    let volume = spec.at("source.persistentVolumeName");
    if volume.is_set() {
        volume.follow(names::dns1123_subdomain, errors);
    }
    if let Some(old) = old {
        spec.unchanged(&Field::root(old).at("spec"), errors);
    }
}

fn check_source(source: &Field, errors: &mut Vec<FieldError>) {
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let (inline, volume) = (source.at("inlineVolumeSpec"), source.at("persistentVolumeName"));
    match (inline.is_set(), volume.is_set()) {
        (false, false) => errors.push(source.required(exactly_one)),
        (true, true) => errors.push(source.forbidden(exactly_one)),
        (false, true) if volume.is_empty() => {
            errors.push(volume.required("must specify non empty persistentVolumeName"));
        }
        (false, true) => {}
        (true, false) => check_inline_spec(&inline, errors),
    }
}

fn check_status(status: &Field, errors: &mut Vec<FieldError>) {
    let metadata = status.at("attachmentMetadata");
    let size: usize = metadata.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    if size > MAX_METADATA_SIZE {
        errors.push(metadata.too_long(MAX_METADATA_SIZE));
    }
    for error in [status.at("attachError"), status.at("detachError")] {
        let message = error.at("message");
        if message.text().len() > MAX_MESSAGE {
            errors.push(message.too_long(MAX_MESSAGE));
        }
        let code = error.at("errorCode");
        if code.is_set() {
            code.within(0, i64::from(i32::MAX), errors);
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::testing::{cells, defaulted, refusals, stored, update_refusals, with};
    use serde_json::json;

    fn attachment() -> Value {
        defaulted(
            &VOLUME_ATTACHMENT,
            json!({ "metadata": stored("csi-1"), "spec": {
                "attacher": "driver.longhorn.io", "nodeName": "node-1",
                "source": { "persistentVolumeName": "pv-1" },
            } }),
        )
    }

    #[test]
    fn driver_node_and_volume_are_needed() {
        assert_eq!(refusals(&VOLUME_ATTACHMENT, &attachment()), [""; 0]);
        let texts = refusals(&VOLUME_ATTACHMENT, &json!({ "spec": {} }));
        assert_eq!(
            texts[..2],
            [
                "spec.attacher: Required value",
                "spec.source: Required value: must specify exactly one of inlineVolumeSpec and \
                 persistentVolumeName",
            ]
        );
        assert!(texts[2].starts_with("spec.nodeName: Invalid value: \"\": a lowercase RFC 1123 subdomain"));
    }

    #[test]
    fn an_inline_volume_is_a_csi_volume_without_a_claim() {
        let inline = with(
            attachment(),
            "/spec/source",
            json!({ "inlineVolumeSpec": {
                "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "hostPath": { "path": "/x" },
            } }),
        );
        assert_eq!(
            refusals(&VOLUME_ATTACHMENT, &inline),
            [
                "spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of \
                 inline volumes",
                "spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of \
                 inline volumes",
            ]
        );
    }

    #[test]
    fn only_the_status_changes() {
        let attached = with(attachment(), "/status/attached", json!(true));
        assert_eq!(update_refusals(&VOLUME_ATTACHMENT, &attachment(), &attached), [""; 0]);
        let moved = with(attachment(), "/spec/nodeName", json!("node-2"));
        assert_eq!(
            update_refusals(&VOLUME_ATTACHMENT, &attachment(), &moved),
            ["spec: Invalid value: {\"attacher\":\"driver.longhorn.io\",\"nodeName\":\"node-2\",\
                 \"source\":{\"persistentVolumeName\":\"pv-1\"}}: field is immutable"]
        );
        let wordy = with(attachment(), "/status/attachError", json!({ "message": "x".repeat(1025) }));
        assert_eq!(
            update_refusals(&VOLUME_ATTACHMENT, &attachment(), &wordy),
            ["status.attachError.message: Too long: may not be more than 1024 bytes"]
        );
    }

    #[test]
    fn the_row_says_what_is_attached_where() {
        assert_eq!(
            cells(&VOLUME_ATTACHMENT, &attachment()),
            ["csi-1", "driver.longhorn.io", "pv-1", "node-1", "false", "5m12s"]
        );
    }
}
