//! VirtualMachineImageDownloader: a temporary server from which an image can be fetched as a file.
//! Deleted once the download is done.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::TimedCondition;
use crate::wire::{Extra, closed_enum};

closed_enum! {
    /// Form in which the image is served.
    pub enum CompressType {
        Qcow2 = "qcow2",
    }
}

closed_enum! {
    /// Whether the file can be fetched.
    pub enum DownloaderStatus {
        Progressing = "Progressing",
        Ready = "Ready",
    }
}

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "harvesterhci.io",
    version = "v1beta1",
    kind = "VirtualMachineImageDownloader",
    plural = "virtualmachineimagedownloaders",
    namespaced,
    status = "VirtualMachineImageDownloaderStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A temporary download server for an image.",
    shortname = "vmimagedownloader",
    shortname = "vmimagedownloaders",
    printcolumn(name = "VMImage", type_ = "string", json_path = ".spec.imageName"),
    printcolumn(name = "CompressType", type_ = "string", json_path = ".spec.compressType"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status")
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineImageDownloaderSpec {
    /// An image in the same namespace.
    pub image_name: String,
    #[schemars(extend("default" = "qcow2"))]
    pub compress_type: Option<CompressType>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineImageDownloaderStatus {
    #[schemars(extend("default" = "Progressing"))]
    pub status: Option<DownloaderStatus>,
    pub download_url: Option<String>,
    /// Reconciling, Ready.
    #[schemars(extend("default" = []))]
    pub conditions: Option<Vec<TimedCondition>>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
