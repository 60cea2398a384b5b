//! The CustomResourceDefinitions of all kinds, ready to be installed or served.
//! One table says what the derive cannot: approval, plain status, optional spec. No I/O.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceValidation,
};
use kube::CustomResourceExt;

use crate::{cdi, cni, harvester, longhorn, schema, snapshot};

/// How a kind departs from "spec required, status behind its own end point".
#[derive(Clone, Copy, PartialEq)]
enum Trait {
    /// The group belongs to Kubernetes; its API server wants to see where the kind was approved.
    Approved(&'static str),
    /// Upstream has no status end point: status is written together with the rest.
    PlainStatus,
    /// An object may come without `spec`.
    OptionalSpec,
    /// There is no `spec`: the fields sit at the top level.
    NoSpec,
    /// The list at this JSON pointer is merged by this member of its items.
    ListMap(&'static str, &'static str),
}

use Trait::{Approved, ListMap, NoSpec, OptionalSpec, PlainStatus};

const SNAPSHOT_V1: &str = "https://github.com/kubernetes-csi/external-snapshotter/pull/814";
const SNAPSHOT_CONTENT_V1: &str = "https://github.com/kubernetes-csi/external-snapshotter/pull/955";

const CLAIMS_WANTED: &str = "/properties/spec/properties/podResourceRequirements/properties/claims";
const CLAIMS_IN_FORCE: &str =
    "/properties/status/properties/defaultPodResourceRequirements/properties/claims";

/// Every kind, in an order that does not change: by group, and within it as upstream lists them.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        kind::<snapshot::VolumeSnapshot>(&[Approved(SNAPSHOT_V1)]),
        kind::<snapshot::VolumeSnapshotContent>(&[Approved(SNAPSHOT_CONTENT_V1)]),
        kind::<snapshot::VolumeSnapshotClass>(&[Approved(SNAPSHOT_V1), NoSpec]),
        kind::<cni::NetworkAttachmentDefinition>(&[OptionalSpec]),
        kind::<cdi::DataVolume>(&[]),
        kind::<cdi::StorageProfile>(&[]),
        kind::<cdi::DataSource>(&[PlainStatus]),
        kind::<cdi::CDIConfig>(&[
            PlainStatus,
            ListMap(CLAIMS_WANTED, "name"),
            ListMap(CLAIMS_IN_FORCE, "name"),
        ]),
        kind::<cdi::VolumeImportSource>(&[PlainStatus]),
        kind::<cdi::VolumeUploadSource>(&[PlainStatus]),
        kind::<cdi::VolumeCloneSource>(&[]),
        kind::<harvester::VirtualMachineImage>(&[PlainStatus]),
        kind::<harvester::VirtualMachineImageDownloader>(&[]),
        kind::<harvester::Setting>(&[PlainStatus, NoSpec]),
        kind::<harvester::NetworkFilesystem>(&[]),
        kind::<harvester::VirtualMachineTemplate>(&[OptionalSpec]),
        kind::<harvester::VirtualMachineTemplateVersion>(&[PlainStatus]),
        kind::<harvester::VirtualMachineBackup>(&[PlainStatus]),
        kind::<harvester::VirtualMachineRestore>(&[PlainStatus]),
        kind::<longhorn::Volume>(&[OptionalSpec]),
        kind::<longhorn::Engine>(&[OptionalSpec]),
        kind::<longhorn::Replica>(&[OptionalSpec]),
        kind::<longhorn::InstanceManager>(&[OptionalSpec]),
        kind::<longhorn::EngineImage>(&[]),
        kind::<longhorn::BackingImage>(&[OptionalSpec]),
        kind::<longhorn::BackingImageManager>(&[OptionalSpec]),
        kind::<longhorn::BackingImageDataSource>(&[OptionalSpec]),
        kind::<longhorn::ShareManager>(&[OptionalSpec]),
        kind::<longhorn::Snapshot>(&[]),
        kind::<longhorn::Backup>(&[OptionalSpec]),
        kind::<longhorn::BackupTarget>(&[OptionalSpec]),
        kind::<longhorn::BackupVolume>(&[OptionalSpec]),
        kind::<longhorn::Setting>(&[NoSpec]),
        kind::<longhorn::Node>(&[OptionalSpec]),
        kind::<longhorn::VolumeAttachment>(&[]),
    ]
}

/// All definitions as one YAML stream, for `kubectl apply -f -`.
pub fn yaml() -> Result<String, serde_saphyr::ser::Error> {
    let mut stream = String::new();
    for definition in all() {
        stream.push_str("---\n");
        stream.push_str(&serde_saphyr::to_string(&definition)?);
    }
    Ok(stream)
}

fn kind<K: CustomResourceExt>(traits: &[Trait]) -> CustomResourceDefinition {
    let mut definition = K::crd();
    for version in &mut definition.spec.versions {
        if traits.contains(&PlainStatus) {
            version.subresources = None;
        }
        version.schema = version.schema.take().map(|validation| finish(validation, traits));
    }
    for departure in traits {
        if let Approved(by) = departure {
            let annotations = definition.metadata.annotations.get_or_insert_default();
            annotations.insert("api-approved.kubernetes.io".to_owned(), (*by).to_owned());
        }
    }
    definition
}

fn finish(validation: CustomResourceValidation, traits: &[Trait]) -> CustomResourceValidation {
    let mut root = serde_json::to_value(validation.open_api_v3_schema).expect("a schema is plain JSON");
    schema::tidy_root(&mut root);
    for departure in traits {
        match departure {
            OptionalSpec => schema::default_spec(&mut root),
            NoSpec => schema::keep_unknown_at_root(&mut root),
            ListMap(path, key) => schema::merge_list_by(&mut root, path, key),
            Approved(_) | PlainStatus => {}
        }
    }
    CustomResourceValidation {
        open_api_v3_schema: serde_json::from_value(root).expect("tidying keeps a schema a schema"),
    }
}
