//! The volumes of a pod and what each of them comes from.
//!
//! Owns their rules. Must never look whether a claim or secret is there.

use std::collections::{BTreeMap, BTreeSet};

use granary_api::names;
use granary_api::quantity::Quantity;

use super::super::field::Field;
use super::super::persistent_volume_claim::check_spec as check_claim_spec;
use super::super::volume_source::{
    Source, check as check_source, check_csi_ephemeral, check_host_path, check_nfs, source,
};
use super::super::{access, quantity};
use super::containers::PULL_POLICIES;
use super::environment::{check_field, check_resource};
use crate::error::FieldError;

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

const SOURCES: &[Source] = &[
    source("emptyDir", &[]).with(check_empty_dir),
    source("hostPath", &["path"]).with(check_host_path),
    source("gitRepo", &["repository"]),
    source("gcePersistentDisk", &["pdName"]),
    source("awsElasticBlockStore", &["volumeID"]),
    source("secret", &["secretName"]).with(check_files),
    source("nfs", &["server", "path"]).with(check_nfs),
    source("iscsi", &["targetPortal", "iqn"]),
    source("glusterfs", &["endpoints", "path"]),
    source("flocker", &[]),
    source("persistentVolumeClaim", &["claimName"]),
    source("rbd", &["monitors", "image"]),
    source("cinder", &["volumeID"]),
    source("cephfs", &["monitors"]),
    source("quobyte", &["registry", "volume"]),
    source("downwardAPI", &[]).with(check_downward),
    source("fc", &[]),
    source("flexVolume", &["driver"]),
    source("configMap", &["name"]).with(check_files),
    source("azureFile", &["secretName", "shareName"]),
    source("vsphereVolume", &["volumePath"]),
    source("photonPersistentDisk", &["pdID"]),
    source("portworxVolume", &["volumeID"]),
    source("azureDisk", &["diskName", "diskURI"]),
    source("storageos", &[]),
    source("projected", &[]).with(check_projected),
    source("scaleIO", &["gateway", "system", "volumeName"]),
    source("csi", &[]).with(check_csi_ephemeral),
    source("ephemeral", &["volumeClaimTemplate"]).with(check_ephemeral),
    source("image", &["reference"]).with(check_image),
];

/// The valid volumes of a pod by name: what containers can refer to.
pub type Known<'a> = BTreeMap<&'a str, Field<'a>>;

pub fn check<'a>(pod: &Field<'a>, errors: &mut Vec<FieldError>) -> Known<'a> {
    let volumes = pod.at("spec.volumes");
    let own_claims = own_claims(pod);
    let mut known = Known::new();
    for volume in volumes.items() {
        let mut refused = Vec::new();
        check_source(&volume, SOURCES, &mut refused);
        let name = volume.at("name");
        name.need_name(names::dns1123_label, &mut refused);
        if known.contains_key(name.text()) {
            refused.push(name.duplicate());
        }
        check_own_claim(pod, &volume, &mut refused);
        let claim = volume.at("persistentVolumeClaim.claimName");
        if refused.is_empty() {
            known.insert(name.text(), volume);
        }
        errors.append(&mut refused);
        if own_claims.contains(claim.text()) {
            errors.push(claim.invalid("must not reference a PVC that gets created for an ephemeral volume"));
        }
    }
    known
}

/// The claim for an ephemeral volume is called after pod and volume.
fn check_own_claim(pod: &Field, volume: &Field, errors: &mut Vec<FieldError>) {
    let (pod, name) = (pod.at("metadata.name"), volume.at("name"));
    if !volume.at("ephemeral").is_set() || pod.is_empty() || name.is_empty() {
        return;
    }
    let claim = format!("{}-{}", pod.text(), name.text());
    for complaint in names::dns1123_subdomain(&claim) {
        errors.push(name.invalid(format!("PVC name {claim:?}: {complaint}")));
    }
}

/// The claims that will be made for ephemeral volumes of this pod.
fn own_claims(pod: &Field) -> BTreeSet<String> {
    let pod_name = pod.at("metadata.name").text();
    let volumes = pod.at("spec.volumes");
    let ephemeral = volumes.items().filter(|volume| volume.at("ephemeral").is_set());
    ephemeral
        .filter(|_| !pod_name.is_empty())
        .map(|volume| format!("{pod_name}-{}", volume.at("name").text()))
        .collect()
}

fn check_empty_dir(source: &Field, errors: &mut Vec<FieldError>) {
    let limit = source.at("sizeLimit");
    if limit.is_set() && quantity::parse(limit.value).is_none_or(Quantity::is_negative) {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

fn check_mode(mode: &Field, errors: &mut Vec<FieldError>) {
    if mode.int().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.push(mode.invalid(FILE_MODE));
    }
}

/// A file inside the volume, not outside, and not one that the volume itself needs.
fn check_file_path(path: &Field, errors: &mut Vec<FieldError>) {
    path.descending_path(errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        errors.push(path.invalid("must not start with '..'"));
    }
}

fn check_items(source: &Field, errors: &mut Vec<FieldError>) {
    for item in source.at("items").items() {
        item.at("key").need(errors);
        item.at("path").need(errors);
        check_file_path(&item.at("path"), errors);
        check_mode(&item.at("mode"), errors);
    }
}

fn check_files(source: &Field, errors: &mut Vec<FieldError>) {
    check_mode(&source.at("defaultMode"), errors);
    check_items(source, errors);
}

fn check_downward(source: &Field, errors: &mut Vec<FieldError>) {
    check_mode(&source.at("defaultMode"), errors);
    for file in source.at("items").items() {
        let file = file.known_as(source.path.as_str());
        file.at("path").need(errors);
        check_file_path(&file.at("path"), errors);
        let (field, resource) = (file.at("fieldRef"), file.at("resourceFieldRef"));
        check_field(&field, &FILE_FIELDS, errors);
        match (field.is_set(), resource.is_set()) {
            (true, true) => errors.push(FieldError::invalid(
                file.path.as_str(),
                "resource",
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            )),
            (false, true) if resource.at("containerName").is_empty() => {
                errors.push(resource.at("containerName").required(""));
            }
            (false, true) => check_resource(&resource, errors),
            (false, false) => {
                errors.push(file.required("one of fieldRef and resourceFieldRef is required"));
            }
            (true, false) => {}
        }
        check_mode(&file.at("mode"), errors);
    }
}

fn check_projected(source: &Field, errors: &mut Vec<FieldError>) {
    check_mode(&source.at("defaultMode"), errors);
    check_distinct_files(source, errors);
    for part in source.at("sources").items() {
        for kind in ["secret", "configMap"] {
            let part = part.at(kind);
            if part.is_set() {
                part.at("name").need(errors);
                check_items(&part, errors);
            }
        }
        if part.at("downwardAPI").is_set() {
            check_downward(&part.at("downwardAPI"), errors);
        }
        let token = part.at("serviceAccountToken");
        if token.is_set() {
            check_token(&token, &source.at("path").path, errors);
        }
        let given =
            part.value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()).count();
        if given > 1 {
            errors.push(part.forbidden("may not specify more than 1 volume type"));
        }
    }
}

/// Two sources cannot give the same file.
fn check_distinct_files(source: &Field, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for part in source.at("sources").items() {
        for kind in ["secret", "configMap", "downwardAPI"] {
            let part = part.at(kind);
            for path in part.at("items").items().map(|item| item.at("path")) {
                if !path.is_empty() && !seen.insert(path.text()) {
                    let named = if kind == "downwardAPI" { path } else { part.at("name") };
                    let detail = "conflicting duplicate paths";
                    errors.push(FieldError::invalid(source.path.as_str(), named.text(), detail));
                }
            }
        }
    }
}

fn check_token(token: &Field, reported_at: &str, errors: &mut Vec<FieldError>) {
    let expiry = token.at("expirationSeconds");
    match expiry.int() {
        Some(..600) => errors.push(expiry.invalid("may not specify a duration less than 10 minutes")),
        Some(4_294_967_297..) => {
            errors.push(expiry.invalid("may not specify a duration larger than 2^32 seconds"));
        }
        _ => {}
    }
    let path = token.at("path").known_as(reported_at);
    if path.need(errors) {
        check_file_path(&path, errors);
    }
}

fn check_ephemeral(source: &Field, errors: &mut Vec<FieldError>) {
    let template = source.at("volumeClaimTemplate");
    if !template.is_set() {
        return;
    }
    let metadata = template.at("metadata");
    metadata.at("labels").labels(errors);
    for (key, value) in access::entries_at(metadata.value, "") {
        if !matches!(key, "labels" | "annotations") && !access::is_zero(value) {
            errors.push(metadata.at(key).forbidden("cannot be set"));
        }
    }
    check_claim_spec(&template.at("spec"), errors);
}

fn check_image(source: &Field, errors: &mut Vec<FieldError>) {
    source.at("pullPolicy").need_one_of(&PULL_POLICIES, errors);
}

#[cfg(test)]
mod tests {
    use super::super::POD;
    use super::super::tests::pod;
    use crate::builtin::testing::{defaulted, refusals, with};
    use serde_json::{Value, json};

    fn with_volumes(volumes: Value) -> Vec<String> {
        let bare = with(pod(), "/spec/containers/0/volumeMounts", json!([]));
        refusals(&POD, &defaulted(&POD, with(bare, "/spec/volumes", volumes)))
    }

    #[test]
    fn volumes_have_unique_names_and_one_source() {
        assert_eq!(
            with_volumes(json!([
                { "name": "a" }, { "name": "a" },
                { "name": "b", "emptyDir": {}, "hostPath": { "path": "/x" } },
                { "name": "c", "hostPath": { "path": "/../x", "type": "Disk" } },
                { "emptyDir": {} },
            ])),
            [
                "spec.volumes[1].name: Duplicate value: \"a\"",
                "spec.volumes[2].hostPath: Forbidden: may not specify more than 1 volume type",
                "spec.volumes[3].hostPath.path: Invalid value: \"/../x\": must not contain '..'",
                "spec.volumes[3].hostPath.type: Unsupported value: \"Disk\": supported values: \"\", \"BlockDevice\", \
                 \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
                "spec.volumes[4].name: Required value",
            ]
        );
    }

    #[test]
    fn files_stay_inside_their_volume() {
        assert_eq!(
            with_volumes(json!([
                { "name": "a", "secret": { "secretName": "s", "defaultMode": 512, "items": [
                    { "key": "k", "path": "/etc/passwd" }, { "key": "", "path": "..data" },
                ] } },
                { "name": "b", "projected": { "sources": [{ "serviceAccountToken": { "expirationSeconds": 5 } }] } },
            ])),
            [
                "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), \
                 both inclusive",
                "spec.volumes[0].secret.items[0].path: Invalid value: \"/etc/passwd\": must be a relative path",
                "spec.volumes[0].secret.items[1].key: Required value",
                "spec.volumes[0].secret.items[1].path: Invalid value: \"..data\": must not start with '..'",
                "spec.volumes[1].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 5: may not \
                 specify a duration less than 10 minutes",
                "spec.volumes[1].projected.path: Required value",
            ]
        );
    }

    #[test]
    fn an_ephemeral_claim_is_a_whole_claim() {
        assert_eq!(
            with_volumes(json!([
                { "name": "scratch", "ephemeral": { "volumeClaimTemplate": {
                    "metadata": { "name": "mine" }, "spec": { "accessModes": ["ReadWriteOnce"] },
                } } },
                { "name": "other", "persistentVolumeClaim": { "claimName": "web-0-scratch" } },
            ])),
            [
                "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
                "spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: \"web-0-scratch\": must not reference \
                 a PVC that gets created for an ephemeral volume",
            ]
        );
    }
}
