//! The built-in kinds Granary works with, in one place to import from.
//! They are k8s-openapi's; none is defined again here.

pub use k8s_openapi::ByteString;
pub use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
pub use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, ConfigMap, Container, Event, LocalObjectReference, Namespace, Node,
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus, PersistentVolumeSpec, PersistentVolumeStatus, Pod, PodSpec, PodStatus,
    ResourceRequirements, Secret, Service, ServiceAccount, TypedLocalObjectReference, TypedObjectReference,
    VolumeNodeAffinity, VolumeResourceRequirements,
};
pub use k8s_openapi::api::storage::v1::{
    CSIDriver, CSIDriverSpec, CSINode, CSINodeSpec, StorageClass, VolumeAttachment, VolumeAttachmentSource,
    VolumeAttachmentSpec, VolumeAttachmentStatus,
};
pub use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
pub use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    Condition, LabelSelector, MicroTime, ObjectMeta, OwnerReference, Time,
};
