//! Requests and limits of containers and pods.
//!
//! Owns which resources there are and how requests and limits relate. Must never count what a node has.

use granary_api::names;
use granary_api::quantity::Quantity;

use super::super::field::Field;
use super::super::quantity;
use crate::error::FieldError;

const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
const HUGE_PAGES: &str = "hugepages-";

/// The requests and limits of one container.
pub fn check(resources: &Field, errors: &mut Vec<FieldError>) {
    check_with(resources, check_name, errors);
}

/// The requests and limits of a pod as a whole.
pub fn check_pod(spec: &Field, errors: &mut Vec<FieldError>) {
    let resources = spec.at("resources");
    if resources.at("claims").is_set() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(resources.at("claims").forbidden(detail));
    }
    check_with(&resources, check_pod_name, errors);
    for (name, amount) in spec.at("overhead").entries() {
        check_name(name, &amount, errors);
        quantity::check(&amount, errors);
    }
}

fn check_with(
    resources: &Field,
    check_name: fn(&str, &Field, &mut Vec<FieldError>),
    errors: &mut Vec<FieldError>,
) {
    let (requests, limits) = (resources.at("requests"), resources.at("limits"));
    for (name, limit) in limits.entries() {
        check_name(name, &limit, errors);
        check_amount(name, &limit, errors);
    }
    for (name, request) in requests.entries() {
        check_name(name, &request, errors);
        let amount = check_amount(name, &request, errors);
        let limit = quantity::parse(limits.entry(name).value);
        match (amount, limit) {
            (Some(amount), Some(limit)) if !overcommits(name) && amount != limit => {
                refuse(&requests, amount, &format!("must be equal to {name} limit of {limit}"), errors);
            }
            (Some(amount), Some(limit)) if amount > limit => {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                refuse(&requests, amount, &detail, errors);
            }
            (_, None) if !overcommits(name) => {
                errors.push(limits.required("Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
    }
    let names = || requests.entries().chain(limits.entries()).map(|(name, _)| name);
    if names().any(|name| name.starts_with(HUGE_PAGES)) && !names().any(|n| matches!(n, "cpu" | "memory")) {
        errors.push(resources.forbidden("HugePages require cpu or memory"));
    }
}

fn refuse(at: &Field, amount: Quantity, detail: &str, errors: &mut Vec<FieldError>) {
    errors.push(FieldError::invalid(at.path.as_str(), amount.to_string(), detail));
}

/// Resources that Kubernetes itself knows: all without a prefix, or with one of its own.
fn is_native(name: &str) -> bool {
    match name.split_once('/') {
        None => true,
        Some((prefix, _)) => prefix == "kubernetes.io" || prefix.ends_with(".kubernetes.io"),
    }
}

/// Whether more can be promised than there is.
fn overcommits(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}

fn check_amount(name: &str, amount: &Field, errors: &mut Vec<FieldError>) -> Option<Quantity> {
    let quantity = quantity::check(amount, errors)?;
    if !is_native(name) && quantity.millis() % 1000 != 0 {
        errors.push(FieldError::invalid(amount.path.as_str(), quantity.to_string(), "must be an integer"));
    }
    Some(quantity)
}

fn check_name(name: &str, amount: &Field, errors: &mut Vec<FieldError>) {
    let mut complaints = names::label_key(name);
    let huge = name.starts_with(HUGE_PAGES);
    if complaints.is_empty() && !name.contains('/') && !huge && !STANDARD.contains(&name) {
        complaints.push("must be a standard resource type or fully qualified".into());
    }
    if !name.contains('/') && !huge && !matches!(name, "cpu" | "memory" | "ephemeral-storage") {
        complaints.push("must be a standard resource for containers".into());
    } else if !is_native(name) && name.starts_with("requests.") {
        complaints.push("doesn't follow extended resource name standard".into());
    }
    errors.extend(complaints.into_iter().map(|text| FieldError::invalid(amount.path.as_str(), name, text)));
}

fn check_pod_name(name: &str, amount: &Field, errors: &mut Vec<FieldError>) {
    if !matches!(name, "cpu" | "memory") && !name.starts_with(HUGE_PAGES) {
        errors.push(FieldError::not_supported(amount.path.as_str(), name, &["cpu", HUGE_PAGES, "memory"]));
    }
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use crate::builtin::testing::{defaulted, refusals, with};
    use serde_json::{Value, json};

    fn with_resources(resources: Value) -> Vec<String> {
        refusals(&POD, &defaulted(&POD, with(pod(), "/spec/containers/0/resources", resources)))
    }

    #[test]
    fn requests_stay_within_limits() {
        let fine = json!({ "requests": { "cpu": "500m" }, "limits": { "cpu": "1", "example.com/gpu": 2 } });
        assert_eq!(with_resources(fine), [""; 0]);
        let path = "spec.containers[0].resources";
        assert_eq!(
            with_resources(json!({ "requests": { "memory": "2Gi" }, "limits": { "memory": "1Gi" } })),
            [format!(
                "{path}.requests: Invalid value: \"2Gi\": must be less than or equal to memory limit of 1Gi"
            )]
        );
        assert_eq!(
            with_resources(json!({ "requests": { "example.com/gpu": "1" } })),
            [format!("{path}.limits: Required value: Limit must be set for non overcommitable resources")]
        );
        assert_eq!(
            with_resources(json!({ "limits": { "disk": "1", "cpu": "-1" } })),
            [
                format!("{path}.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"),
                format!(
                    "{path}.limits[disk]: Invalid value: \"disk\": must be a standard resource type or fully qualified"
                ),
                format!(
                    "{path}.limits[disk]: Invalid value: \"disk\": must be a standard resource for containers"
                ),
                format!("{path}.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"),
                format!(
                    "{path}.requests[disk]: Invalid value: \"disk\": must be a standard resource type or fully \
                     qualified"
                ),
                format!(
                    "{path}.requests[disk]: Invalid value: \"disk\": must be a standard resource for containers"
                ),
            ]
        );
    }
}
