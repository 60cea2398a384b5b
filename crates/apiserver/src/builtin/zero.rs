//! The zero value of each built-in kind: the structs that are there before a client says anything.
//!
//! Ownership of a new object counts from here: a struct that always exists is nobody's, only what is in it.

use serde_json::{Value, json};

use super::Builtin;

pub fn of(kind: &Builtin) -> Value {
    match (kind.group, kind.kind) {
        ("", "Node") => json!({
            "spec": {},
            "status": { "daemonEndpoints": { "kubeletEndpoint": { "Port": 0 } }, "nodeInfo": {} },
        }),
        ("", "PersistentVolumeClaim") => json!({ "spec": { "resources": {} }, "status": {} }),
        ("", "Pod") => json!({ "spec": { "containers": null }, "status": {} }),
        ("", "Service") => json!({ "spec": {}, "status": { "loadBalancer": {} } }),
        // A namespace gets its finalizer from the server, not from whoever makes it.
        ("", "Namespace") => json!({ "spec": { "finalizers": ["kubernetes"] }, "status": {} }),
        ("", "PersistentVolume") => json!({ "spec": {}, "status": {} }),
        ("", "Event") => json!({
            "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            "eventTime": null, "reportingComponent": "", "reportingInstance": "",
        }),
        ("events.k8s.io", _) => json!({
            "regarding": {}, "deprecatedSource": {}, "eventTime": null,
            "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null,
        }),
        ("storage.k8s.io", "VolumeAttachment") => json!({
            "spec": { "attacher": "", "source": {}, "nodeName": "" }, "status": { "attached": false },
        }),
        ("storage.k8s.io", "CSINode") => json!({ "spec": { "drivers": null } }),
        ("apiextensions.k8s.io", _) => json!({
            "spec": { "group": "", "names": { "plural": "", "kind": "" }, "scope": "", "versions": null },
            "status": { "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": null },
        }),
        ("storage.k8s.io", "CSIDriver") | ("coordination.k8s.io", _) => json!({ "spec": {} }),
        _ => json!({}),
    }
}
