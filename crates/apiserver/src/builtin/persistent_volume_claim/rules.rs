//! What a claim must say, and how it may grow.
//!
//! Owns the rules for its spec, also where a pod carries one as a template. Must never look at volumes.

use granary_api::names;
use granary_api::quantity::Quantity;
use serde_json::Value;

use super::super::access::{at, is_set, remove, same, str_at};
use super::super::field::{Field, IMMUTABLE};
use super::super::persistent_volume::{VOLUME_MODES, check_access_modes};
use super::super::{changes, quantity};
use crate::error::FieldError;

const OLD_CLASS_ANNOTATION: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
const FROZEN: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

pub fn validate(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = Field::root(new);
    // Groups of data sources were not checked at first; what was stored so may stay.
    let had_group =
        |old| ["dataSource", "dataSourceRef"].iter().any(|s| is_set(old, &format!("/spec/{s}/apiGroup")));
    check_spec_with(&root.at("spec"), old.is_some_and(had_group), errors);
    check_status(&root.at("status"), errors);
    if let Some(old) = old {
        check_update(new, old, errors);
    }
}

/// The spec of a claim or of a claim template.
pub fn check_spec(spec: &Field, errors: &mut Vec<FieldError>) {
    check_spec_with(spec, false, errors);
}

fn check_spec_with(spec: &Field, any_group: bool, errors: &mut Vec<FieldError>) {
    check_access_modes(&spec.at("accessModes"), "at least 1 access mode is required", errors);
    spec.at("selector").label_selector(errors);
    let size = spec.at("resources.requests.storage").known_as(format!("{}.resources[storage]", spec.path));
    if size.is_set() {
        quantity::check_positive(&size, errors);
    } else {
        errors.push(size.required(""));
    }
    spec.at("storageClassName").follow_if_set(names::dns1123_subdomain, errors);
    spec.at("volumeMode").one_of(&VOLUME_MODES, errors);
    check_data_source(spec, any_group, errors);
    spec.at("volumeAttributesClassName").follow_if_set(names::dns1123_subdomain, errors);
}

fn check_data_source(spec: &Field, any_group: bool, errors: &mut Vec<FieldError>) {
    let (source, reference) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    for object in [&source, &reference].into_iter().filter(|object| object.is_set()) {
        let (kind, group) = (object.at("kind"), object.at("apiGroup"));
        object.at("name").need(errors);
        kind.need(errors);
        if group.is_empty() && kind.text() != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(object.path.as_str(), kind.text(), detail));
        }
        if !any_group {
            group.follow_if_set(names::dns1123_subdomain, errors);
        }
    }
    let elsewhere = reference.at("namespace");
    elsewhere.follow_if_set(names::dns1123_label, errors);
    if !source.is_set() || !reference.is_set() {
        return;
    }
    let mut refuse =
        |detail: &str| errors.push(FieldError::invalid(spec.path.as_str(), source.path.as_str(), detail));
    if !elsewhere.is_empty() {
        refuse("may not be specified when dataSourceRef.namespace is specified");
    } else if ["apiGroup", "kind", "name"]
        .iter()
        .any(|field| source.at(field).text() != reference.at(field).text())
    {
        refuse("must match dataSourceRef");
    }
}

fn check_status(status: &Field, errors: &mut Vec<FieldError>) {
    for (_, size) in status.at("capacity").entries() {
        quantity::check_readable(&size, errors);
        quantity::check_basic(&size, errors);
    }
    for (_, size) in status.at("allocatedResources").entries() {
        quantity::check(&size, errors);
    }
    let states = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let resizing = status.at("allocatedResourceStatuses");
    for (_, state) in resizing.entries() {
        state.known_as(resizing.path.as_str()).one_of(&states, errors);
    }
}

fn check_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (old_class, new_class) = (at(old, OLD_CLASS_ANNOTATION), at(new, OLD_CLASS_ANNOTATION));
    let promoted = promotes_annotation(new, old);
    if !promoted && !same(new_class, old_class) {
        errors.push(FieldError::invalid(
            "metadata.annotations.volume.beta.kubernetes.io/storage-class",
            new_class.as_str().unwrap_or_default(),
            IMMUTABLE,
        ));
    }
    let (wanted, frozen) = comparable(new, old, promoted);
    // `same` cannot tell an empty class from none, but to a claim they are different wishes.
    let class_changed = is_set(&wanted, "/storageClassName") != is_set(&frozen, "/storageClassName");
    if class_changed || !same(&wanted, &frozen) {
        let listed = changes::listed(&frozen, &wanted);
        errors.push(FieldError::forbidden("spec", format!("{FROZEN}{listed}")));
    }
    check_size(new, old, errors);
    let mode = Field::root(new).at("spec.volumeMode").known_as("volumeMode");
    mode.unchanged(&Field::root(old).at("spec.volumeMode"), errors);
    check_attributes_class(new, old, errors);
}

/// Both specs without what an update may change.
fn comparable(new: &Value, old: &Value, promoted: bool) -> (Value, Value) {
    let (mut wanted, mut frozen) = (at(new, "/spec").clone(), at(old, "/spec").clone());
    let mut free = Vec::new();
    if str_at(old, "/spec/volumeName").is_empty() {
        free.push("/volumeName");
    }
    if promoted || takes_class(new, old) {
        free.push("/storageClassName");
    }
    if str_at(new, "/status/phase") == "Bound" {
        free.extend(["/resources/requests/storage", "/volumeAttributesClassName"]);
    }
    for pointer in free {
        remove(&mut wanted, pointer);
        remove(&mut frozen, pointer);
    }
    (wanted, frozen)
}

/// The class moved from the old annotation to the field.
fn promotes_annotation(new: &Value, old: &Value) -> bool {
    let annotation = at(old, OLD_CLASS_ANNOTATION);
    let kept = at(new, OLD_CLASS_ANNOTATION);
    annotation.is_string()
        && !is_set(old, "/spec/storageClassName")
        && at(new, "/spec/storageClassName") == annotation
        && (kept.is_null() || kept == annotation)
}

/// A claim that never named a class may be given one.
fn takes_class(new: &Value, old: &Value) -> bool {
    let annotation = at(old, OLD_CLASS_ANNOTATION);
    is_set(new, "/spec/storageClassName")
        && !is_set(old, "/spec/storageClassName")
        && (annotation.is_null() || at(new, "/spec/storageClassName") == annotation)
}

/// A request may shrink only as long as the volume did not reach it yet.
fn check_size(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let size = |object, pointer| quantity::parse(at(object, pointer)).unwrap_or(Quantity::ZERO);
    let requested = size(new, "/spec/resources/requests/storage");
    if requested < size(old, "/spec/resources/requests/storage")
        && requested <= size(old, "/status/capacity/storage")
    {
        errors.push(FieldError::forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        ));
    }
}

fn check_attributes_class(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let class = Field::root(new).at("spec.volumeAttributesClassName");
    let changed = class.value != at(old, "/spec/volumeAttributesClassName");
    if !changed || !is_set(old, "/status/currentVolumeAttributesClassName") {
        return;
    }
    let current = "is forbidden when status.currentVolumeAttributesClassName is not nil";
    if !class.is_set() {
        errors.push(class.forbidden(format!("update to nil {current}")));
    } else if class.is_empty() {
        errors.push(class.forbidden(format!("update to empty string {current}")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::PERSISTENT_VOLUME_CLAIM as PVC;
    use crate::builtin::testing::{defaulted, refusals, stored, update_refusals, with};
    use serde_json::{Value, json};

    fn claim() -> Value {
        defaulted(
            &PVC,
            json!({ "metadata": stored("data"), "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "10Gi" } },
                "storageClassName": "fast",
            } }),
        )
    }

    fn bound() -> Value {
        let mut claim = with(claim(), "/spec/volumeName", json!("pv-1"));
        claim["status"] = json!({ "phase": "Bound", "capacity": { "storage": "10Gi" } });
        claim
    }

    #[test]
    fn a_claim_says_how_much_and_how() {
        assert_eq!(refusals(&PVC, &claim()), [""; 0]);
        assert_eq!(
            refusals(&PVC, &json!({ "spec": { "volumeMode": "Tape" } })),
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
                "spec.volumeMode: Unsupported value: \"Tape\": supported values: \"Block\", \"Filesystem\"",
            ]
        );
        assert_eq!(
            refusals(&PVC, &with(claim(), "/spec/resources/requests/storage", json!("0"))),
            ["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"]
        );
        assert_eq!(
            refusals(&PVC, &with(claim(), "/spec/resources/requests/storage", json!("much"))),
            [
                "spec.resources[storage]: Invalid value: \"much\": quantities must match the regular expression \
                 '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ]
        );
    }

    #[test]
    fn data_sources_agree() {
        let mut cloned = claim();
        cloned["spec"]["dataSource"] = json!({ "kind": "PersistentVolumeClaim", "name": "a" });
        cloned["spec"]["dataSourceRef"] = json!({ "kind": "PersistentVolumeClaim", "name": "b" });
        assert_eq!(
            refusals(&PVC, &cloned),
            ["spec: Invalid value: \"spec.dataSource\": must match dataSourceRef"]
        );
        cloned["spec"]["dataSourceRef"] = json!({ "kind": "Pod", "name": "" });
        cloned["spec"]["dataSource"] = Value::Null;
        assert_eq!(
            refusals(&PVC, &cloned),
            [
                "spec.dataSourceRef.name: Required value",
                "spec.dataSourceRef: Invalid value: \"Pod\": must be 'PersistentVolumeClaim' when referencing \
                 the default apiGroup",
            ]
        );
    }

    #[test]
    fn a_bound_claim_grows_and_an_unbound_one_does_not() {
        let bigger = |claim| with(claim, "/spec/resources/requests/storage", json!("20Gi"));
        assert_eq!(update_refusals(&PVC, &bound(), &bigger(bound())), [""; 0]);
        assert_eq!(
            update_refusals(&PVC, &claim(), &bigger(claim())),
            ["spec: Forbidden: spec is immutable after creation except resources.requests and \
                 volumeAttributesClassName for bound claims\n- resources.requests.storage: \"10Gi\"\n\
                 + resources.requests.storage: \"20Gi\""]
        );
    }

    #[test]
    fn a_claim_never_shrinks_below_what_it_has() {
        let smaller = with(bound(), "/spec/resources/requests/storage", json!("5Gi"));
        assert_eq!(
            update_refusals(&PVC, &bound(), &smaller),
            ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]
        );
        let growing = with(bound(), "/spec/resources/requests/storage", json!("50Gi"));
        let gives_up = with(bound(), "/spec/resources/requests/storage", json!("20Gi"));
        assert_eq!(update_refusals(&PVC, &growing, &gives_up), [""; 0]);
    }

    #[test]
    fn the_same_size_in_other_words_is_no_change() {
        let other_words = with(claim(), "/spec/resources/requests/storage", json!("10240Mi"));
        assert_eq!(update_refusals(&PVC, &claim(), &defaulted(&PVC, other_words)), [""; 0]);
    }

    #[test]
    fn volume_and_class_are_set_once() {
        assert_eq!(
            update_refusals(&PVC, &claim(), &with(claim(), "/spec/volumeName", json!("pv-1"))),
            [""; 0]
        );
        let other = with(bound(), "/spec/volumeName", json!("pv-2"));
        assert_eq!(update_refusals(&PVC, &bound(), &other).len(), 1);

        let classless = with(claim(), "/spec/storageClassName", Value::Null);
        assert_eq!(update_refusals(&PVC, &classless, &claim()), [""; 0]);
        let none = with(claim(), "/spec/storageClassName", json!(""));
        assert_eq!(update_refusals(&PVC, &none, &classless).len(), 1);
        assert_eq!(
            update_refusals(&PVC, &claim(), &with(claim(), "/spec/storageClassName", json!("slow"))),
            ["spec: Forbidden: spec is immutable after creation except resources.requests and \
                 volumeAttributesClassName for bound claims\n- storageClassName: \"fast\"\n+ storageClassName: \
                 \"slow\""]
        );
    }
}
