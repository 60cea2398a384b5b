//! Keys of Longhorn: labels on its objects and pods, names of settings that Granary looks at, name rules.
//! Defaults of settings are with the code that owns them.

/// The one finalizer of all its kinds.
pub const FINALIZER: &str = "longhorn.io";
pub const SYSTEM_NAMESPACE: &str = "longhorn-system";
pub const DRIVER_NAME: &str = "driver.longhorn.io";
/// BackupTarget that is meant when none is named.
pub const DEFAULT_BACKUP_TARGET: &str = "default";

/// Engine, replica, snapshot: the volume it belongs to. Has no prefix.
pub const VOLUME_LABEL: &str = "longhornvolume";
pub const COMPONENT_LABEL: &str = "longhorn.io/component";
pub const MANAGED_BY_LABEL: &str = "longhorn.io/managed-by";
pub const NODE_LABEL: &str = "longhorn.io/node";
pub const DISK_UUID_LABEL: &str = "longhorn.io/disk-uuid";
pub const DATA_ENGINE_LABEL: &str = "longhorn.io/data-engine";
pub const ENGINE_IMAGE_LABEL: &str = "longhorn.io/engine-image";
pub const INSTANCE_MANAGER_TYPE_LABEL: &str = "longhorn.io/instance-manager-type";
pub const INSTANCE_MANAGER_IMAGE_LABEL: &str = "longhorn.io/instance-manager-image";
pub const SHARE_MANAGER_LABEL: &str = "longhorn.io/share-manager";
pub const BACKING_IMAGE_LABEL: &str = "longhorn.io/backing-image";
pub const BACKING_IMAGE_DATA_SOURCE_LABEL: &str = "longhorn.io/backing-image-data-source";
pub const BACKUP_TARGET_LABEL: &str = "backup-target";
pub const BACKUP_VOLUME_LABEL: &str = "backup-volume";
pub const SNAPSHOT_FOR_CLONING_LABEL: &str = "longhorn.io/for-cloning-volume";

/// Kubernetes node: make the default disk ("true"), or disks as annotated ("config").
pub const CREATE_DEFAULT_DISK_LABEL: &str = "node.longhorn.io/create-default-disk";
pub const DEFAULT_DISKS_ANNOTATION: &str = "node.longhorn.io/default-disks-config";
pub const DEFAULT_NODE_TAGS_ANNOTATION: &str = "node.longhorn.io/default-node-tags";
/// Persistent volume: why its replicas cannot be placed.
pub const SCHEDULING_ERROR_ANNOTATION: &str = "longhorn.io/volume-scheduling-error";

pub const STORAGE_NETWORK_SETTING: &str = "storage-network";
pub const ENDPOINT_NETWORK_SETTING: &str = "endpoint-network-for-rwx-volume";

/// `<volume>-e-<n>`, `<volume>-r-<random>`: names of engines and replicas.
pub const ENGINE_SUFFIX: &str = "-e";
pub const REPLICA_SUFFIX: &str = "-r";
pub const ENGINE_IMAGE_PREFIX: &str = "ei-";
pub const INSTANCE_MANAGER_PREFIX: &str = "instance-manager-";
pub const SHARE_MANAGER_PREFIX: &str = "share-manager-";
pub const BACKING_IMAGE_DATA_SOURCE_PREFIX: &str = "backing-image-ds-";
