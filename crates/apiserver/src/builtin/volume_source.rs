//! The places a volume can come from, which persistent volumes and pods have in common.
//!
//! Owns what each source must say. Must never reach out to a source.

use granary_api::names;

use super::field::Field;
use crate::error::FieldError;

/// A source by the name of its field, with the fields that it cannot do without.
pub struct Source {
    pub name: &'static str,
    pub needs: &'static [&'static str],
    /// Rules beyond that, if there are any.
    pub check: fn(&Field, &mut Vec<FieldError>),
}

pub const fn source(name: &'static str, needs: &'static [&'static str]) -> Source {
    Source { name, needs, check: |_, _| {} }
}

impl Source {
    pub const fn with(self, check: fn(&Field, &mut Vec<FieldError>)) -> Self {
        Self { check, ..self }
    }
}

/// Refuses more than one source, none at all, and one that is not complete.
pub fn check(holder: &Field, sources: &[Source], errors: &mut Vec<FieldError>) {
    let mut found = false;
    for source in sources {
        let field = holder.at(source.name);
        if !field.is_set() {
            continue;
        }
        if found {
            errors.push(field.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        found = true;
        for needed in source.needs {
            field.at(needed).need(errors);
        }
        (source.check)(&field, errors);
    }
    if !found {
        errors.push(holder.required("must specify a volume type"));
    }
}

pub fn check_host_path(host_path: &Field, errors: &mut Vec<FieldError>) {
    if host_path.at("path").is_empty() {
        return;
    }
    host_path.at("path").no_backsteps(errors);
    let types =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    host_path.at("type").one_of(&types, errors);
}

pub fn check_nfs(nfs: &Field, errors: &mut Vec<FieldError>) {
    let path = nfs.at("path");
    if !path.text().starts_with('/') {
        errors.push(FieldError::invalid(path.path.as_str(), path.text(), "must be an absolute path"));
    }
}

pub fn check_local(local: &Field, errors: &mut Vec<FieldError>) {
    local.at("path").no_backsteps(errors);
}

/// A CSI volume that outlives pods.
pub fn check_csi_persistent(csi: &Field, errors: &mut Vec<FieldError>) {
    csi.at("driver").csi_driver_name(errors);
    csi.at("volumeHandle").need(errors);
    for secret in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = csi.at(secret);
        if secret.is_set() {
            secret.at("name").need_name(names::dns1123_subdomain, errors);
            secret.at("namespace").need_name(names::dns1123_label, errors);
        }
    }
}

/// A CSI volume that lives as long as its pod.
pub fn check_csi_ephemeral(csi: &Field, errors: &mut Vec<FieldError>) {
    csi.at("driver").csi_driver_name(errors);
    let secret = csi.at("nodePublishSecretRef");
    if secret.is_set() && secret.at("name").need(errors) {
        // Kubernetes leaves the name of the reference out of this path.
        let name = secret.at("name").known_as(format!("{}.name", csi.path));
        name.follow(names::dns1123_subdomain, errors);
    }
}
