//! BackupTarget: a backup store and the credentials for it.
//! The one named `default` is used when a volume names none.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Condition;
use crate::wire::Extra;

#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "longhorn.io",
    version = "v1beta2",
    kind = "BackupTarget",
    plural = "backuptargets",
    namespaced,
    status = "BackupTargetStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A backup store.",
    shortname = "lhbt",
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.backupTargetURL"),
    printcolumn(name = "Credential", type_ = "string", json_path = ".spec.credentialSecret"),
    printcolumn(name = "LastBackupAt", type_ = "string", json_path = ".spec.pollInterval"),
    printcolumn(name = "Available", type_ = "boolean", json_path = ".status.available"),
    printcolumn(name = "LastSyncedAt", type_ = "string", json_path = ".status.lastSyncedAt")
)]
#[serde(rename_all = "camelCase")]
pub struct BackupTargetSpec {
    /// s3, nfs, cifs, azblob or file system URL.
    #[serde(rename = "backupTargetURL")]
    pub backup_target_url: Option<String>,
    /// Secret with the keys of the store.
    pub credential_secret: Option<String>,
    /// Time between looks, such as `5m0s`; 0 for none.
    pub poll_interval: Option<String>,
    /// Asks for a look at the backup store.
    pub sync_requested_at: Option<Time>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupTargetStatus {
    /// Node whose manager is responsible.
    #[serde(rename = "ownerID")]
    pub owner_id: Option<String>,
    pub available: Option<bool>,
    /// Unavailable.
    pub conditions: Option<Vec<Condition>>,
    pub last_synced_at: Option<Time>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub extra: Extra,
}
