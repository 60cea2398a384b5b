//! The pod of an instance manager: where it runs, what it may see, and on which networks.

use granary_api::constants::cni::{NETWORKS_ANNOTATION, STORAGE_INTERFACE};
use granary_api::constants::longhorn::{
    COMPONENT_LABEL, INSTANCE_MANAGER_TYPE_LABEL, MANAGED_BY_LABEL, NODE_LABEL,
};
use granary_api::longhorn::InstanceManager;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

/// What a pod is made from besides the object it is for.
#[derive(Debug, Clone)]
pub struct Shape {
    pub port: u16,
    /// Directory of the certificates on the node.
    pub tls_dir: Option<String>,
    /// Where replicas are.
    pub data_path: String,
    /// `<namespace>/<name>`, or empty.
    pub storage_network: String,
}

pub fn pod(manager: &InstanceManager, shape: &Shape) -> Result<Pod, serde_json::Error> {
    let node = manager.spec.node_id.clone().unwrap_or_default();
    let mut command: Vec<Value> = ["granary", "instance-manager", "--listen"].map(Value::from).to_vec();
    // Without certificates it serves loopback addresses only; it refuses any other by itself.
    command.push(json!(format!("$(POD_IP):{}", shape.port)));
    if let Some(directory) = &shape.tls_dir {
        command.extend([json!("--tls-dir"), json!(directory)]);
    }
    let hosts = [
        ("dev", "/dev"),
        ("data", shape.data_path.as_str()),
        ("run", "/run/granary"),
        ("keys", "/var/lib/granary"),
    ];
    let hosts = hosts.into_iter().chain(shape.tls_dir.as_deref().map(|directory| ("tls", directory)));
    let mounts: Vec<Value> = hosts
        .clone()
        .map(|(name, path)| json!({ "name": name, "mountPath": path, "mountPropagation": "Bidirectional" }))
        .collect();
    let volumes: Vec<Value> =
        hosts.map(|(name, path)| json!({ "name": name, "hostPath": { "path": path } })).collect();
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": manager.name_any(),
            "namespace": manager.namespace(),
            "labels": {
                COMPONENT_LABEL: "instance-manager", MANAGED_BY_LABEL: "longhorn-manager",
                NODE_LABEL: node, INSTANCE_MANAGER_TYPE_LABEL: "aio",
            },
            "annotations": networks(&shape.storage_network),
            "ownerReferences": [manager.controller_owner_ref(&())],
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "hostPID": true,
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{
                "name": "instance-manager",
                "image": manager.spec.image.as_deref().unwrap_or("granary"),
                "command": command,
                "env": [{ "name": "POD_IP", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }],
                "securityContext": { "privileged": true },
                "volumeMounts": mounts,
            }],
            "volumes": volumes,
        },
    }))
}

/// Pods are compared by this text, so it is spelled exactly as others spell it.
fn networks(storage_network: &str) -> Value {
    match storage_network.split_once('/') {
        Some((namespace, name)) => json!({
            NETWORKS_ANNOTATION: format!(
                r#"[{{"namespace": "{namespace}", "name": "{name}", "interface": "{STORAGE_INTERFACE}"}}]"#
            ),
        }),
        None => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_on_its_node_and_asks_for_the_storage_network_in_the_usual_words() {
        let mut manager = InstanceManager::new("instance-manager-n1", Default::default());
        manager.spec.node_id = Some("n1".into());
        manager.metadata.uid = Some("u".into());
        let shape = Shape {
            port: 8500,
            tls_dir: Some("/tls".into()),
            data_path: "/var/lib/longhorn/".into(),
            storage_network: "net/storage".into(),
        };
        let made = pod(&manager, &shape).unwrap();
        assert_eq!(
            made.annotations()[NETWORKS_ANNOTATION],
            r#"[{"namespace": "net", "name": "storage", "interface": "lhnet1"}]"#
        );
        assert_eq!(made.labels()[NODE_LABEL], "n1");
        let spec = made.spec.unwrap();
        assert_eq!(spec.node_name.as_deref(), Some("n1"));
        let command = spec.containers[0].command.clone().unwrap();
        assert_eq!(
            command,
            ["granary", "instance-manager", "--listen", "$(POD_IP):8500", "--tls-dir", "/tls"]
        );
        let made = pod(&manager, &Shape { storage_network: String::new(), ..shape }).unwrap();
        assert!(made.annotations().is_empty());
    }
}
