//! The quality-of-service class that a pod's requests and limits put it in.
//!
//! Owns the three-way decision. Must never enforce anything.

use std::collections::BTreeMap;

use granary_api::quantity::Quantity;
use serde_json::Value;

use super::super::access::{entries_at, is_set, list_at};
use super::super::quantity;

const COUNTED: [&str; 2] = ["cpu", "memory"];

/// `Guaranteed` when all has equal requests and limits, `BestEffort` when nothing has any, `Burstable` between.
pub fn class(pod: &Value) -> &'static str {
    let (mut requests, mut limits) = (Sum::default(), Sum::default());
    let mut all_limited = true;
    if is_set(pod, "/spec/resources") {
        requests.add(pod, "/spec/resources/requests");
        all_limited = limits.add(pod, "/spec/resources/limits") == COUNTED.len();
    } else {
        let containers = list_at(pod, "/spec/containers").iter().chain(list_at(pod, "/spec/initContainers"));
        for container in containers {
            requests.add(container, "/resources/requests");
            all_limited &= limits.add(container, "/resources/limits") == COUNTED.len();
        }
    }
    match (requests.0.is_empty() && limits.0.is_empty(), all_limited && requests.0 == limits.0) {
        (true, _) => "BestEffort",
        (_, true) => "Guaranteed",
        _ => "Burstable",
    }
}

#[derive(Default)]
struct Sum<'a>(BTreeMap<&'a str, Quantity>);

impl<'a> Sum<'a> {
    /// Adds what counts, and says how many resources that were.
    fn add(&mut self, holder: &'a Value, pointer: &str) -> usize {
        let mut found = 0;
        for (resource, amount) in entries_at(holder, pointer) {
            let amount = quantity::parse(amount).filter(|amount| *amount > Quantity::ZERO);
            let Some(amount) = amount.filter(|_| COUNTED.contains(&resource)) else { continue };
            let sum = self.0.entry(resource).or_insert(Quantity::ZERO);
            *sum = sum.checked_add(amount).unwrap_or(*sum);
            found += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let full = json!({ "cpu": "1", "memory": "1Gi" });
        let same = json!({ "requests": full, "limits": { "cpu": "1000m", "memory": "1024Mi" } });
        for (resources, wanted) in [
            (vec![json!({})], "BestEffort"),
            (vec![json!({ "requests": { "example.com/gpu": "1" } })], "BestEffort"),
            (vec![json!({ "requests": { "cpu": "0" } })], "BestEffort"),
            (vec![json!({ "requests": { "cpu": "1" } })], "Burstable"),
            (vec![json!({ "requests": full, "limits": { "cpu": "1" } })], "Burstable"),
            (vec![same.clone()], "Guaranteed"),
            (vec![same.clone(), same.clone()], "Guaranteed"),
            (vec![same, json!({})], "Burstable"),
        ] {
            let containers: Vec<Value> = resources.iter().map(|r| json!({ "resources": r })).collect();
            assert_eq!(class(&json!({ "spec": { "containers": containers } })), wanted, "{resources:?}");
        }
    }
}
