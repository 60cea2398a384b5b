//! Keys that Kubernetes, its CSI sidecars and the external-snapshotter use.
//! Binding, provisioning and snapshots look at these whatever the backend is.

pub const DEFAULT_STORAGE_CLASS_ANNOTATION: &str = "storageclass.kubernetes.io/is-default-class";
pub const DEFAULT_SNAPSHOT_CLASS_ANNOTATION: &str = "snapshot.storage.kubernetes.io/is-default-class";
/// Node that the scheduler picked for a claim that waits for its first consumer.
pub const SELECTED_NODE_ANNOTATION: &str = "volume.kubernetes.io/selected-node";
/// Driver that is asked to provision a claim.
pub const STORAGE_PROVISIONER_ANNOTATION: &str = "volume.kubernetes.io/storage-provisioner";
/// Driver that made a volume.
pub const PROVISIONED_BY_ANNOTATION: &str = "pv.kubernetes.io/provisioned-by";
pub const BIND_COMPLETED_ANNOTATION: &str = "pv.kubernetes.io/bind-completed";
pub const BOUND_BY_CONTROLLER_ANNOTATION: &str = "pv.kubernetes.io/bound-by-controller";

pub const CLAIM_PROTECTION_FINALIZER: &str = "kubernetes.io/pvc-protection";
pub const VOLUME_PROTECTION_FINALIZER: &str = "kubernetes.io/pv-protection";
pub const CLONE_SOURCE_FINALIZER: &str = "provisioner.storage.kubernetes.io/cloning-protection";
pub const SNAPSHOT_SOURCE_FINALIZER: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";

pub const REGION_LABEL: &str = "topology.kubernetes.io/region";
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
