//! Where a pod may run: tolerations, affinity, gates and spreading.
//!
//! Owns their rules. Must never place a pod.

use std::collections::BTreeSet;

use granary_api::names;

use super::super::field::Field;
use super::super::node_selector;
use crate::error::FieldError;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub fn check(spec: &Field, errors: &mut Vec<FieldError>) {
    check_tolerations(&spec.at("tolerations"), errors);
    let nodes = spec.at("affinity.nodeAffinity");
    if nodes.at(REQUIRED).is_set() {
        node_selector::check(&nodes.at(REQUIRED), errors);
    }
    for term in nodes.at(PREFERRED).items() {
        check_weight(&term, errors);
        node_selector::check_term(&term.at("preference"), errors);
    }
    for affinity in [spec.at("affinity.podAffinity"), spec.at("affinity.podAntiAffinity")] {
        affinity.at(REQUIRED).items().for_each(|term| check_pod_term(&term, errors));
        for term in affinity.at(PREFERRED).items() {
            check_weight(&term, errors);
            check_pod_term(&term.at("podAffinityTerm"), errors);
        }
    }
    check_gates(&spec.at("schedulingGates"), errors);
    check_spread(&spec.at("topologySpreadConstraints"), errors);
}

fn check_tolerations(tolerations: &Field, errors: &mut Vec<FieldError>) {
    for toleration in tolerations.items() {
        let (key, operator) = (toleration.at("key"), toleration.at("operator"));
        let (value, effect) = (toleration.at("value"), toleration.at("effect"));
        key.follow_if_set(names::label_key, errors);
        if key.is_empty() && operator.text() != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(operator.path.as_str(), operator.text(), detail));
        }
        if toleration.at("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(effect.path.as_str(), effect.text(), detail));
        }
        let mut refuse = |detail: &str| {
            errors.push(FieldError::invalid(operator.path.as_str(), value.text(), detail));
        };
        match operator.text() {
            "" | "Equal" => {
                let complaints = names::label_value(value.text());
                if !complaints.is_empty() {
                    refuse(&complaints.join(";"));
                }
            }
            "Exists" if !value.is_empty() => refuse("value must be empty when `operator` is 'Exists'"),
            "Exists" => {}
            _ => operator.one_of(&["Equal", "Exists"], errors),
        }
        if !effect.is_empty() {
            effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
    }
}

fn check_weight(term: &Field, errors: &mut Vec<FieldError>) {
    term.at("weight").in_range(1, 100, "must be in the range 1-100", errors);
}

fn check_pod_term(term: &Field, errors: &mut Vec<FieldError>) {
    term.at("labelSelector").label_selector(errors);
    term.at("namespaceSelector").label_selector(errors);
    for namespace in term.at("namespaces").items() {
        namespace.known_as(format!("{}.namespace", term.path)).follow(names::dns1123_label, errors);
    }
    let key = term.at("topologyKey");
    if key.is_empty() {
        errors.push(key.required("can not be empty"));
    }
    key.follow(names::label_key, errors);
}

fn check_gates(gates: &Field, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for gate in gates.items() {
        let name = gate.at("name").known_as(gate.path.as_str());
        name.follow(names::label_key, errors);
        if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
}

fn check_spread(constraints: &Field, errors: &mut Vec<FieldError>) {
    let all: Vec<Field> = constraints.items().collect();
    for (i, constraint) in all.iter().enumerate() {
        let (skew, key, otherwise) =
            (constraint.at("maxSkew"), constraint.at("topologyKey"), constraint.at("whenUnsatisfiable"));
        skew.in_range(1, i64::MAX, "must be greater than zero", errors);
        if key.is_empty() {
            errors.push(key.required("can not be empty"));
        }
        let choices = ["DoNotSchedule", "ScheduleAnyway"];
        if !choices.contains(&otherwise.text()) {
            errors.push(FieldError::not_supported(otherwise.path.as_str(), otherwise.text(), &choices));
        }
        let same = |other: &Field| {
            other.at("topologyKey").text() == key.text()
                && other.at("whenUnsatisfiable").text() == otherwise.text()
        };
        if all[i + 1..].iter().any(same) {
            let path = format!("{}.{{topologyKey, whenUnsatisfiable}}", constraint.path);
            let pair = format!("{{{}, {}}}", key.text(), otherwise.text());
            errors.push(FieldError::duplicate(path, pair));
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint.at(policy).one_of(&["Honor", "Ignore"], errors);
        }
        constraint.at("labelSelector").label_selector(errors);
    }
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use crate::builtin::testing::{refusals, with};
    use serde_json::json;

    #[test]
    fn where_a_pod_may_run_is_checked() {
        let mut bad =
            with(pod(), "/spec/tolerations", json!([{ "value": "x" }, { "key": "a", "operator": "Maybe" }]));
        bad["spec"]["affinity"] = json!({
            "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchExpressions": [{ "key": "zone", "operator": "Near" }] },
            ] } },
            "podAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
                { "weight": 0, "podAffinityTerm": { "topologyKey": "zone" } },
            ] },
        });
        bad["spec"]["topologySpreadConstraints"] = json!([
            { "maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" },
            { "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" },
        ]);
        assert_eq!(
            refusals(&POD, &bad),
            [
                "spec.tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is empty, which \
                 means \"match all values and all keys\"",
                "spec.tolerations[1].operator: Unsupported value: \"Maybe\": supported values: \"Equal\", \"Exists\"",
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].\
                 matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator",
                "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: \
                 0: must be in the range 1-100",
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \
                 \"{zone, DoNotSchedule}\"",
            ]
        );
    }
}
