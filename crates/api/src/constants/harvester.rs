//! Keys of Harvester: what ties images, volumes, storage classes and virtual machines together.
//! Its user interface and its guest-cluster driver read them.

/// Image: copy of the display name, for the search by it.
pub const IMAGE_DISPLAY_NAME_LABEL: &str = "harvesterhci.io/imageDisplayName";
/// Volume, claim template, backing image, snapshot: `namespace/name` of the image it came from.
pub const IMAGE_ID_ANNOTATION: &str = "harvesterhci.io/imageId";
/// Image, snapshot: the storage class that was chosen.
pub const STORAGE_CLASS_NAME_ANNOTATION: &str = "harvesterhci.io/storageClassName";
/// VolumeSnapshot: driver of its source.
pub const STORAGE_PROVISIONER_ANNOTATION: &str = "harvesterhci.io/storageProvisioner";
/// Claim: holds an image and must not be changed or deleted.
pub const GOLDEN_IMAGE_ANNOTATION: &str = "harvesterhci.io/goldenImage";
/// Virtual machine: JSON list of the claims it needs.
pub const VOLUME_CLAIM_TEMPLATES_ANNOTATION: &str = "harvesterhci.io/volumeClaimTemplates";
/// Virtual machine: claims to delete together with it.
pub const REMOVED_CLAIMS_ANNOTATION: &str = "harvesterhci.io/removedPersistentVolumeClaims";
/// Image: for an upgrade of the operating system.
pub const OS_UPGRADE_IMAGE_ANNOTATION: &str = "harvesterhci.io/os-upgrade-image";
/// Storage class: must not be deleted.
pub const RESERVED_STORAGE_CLASS_ANNOTATION: &str = "harvesterhci.io/is-reserved-storageclass";
/// Claim with a file system that serves as the disk of a virtual machine.
pub const VOLUME_FOR_VM_ANNOTATION: &str = "harvesterhci.io/volumeForVirtualMachine";
/// Backup: whether the guest's file systems could be frozen.
pub const SNAPSHOT_FREEZE_ANNOTATION: &str = "harvesterhci.io/snapshotFreezeFS";
pub const SNAPSHOT_REVISION_ANNOTATION: &str = "harvesterhci.io/snapRevise";
/// Backup: the schedule that made it.
pub const SCHEDULED_BACKUP_ANNOTATION: &str = "harvesterhci.io/svmbackupId";
pub const IMAGE_TYPE_LABEL: &str = "harvesterhci.io/image-type";
pub const OS_TYPE_LABEL: &str = "harvesterhci.io/os-type";
pub const IMAGE_NAME_ANNOTATION: &str = "harvesterhci.io/image-name";
/// Template version: its template.
pub const TEMPLATE_ID_LABEL: &str = "template.harvesterhci.io/templateID";
/// Claim, virtual machine: the restore that made it.
pub const RESTORE_NAME_ANNOTATION: &str = "restore.harvesterhci.io/name";
pub const LAST_RESTORE_UID_ANNOTATION: &str = "restore.harvesterhci.io/last-restore-uid";

/// Storage class: what CDI shall use, in place of what it would find out.
pub const FILESYSTEM_OVERHEAD_ANNOTATION: &str = "cdi.harvesterhci.io/filesystemOverhead";
pub const CLONE_STRATEGY_ANNOTATION: &str = "cdi.harvesterhci.io/storageProfileCloneStrategy";
pub const SNAPSHOT_CLASS_ANNOTATION: &str = "cdi.harvesterhci.io/storageProfileVolumeSnapshotClass";
pub const MODES_ANNOTATION: &str = "cdi.harvesterhci.io/storageProfileVolumeModeAccessModes";

/// Setting: how far a change of the storage network has come.
pub const STORAGE_NETWORK_HASH_ANNOTATION: &str = "storage-network.settings.harvesterhci.io/hash";
pub const STORAGE_NETWORK_ATTACHMENT_ANNOTATION: &str =
    "storage-network.settings.harvesterhci.io/net-attach-def";
pub const STORAGE_NETWORK_OLD_ATTACHMENT_ANNOTATION: &str =
    "storage-network.settings.harvesterhci.io/old-net-attach-def";
/// Setting: the same for the network of RWX volumes.
pub const RWX_NETWORK_HASH_ANNOTATION: &str = "rwx-network.settings.harvesterhci.io/hash";
pub const RWX_NETWORK_ATTACHMENT_ANNOTATION: &str = "rwx-network.settings.harvesterhci.io/net-attach-def";

/// Snapshots of guest clusters: storage class and volume mode on the host.
pub const SNAPSHOT_HOST_CLASS_LABEL: &str = "harvesterhci.io/snapHostSC";
pub const SNAPSHOT_HOST_MODE_LABEL: &str = "harvesterhci.io/snapHostVolumeMode";

pub const SYSTEM_NAMESPACE: &str = "harvester-system";
pub const GUEST_DRIVER_NAME: &str = "driver.harvesterhci.io";
pub const LVM_DRIVER_NAME: &str = "lvm.driver.harvesterhci.io";
/// Storage class of upgrade images.
pub const RESERVED_CLASS_NAME: &str = "longhorn-static";
/// ConfigMap and key with further CA certificates for imports.
pub const ADDITIONAL_CA_CONFIG_MAP: (&str, &str) = ("harvester-additional-ca-cdi", "ca.pem");
