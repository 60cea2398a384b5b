//! What the scheduler looks at: only what decides, in the words of the settings and kinds it comes from.

/// The settings that say where copies may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `storage-over-provisioning-percentage`: of the space that is not reserved.
    pub over_provisioning: u64,
    /// `storage-minimal-available-percentage`: of the disk, which stays free.
    pub minimal_available: u64,
    /// `replica-soft-anti-affinity`: two copies may share a node.
    pub share_node: bool,
    /// `replica-zone-soft-anti-affinity`: two copies may share a zone.
    pub share_zone: bool,
    /// `replica-disk-soft-anti-affinity`: two copies may share a disk.
    pub share_disk: bool,
    /// `allow-empty-node-selector-volume`: volumes without a selector may use nodes with tags.
    pub untagged_on_tagged_nodes: bool,
    /// `allow-empty-disk-selector-volume`: volumes without a selector may use disks with tags.
    pub untagged_on_tagged_disks: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            over_provisioning: 100,
            minimal_available: 25,
            share_node: false,
            share_zone: true,
            share_disk: true,
            untagged_on_tagged_nodes: true,
            untagged_on_tagged_disks: true,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    /// Nodes without a zone are in one zone together.
    pub zone: String,
    pub ready: bool,
    pub allows_scheduling: bool,
    pub evicting: bool,
    pub tags: Vec<String>,
    pub disks: Vec<Disk>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// The name in the node's spec, for people.
    pub name: String,
    /// `diskUUID`; empty until the node has looked at the disk.
    pub id: String,
    pub path: String,
    pub ready: bool,
    pub allows_scheduling: bool,
    pub evicting: bool,
    pub tags: Vec<String>,
    /// Bytes in all.
    pub maximum: u64,
    /// Bytes free.
    pub available: u64,
    /// Bytes promised to copies.
    pub scheduled: u64,
    /// Bytes left to others.
    pub reserved: u64,
}

/// A copy that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Bytes that are promised.
    pub size: u64,
    /// Bytes that are written at once, when the copy is filled from another.
    pub fill: u64,
    pub node_selector: Vec<String>,
    pub disk_selector: Vec<String>,
    /// The only node it may be on.
    pub only_node: Option<String>,
}

/// A copy of the same volume that is counted on, so neither failed nor being deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    pub node: String,
    pub disk: String,
    /// It shall leave, so it keeps no place for itself.
    pub evicting: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub node: String,
    pub disk: String,
    pub path: String,
}
