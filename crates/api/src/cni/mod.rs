//! Group `k8s.cni.cncf.io/v1`: networks that pods may join besides the cluster's own.
//! On a cluster Multus reads these objects; on one machine the node agent does. Types only.

mod network_attachment_definition;

pub use network_attachment_definition::{NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec};

pub const GROUP: &str = "k8s.cni.cncf.io";
pub const VERSION: &str = "v1";
