//! VirtualMachineImage: a disk image that root disks are made from.
//! The conditions are its state machine. Upstream writes its status plainly.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{BackupTargetRef, Condition};
use crate::wire::{Extra, closed_enum};

closed_enum! {
    /// What holds the image: a Longhorn backing image, or a volume of any storage class.
    pub enum ImageBackend {
        BackingImage = "backingimage",
        Cdi = "cdi",
    }
}

closed_enum! {
    /// Where the image comes from.
    #[derive(Default)]
    pub enum ImageSourceType {
        #[default]
        Download = "download",
        Upload = "upload",
        ExportFromVolume = "export-from-volume",
        Restore = "restore",
        Clone = "clone",
    }
}

closed_enum! {
    /// What a clone of an image does to its bytes.
    #[derive(Default)]
    pub enum CryptoOperation {
        #[default]
        Encrypt = "encrypt",
        Decrypt = "decrypt",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "harvesterhci.io",
    version = "v1beta1",
    kind = "VirtualMachineImage",
    plural = "virtualmachineimages",
    namespaced,
    status = "VirtualMachineImageStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A disk image that root disks are made from.",
    shortname = "vmimage",
    shortname = "vmimages",
    printcolumn(name = "BACKEND", type_ = "string", json_path = ".spec.backend"),
    printcolumn(name = "DISPLAY-NAME", type_ = "string", json_path = ".spec.displayName"),
    printcolumn(name = "SIZE", type_ = "integer", json_path = ".status.size"),
    printcolumn(name = "VIRTUALSIZE", type_ = "integer", json_path = ".status.virtualSize"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineImageSpec {
    #[schemars(extend("default" = "backingimage"))]
    pub backend: Option<ImageBackend>,
    pub description: Option<String>,
    /// Unique in the namespace; a valid label value.
    pub display_name: String,
    pub source_type: ImageSourceType,
    /// The volume to export.
    pub pvc_name: Option<String>,
    pub pvc_namespace: Option<String>,
    /// For download and restore only.
    pub url: Option<String>,
    /// SHA-512 of the file as downloaded, in hex.
    pub checksum: Option<String>,
    /// Parameters of the storage class made for a backing image.
    pub storage_class_parameters: Option<BTreeMap<String, String>>,
    /// How often a failed import is tried again.
    #[schemars(extend("default" = 3), range(min = 0, max = 10))]
    pub retry: Option<i64>,
    /// Required for clone.
    pub security_parameters: Option<SecurityParameters>,
    /// Storage class that holds the image (cdi backend).
    pub target_storage_class_name: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityParameters {
    pub crypto_operation: CryptoOperation,
    pub source_image_name: String,
    pub source_image_namespace: String,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineImageStatus {
    /// The url of the attempt in course.
    pub applied_url: Option<String>,
    /// Percent; 100 only after success.
    pub progress: Option<i64>,
    /// Bytes as transferred.
    pub size: Option<i64>,
    /// Bytes as seen by a guest.
    pub virtual_size: Option<i64>,
    /// Storage class for disks made from this image.
    pub storage_class_name: Option<String>,
    pub target_storage_class_name: Option<String>,
    pub backup_target: Option<BackupTargetRef>,
    /// Attempts that failed.
    #[schemars(extend("default" = 0), range(min = 0))]
    pub failed: Option<i64>,
    pub last_failed_time: Option<String>,
    /// Initialized, Imported, RetryLimitExceeded, BackingImageMissing, MetadataReady.
    pub conditions: Option<Vec<Condition>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
