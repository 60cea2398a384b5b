//! Where a container sees the volumes of its pod, as files or as block devices.
//!
//! Owns the rules for mounts and devices. Must never mount.

use std::collections::BTreeSet;

use super::super::field::Field;
use super::volumes::Known;
use crate::error::FieldError;

pub fn check(container: &Field, volumes: &Known, errors: &mut Vec<FieldError>) {
    check_mounts(container, volumes, errors);
    check_devices(container, volumes, errors);
}

fn check_mounts(container: &Field, volumes: &Known, errors: &mut Vec<FieldError>) {
    let mounts = container.at("volumeMounts");
    let devices = container.at("volumeDevices");
    let mut seen = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.at("name"), mount.at("mountPath"));
        name.need(errors);
        if !volumes.contains_key(name.text()) {
            errors.push(name.not_found());
        }
        path.need(errors);
        if !seen.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        if devices.items().any(|device| device.at("name").text() == name.text()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if devices.items().any(|device| device.at("devicePath").text() == path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        check_mount_options(container, &mounts, &mount, errors);
    }
}

/// Options of a mount are reported at the list, as in Kubernetes.
fn check_mount_options(container: &Field, mounts: &Field, mount: &Field, errors: &mut Vec<FieldError>) {
    let option = |name: &str| mount.at(name).known_as(format!("{}.{name}", mounts.path));
    for name in ["subPath", "subPathExpr"] {
        if !mount.at(name).is_empty() {
            option(name).descending_path(errors);
        }
    }
    if !mount.at("subPath").is_empty() && !mount.at("subPathExpr").is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        errors.push(mount.at("subPathExpr").invalid(detail));
    }
    let propagation = option("mountPropagation");
    propagation.one_of(&["Bidirectional", "HostToContainer", "None"], errors);
    if propagation.text() == "Bidirectional" && !container.at("securityContext.privileged").is_true() {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(propagation.forbidden(detail));
    }
    let recursive = option("recursiveReadOnly");
    recursive.one_of(&["Disabled", "Enabled", "IfPossible"], errors);
    if matches!(recursive.text(), "Enabled" | "IfPossible") {
        if !mount.at("readOnly").is_true() {
            errors.push(recursive.forbidden("may only be specified when readOnly is true"));
        }
        if !matches!(propagation.text(), "" | "None") {
            let detail = "may only be specified when mountPropagation is None or not specified";
            errors.push(recursive.forbidden(detail));
        }
    }
}

fn check_devices(container: &Field, volumes: &Known, errors: &mut Vec<FieldError>) {
    let mounts = container.at("volumeMounts");
    let (mut seen_names, mut seen_paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.at("volumeDevices").items() {
        let (name, path) = (device.at("name"), device.at("devicePath"));
        if name.need(errors) && !seen_names.insert(name.text()) {
            errors.push(name.invalid("must be unique"));
        }
        match volumes.get(name.text()) {
            None => errors.push(name.not_found()),
            Some(volume)
                if volume.at("persistentVolumeClaim").is_set() || volume.at("ephemeral").is_set() => {}
            Some(_) => errors.push(name.invalid(
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            )),
        }
        path.need(errors);
        if path.text().split('/').any(|part| part == "..") {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        } else if !seen_paths.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        if mounts.items().any(|mount| mount.at("name").text() == name.text()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if mounts.items().any(|mount| mount.at("mountPath").text() == path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use crate::builtin::testing::{refusals, with};
    use serde_json::json;

    #[test]
    fn mounts_refer_to_volumes_once() {
        let mounts = json!([
            { "name": "data", "mountPath": "/data" },
            { "name": "data", "mountPath": "/data", "subPath": "../up" },
            { "name": "gone", "mountPath": "/gone", "mountPropagation": "Bidirectional" },
        ]);
        let path = "spec.containers[0].volumeMounts";
        assert_eq!(
            refusals(&POD, &with(pod(), "/spec/containers/0/volumeMounts", mounts)),
            [
                format!("{path}[1].mountPath: Invalid value: \"/data\": must be unique"),
                format!("{path}.subPath: Invalid value: \"../up\": must not contain '..'"),
                format!("{path}[2].name: Not found: \"gone\""),
                format!(
                    "{path}.mountPropagation: Forbidden: Bidirectional mount propagation is available only to \
                     privileged containers"
                ),
            ]
        );
    }

    #[test]
    fn devices_come_from_claims_only() {
        let devices = json!([
            { "name": "scratch", "devicePath": "/dev/xvda" }, { "name": "data", "devicePath": "/dev/xvda" },
        ]);
        let block = with(pod(), "/spec/containers/0/volumeMounts", json!([]));
        let path = "spec.containers[0].volumeDevices";
        assert_eq!(
            refusals(&POD, &with(block, "/spec/containers/0/volumeDevices", devices)),
            [
                format!(
                    "{path}[0].name: Invalid value: \"scratch\": can only use volume source type of \
                     PersistentVolumeClaim or Ephemeral for block mode"
                ),
                format!("{path}[1].devicePath: Invalid value: \"/dev/xvda\": must be unique"),
            ]
        );
    }
}
