//! Annotations by which pods ask for further networks and learn what they got.
//! The storage network is built on these.

/// Networks a pod joins: a JSON list of name, namespace and interface.
pub const NETWORKS_ANNOTATION: &str = "k8s.v1.cni.cncf.io/networks";
/// What a pod got: a JSON list of name, interface and addresses.
pub const NETWORK_STATUS_ANNOTATION: &str = "k8s.v1.cni.cncf.io/network-status";
/// The same in Multus before version 4.
pub const OLD_NETWORK_STATUS_ANNOTATION: &str = "k8s.v1.cni.cncf.io/networks-status";
/// Replaces a pod's first network.
pub const DEFAULT_NETWORK_ANNOTATION: &str = "v1.multus-cni.io/default-network";
/// Interface of the storage network.
pub const STORAGE_INTERFACE: &str = "lhnet1";
/// Interface of the network for RWX endpoints.
pub const ENDPOINT_INTERFACE: &str = "lhnet2";
