//! Where data reaches the processes of an instance manager. With a storage network that is an address of that network
//! or none: traffic that shall be kept apart must not quietly take the other way.

use granary_api::constants::cni::{NETWORK_STATUS_ANNOTATION, OLD_NETWORK_STATUS_ANNOTATION};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::Deserialize;

/// What a pod got of one network.
#[derive(Deserialize)]
struct Joined {
    #[serde(default)]
    name: String,
    #[serde(default)]
    ips: Vec<String>,
}

/// The first address on `network` (`<namespace>/<name>`) of the same family as the pod's own.
pub fn storage_ip(network: &str, pod: &Pod, pod_ip: &str) -> Result<String, String> {
    if network.is_empty() {
        return Ok(pod_ip.to_owned());
    }
    let annotations = pod.annotations();
    let told = annotations
        .get(NETWORK_STATUS_ANNOTATION)
        .or_else(|| annotations.get(OLD_NETWORK_STATUS_ANNOTATION))
        .ok_or_else(|| format!("pod {} has not been told of its networks yet", pod.name_any()))?;
    let joined: Vec<Joined> = serde_json::from_str(told).map_err(|error| {
        format!("what pod {} was told of its networks is not understood: {error}", pod.name_any())
    })?;
    let joined = joined
        .into_iter()
        .find(|joined| joined.name == network)
        .ok_or_else(|| format!("pod {} is not on the storage network {network}", pod.name_any()))?;
    let is_sixth = |ip: &str| ip.contains(':');
    let same_family = joined.ips.iter().find(|ip| is_sixth(ip) == is_sixth(pod_ip));
    same_family
        .or(joined.ips.first())
        .cloned()
        .ok_or_else(|| format!("pod {} has no address on the storage network {network}", pod.name_any()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(annotation: &str, text: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.name = Some("im".into());
        pod.metadata.annotations = Some([(annotation.to_owned(), text.to_owned())].into());
        pod
    }

    #[test]
    fn an_address_of_the_named_network_is_taken_and_none_of_another() {
        let text = r#"[{"name":"cluster","ips":["10.0.0.9"],"default":true},
                       {"name":"net/storage","interface":"lhnet1","ips":["2001:db8::1","192.168.7.5"]}]"#;
        for annotation in [NETWORK_STATUS_ANNOTATION, OLD_NETWORK_STATUS_ANNOTATION] {
            let pod = pod(annotation, text);
            assert_eq!(storage_ip("net/storage", &pod, "10.0.0.9").as_deref(), Ok("192.168.7.5"));
            assert_eq!(storage_ip("net/storage", &pod, "fd00::9").as_deref(), Ok("2001:db8::1"));
            assert_eq!(storage_ip("", &pod, "10.0.0.9").as_deref(), Ok("10.0.0.9"));
        }
    }

    #[test]
    fn nothing_falls_back_to_the_other_network() {
        let refused = |pod: &Pod| storage_ip("net/storage", pod, "10.0.0.9").unwrap_err();
        assert!(refused(&Pod::default()).contains("has not been told"));
        assert!(refused(&pod(NETWORK_STATUS_ANNOTATION, "{")).contains("is not understood"));
        assert!(refused(&pod(NETWORK_STATUS_ANNOTATION, "[]")).contains("is not on the storage network"));
        let empty = r#"[{"name":"net/storage"}]"#;
        assert!(refused(&pod(NETWORK_STATUS_ANNOTATION, empty)).contains("has no address"));
    }
}
