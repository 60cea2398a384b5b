//! What Kubernetes knows about the fields of built-in types and their JSON schemas do not say: how lists and
//! maps are owned and merged, and the defaults that are part of the schema.
//!
//! Owns these facts and nothing else. Types are named by the last three parts of their definition's name.

use super::{ListKind, PatchStrategy};

/// One field that is not simply replaced and owned as a whole (lists) or by its fields (objects).
pub struct Fact {
    definition: &'static str,
    field: &'static str,
    pub list: List,
    pub merge: Merge,
    /// The field's own answer to whether it is owned as a whole, over that of its type.
    pub atomic: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum List {
    Atomic,
    Set,
    Map(&'static [&'static str]),
}

/// `patchStrategy` and `patchMergeKey`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    Replace,
    /// Scalars, merged as a set.
    Values,
    By(&'static str),
    /// `merge,retainKeys`.
    ByRetaining(&'static str),
}

impl Fact {
    pub fn list_kind(&self) -> ListKind {
        match self.list {
            List::Atomic => ListKind::Atomic,
            List::Set => ListKind::Set,
            List::Map(keys) => ListKind::Map(keys.iter().map(|key| (*key).into()).collect()),
        }
    }

    pub fn patch(&self) -> PatchStrategy {
        let merge_key = self.merge_key().map(Into::into);
        PatchStrategy {
            merge: self.merge != Merge::Replace,
            merge_key,
            retain_keys: matches!(self.merge, Merge::ByRetaining(_)),
        }
    }

    pub fn merge_key(&self) -> Option<&'static str> {
        match self.merge {
            Merge::By(key) | Merge::ByRetaining(key) => Some(key),
            Merge::Replace | Merge::Values => None,
        }
    }
}

/// `core.v1.Pod` of `io.k8s.api.core.v1.Pod`.
fn short(definition: &str) -> &str {
    match definition.rmatch_indices('.').nth(2) {
        Some((at, _)) => &definition[at + 1..],
        None => definition,
    }
}

pub fn fact(definition: &str, field: &str) -> Option<&'static Fact> {
    let definition = short(definition);
    FACTS.iter().find(|fact| fact.definition == definition && fact.field == field)
}

/// Whether objects of this type are owned and replaced as a whole.
pub fn is_atomic(definition: &str) -> bool {
    ATOMIC_TYPES.contains(&short(definition))
}

pub fn default(definition: &str, field: &str) -> Option<&'static str> {
    let definition = short(definition);
    DEFAULTS.iter().find(|row| row.0 == definition && row.1 == field).map(|row| row.2)
}

/// The fields without which Kubernetes refuses a value of this type. Our types say more: fields that they
/// always write count as required there, and most of them may be left out.
pub fn required<'a>(definition: &str, listed: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let definition = short(definition);
    let mut names: Vec<&str> = listed
        .filter(|name| match *name {
            "metadata" => definition == "core.v1.Event",
            "name" => !NAME_IS_OPTIONAL.contains(&definition),
            _ => true,
        })
        .collect();
    if definition == "events.v1.Event" {
        names.push("eventTime");
    }
    names
}

const fn list(definition: &'static str, field: &'static str, list: List, merge: Merge) -> Fact {
    Fact { definition, field, list, merge, atomic: None }
}

/// A list of objects that are told apart, owned and merged by one key.
const fn by(definition: &'static str, field: &'static str, key: &'static [&'static str; 1]) -> Fact {
    list(definition, field, List::Map(key), Merge::By(key[0]))
}

const fn owned(definition: &'static str, field: &'static str, atomic: bool) -> Fact {
    Fact { definition, field, list: List::Atomic, merge: Merge::Replace, atomic: Some(atomic) }
}

const FACTS: &[Fact] = &[
    by("core.v1.Container", "env", &["name"]),
    list("core.v1.Container", "ports", List::Map(&["containerPort", "protocol"]), Merge::By("containerPort")),
    by("core.v1.Container", "volumeDevices", &["devicePath"]),
    by("core.v1.Container", "volumeMounts", &["mountPath"]),
    list("core.v1.ContainerRestartRuleOnExitCodes", "values", List::Set, Merge::Replace),
    by("core.v1.ContainerStatus", "allocatedResourcesStatus", &["name"]),
    by("core.v1.ContainerStatus", "volumeMounts", &["mountPath"]),
    by("core.v1.EphemeralContainer", "env", &["name"]),
    list(
        "core.v1.EphemeralContainer",
        "ports",
        List::Map(&["containerPort", "protocol"]),
        Merge::By("containerPort"),
    ),
    by("core.v1.EphemeralContainer", "volumeDevices", &["devicePath"]),
    by("core.v1.EphemeralContainer", "volumeMounts", &["mountPath"]),
    by("core.v1.NamespaceStatus", "conditions", &["type"]),
    list("core.v1.NodeAllocatableResourceClaimStatus", "containers", List::Set, Merge::Replace),
    list("core.v1.NodeSpec", "podCIDRs", List::Set, Merge::Values),
    by("core.v1.NodeStatus", "addresses", &["type"]),
    by("core.v1.NodeStatus", "conditions", &["type"]),
    owned("core.v1.PersistentVolumeClaimStatus", "allocatedResourceStatuses", false),
    by("core.v1.PersistentVolumeClaimStatus", "conditions", &["type"]),
    owned("core.v1.PersistentVolumeSpec", "claimRef", false),
    by("core.v1.PodSpec", "containers", &["name"]),
    by("core.v1.PodSpec", "ephemeralContainers", &["name"]),
    by("core.v1.PodSpec", "hostAliases", &["ip"]),
    by("core.v1.PodSpec", "imagePullSecrets", &["name"]),
    by("core.v1.PodSpec", "initContainers", &["name"]),
    owned("core.v1.PodSpec", "nodeSelector", true),
    list("core.v1.PodSpec", "resourceClaims", List::Map(&["name"]), Merge::ByRetaining("name")),
    by("core.v1.PodSpec", "schedulingGates", &["name"]),
    list(
        "core.v1.PodSpec",
        "topologySpreadConstraints",
        List::Map(&["topologyKey", "whenUnsatisfiable"]),
        Merge::By("topologyKey"),
    ),
    list("core.v1.PodSpec", "volumes", List::Map(&["name"]), Merge::ByRetaining("name")),
    by("core.v1.PodStatus", "conditions", &["type"]),
    list("core.v1.PodStatus", "hostIPs", List::Atomic, Merge::By("ip")),
    by("core.v1.PodStatus", "podIPs", &["ip"]),
    list("core.v1.PodStatus", "resourceClaimStatuses", List::Map(&["name"]), Merge::ByRetaining("name")),
    list("core.v1.ResourceRequirements", "claims", List::Map(&["name"]), Merge::Replace),
    list("core.v1.ResourceStatus", "resources", List::Map(&["resourceID"]), Merge::Replace),
    by("core.v1.ServiceAccount", "secrets", &["name"]),
    list("core.v1.ServiceSpec", "ports", List::Map(&["port", "protocol"]), Merge::By("port")),
    owned("core.v1.ServiceSpec", "selector", true),
    by("core.v1.ServiceStatus", "conditions", &["type"]),
    list("storage.v1.CSIDriverSpec", "volumeLifecycleModes", List::Set, Merge::Replace),
    by("storage.v1.CSINodeSpec", "drivers", &["name"]),
    list(
        "apiextensions.v1.CustomResourceDefinitionStatus",
        "conditions",
        List::Map(&["type"]),
        Merge::Replace,
    ),
    by("apiextensions.v1.JSONSchemaProps", "x-kubernetes-validations", &["rule"]),
    list("meta.v1.ObjectMeta", "finalizers", List::Set, Merge::Values),
    by("meta.v1.ObjectMeta", "ownerReferences", &["uid"]),
];

const ATOMIC_TYPES: &[&str] = &[
    "core.v1.ConfigMapKeySelector",
    "core.v1.EndpointAddress",
    "core.v1.EndpointPort",
    "core.v1.FileKeySelector",
    "core.v1.LocalObjectReference",
    "core.v1.NodeSelector",
    "core.v1.NodeSelectorTerm",
    "core.v1.ObjectFieldSelector",
    "core.v1.ObjectReference",
    "core.v1.ResourceFieldSelector",
    "core.v1.SecretKeySelector",
    "core.v1.SecretReference",
    "core.v1.TopologySelectorTerm",
    "core.v1.TypedLocalObjectReference",
    "meta.v1.LabelSelector",
    "meta.v1.OwnerReference",
];

const NAME_IS_OPTIONAL: &[&str] = &[
    "core.v1.ConfigMapEnvSource",
    "core.v1.ConfigMapKeySelector",
    "core.v1.ConfigMapProjection",
    "core.v1.ConfigMapVolumeSource",
    "core.v1.LocalObjectReference",
    "core.v1.SecretEnvSource",
    "core.v1.SecretKeySelector",
    "core.v1.SecretProjection",
];

const DEFAULTS: &[(&str, &str, &str)] = &[
    ("core.v1.AzureDiskVolumeSource", "cachingMode", "ReadWrite"),
    ("core.v1.AzureDiskVolumeSource", "fsType", "ext4"),
    ("core.v1.AzureDiskVolumeSource", "kind", "Shared"),
    ("core.v1.ContainerPort", "protocol", "TCP"),
    ("core.v1.ISCSIPersistentVolumeSource", "iscsiInterface", "default"),
    ("core.v1.ISCSIVolumeSource", "iscsiInterface", "default"),
    ("core.v1.RBDPersistentVolumeSource", "keyring", "/etc/ceph/keyring"),
    ("core.v1.RBDPersistentVolumeSource", "pool", "rbd"),
    ("core.v1.RBDPersistentVolumeSource", "user", "admin"),
    ("core.v1.RBDVolumeSource", "keyring", "/etc/ceph/keyring"),
    ("core.v1.RBDVolumeSource", "pool", "rbd"),
    ("core.v1.RBDVolumeSource", "user", "admin"),
    ("core.v1.ScaleIOPersistentVolumeSource", "fsType", "xfs"),
    ("core.v1.ScaleIOPersistentVolumeSource", "storageMode", "ThinProvisioned"),
    ("core.v1.ScaleIOVolumeSource", "fsType", "xfs"),
    ("core.v1.ScaleIOVolumeSource", "storageMode", "ThinProvisioned"),
    ("core.v1.ServicePort", "protocol", "TCP"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_by_the_full_name_of_a_type() {
        let ports = fact("io.k8s.api.core.v1.Container", "ports").expect("ports are a map list");
        assert_eq!(ports.list_kind(), ListKind::Map(vec!["containerPort".into(), "protocol".into()]));
        assert_eq!(ports.patch().merge_key.as_deref(), Some("containerPort"));
        assert!(fact("io.k8s.api.core.v1.PodSpec", "tolerations").is_none());
        assert!(fact("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers").is_some());
        assert!(is_atomic("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"));
        assert_eq!(default("io.k8s.api.core.v1.ServicePort", "protocol"), Some("TCP"));
        let required = |name: &str, listed: &[&'static str]| required(name, listed.iter().copied());
        assert_eq!(required("io.k8s.api.storage.v1.CSINode", &["metadata", "spec"]), ["spec"]);
        assert_eq!(required("io.k8s.api.core.v1.SecretKeySelector", &["key", "name"]), ["key"]);
        assert_eq!(required("io.k8s.api.core.v1.Container", &["name"]), ["name"]);
    }
}
