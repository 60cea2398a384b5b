//! Keys of CDI: how claims, worker pods and DataVolumes refer to each other.
//! The same whether CDI's controllers or Granary's do the work.

/// Claim: UID of the DataVolume that made it.
pub const CREATED_FOR_DATA_VOLUME_ANNOTATION: &str = "cdi.kubevirt.io/createdForDataVolume";
/// DataVolume: a claim of its name may be taken over as it is.
pub const ALLOW_CLAIM_ADOPTION_ANNOTATION: &str = "cdi.kubevirt.io/allowClaimAdoption";
/// DataVolume: bind at once, whatever the storage class says; any value counts.
pub const IMMEDIATE_BINDING_ANNOTATION: &str = "cdi.kubevirt.io/storage.bind.immediate.requested";
/// DataVolume: "false" writes to the claim itself rather than to a prime claim.
pub const USE_POPULATOR_ANNOTATION: &str = "cdi.kubevirt.io/storage.usePopulator";
/// Claim: name of the prime claim that is being filled in its stead.
pub const POPULATOR_PRIME_ANNOTATION: &str = "cdi.kubevirt.io/storage.populator.pvcPrime";
pub const POPULATOR_PROGRESS_ANNOTATION: &str = "cdi.kubevirt.io/storage.populator.progress";
pub const POPULATOR_KIND_ANNOTATION: &str = "cdi.kubevirt.io/storage.populator.kind";
/// Claim: has its content already; the value names the DataVolume.
pub const POPULATED_FOR_ANNOTATION: &str = "cdi.kubevirt.io/storage.populatedFor";
pub const PRE_POPULATED_ANNOTATION: &str = "cdi.kubevirt.io/storage.prePopulated";
/// Claim: filled by somebody else.
pub const EXTERNAL_POPULATION_ANNOTATION: &str = "cdi.kubevirt.io/externalPopulation";
/// DataVolume: bind to a volume that exists already, if there is one.
pub const CHECK_STATIC_VOLUME_ANNOTATION: &str = "cdi.kubevirt.io/storage.checkStaticVolume";
pub const CONTENT_TYPE_ANNOTATION: &str = "cdi.kubevirt.io/storage.contentType";
pub const PREALLOCATION_REQUESTED_ANNOTATION: &str = "cdi.kubevirt.io/storage.preallocation.requested";
pub const PREALLOCATION_APPLIED_ANNOTATION: &str = "cdi.kubevirt.io/storage.preallocation";
/// Claim: an upload server shall be started for it.
pub const UPLOAD_TARGET_ANNOTATION: &str = "cdi.kubevirt.io/storage.upload.target";
/// Object on which events about a temporary claim are to be shown.
pub const EVENTS_SOURCE_ANNOTATION: &str = "cdi.kubevirt.io/events.source";
pub const EVENTS_SOURCE_KIND_ANNOTATION: &str = "cdi.kubevirt.io/events.source.kind";
pub const OWNER_UID_ANNOTATION: &str = "cdi.kubevirt.io/ownerUID";

/// Claim: how it is cloned (copy, snapshot, csi-clone).
pub const CLONE_TYPE_ANNOTATION: &str = "cdi.kubevirt.io/cloneType";
/// Claim: why the host copies although the storage class promised better.
pub const CLONE_FALLBACK_REASON_ANNOTATION: &str = "cdi.kubevirt.io/cloneFallbackReason";
pub const CLONE_PHASE_ANNOTATION: &str = "cdi.kubevirt.io/clonePhase";
pub const CLONE_ERROR_ANNOTATION: &str = "cdi.kubevirt.io/cloneError";
/// VolumeCloneSource: namespace of the source when it is another one.
pub const DATA_SOURCE_NAMESPACE_ANNOTATION: &str = "cdi.kubevirt.io/dataSourceNamespace";
/// DataVolume: a target smaller than the source is allowed.
pub const PERMISSIVE_CLONE_ANNOTATION: &str = "cdi.kubevirt.io/permissiveClone";
pub const CLONE_TOKEN_ANNOTATION: &str = "cdi.kubevirt.io/storage.clone.token";
pub const EXTENDED_CLONE_TOKEN_ANNOTATION: &str = "cdi.kubevirt.io/storage.extended.clone.token";
/// Storage class: how its volumes are cloned.
pub const CLONE_STRATEGY_ANNOTATION: &str = "cdi.kubevirt.io/clone-strategy";
/// StorageProfile: the smallest volume the driver makes.
pub const MINIMUM_SIZE_ANNOTATION: &str = "cdi.kubevirt.io/minimumSupportedPvcSize";

/// State of the worker pod, mirrored on the claim.
pub const POD_PHASE_ANNOTATION: &str = "cdi.kubevirt.io/storage.pod.phase";
pub const POD_READY_ANNOTATION: &str = "cdi.kubevirt.io/storage.pod.ready";
pub const POD_RESTARTS_ANNOTATION: &str = "cdi.kubevirt.io/storage.pod.restarts";
/// DataVolume: keep finished worker pods.
pub const POD_RETAIN_ANNOTATION: &str = "cdi.kubevirt.io/storage.pod.retainAfterCompletion";
pub const RUNNING_CONDITION_ANNOTATION: &str = "cdi.kubevirt.io/storage.condition.running";
pub const RUNNING_MESSAGE_ANNOTATION: &str = "cdi.kubevirt.io/storage.condition.running.message";
pub const RUNNING_REASON_ANNOTATION: &str = "cdi.kubevirt.io/storage.condition.running.reason";
/// Claim: the import cannot succeed, whatever is tried.
pub const IMPORT_FATAL_ERROR_ANNOTATION: &str = "cdi.kubevirt.io/storage.import.fatalError";

/// Storage class for virtual machines when none is named.
pub const DEFAULT_VIRT_CLASS_ANNOTATION: &str = "storageclass.kubevirt.io/is-default-virt-class";
/// Claim: complete access and volume mode from the StorageProfile.
pub const APPLY_STORAGE_PROFILE_LABEL: &str = "cdi.kubevirt.io/applyStorageProfile";
/// Pods and services: importer, cdi-upload-server or cdi-clone-source.
pub const COMPONENT_LABEL: &str = "cdi.kubevirt.io";
pub const APP_LABEL: (&str, &str) = ("app", "containerized-data-importer");
/// Claims and snapshots that exist only during a clone: UID of the claim they are for.
pub const OWNED_BY_UID_LABEL: &str = "cdi.kubevirt.io/OwnedByUID";
pub const UPLOAD_TARGET_LABEL: &str = "cdi.kubevirt.io/uploadTarget";

pub const CLONE_POPULATOR_FINALIZER: &str = "cdi.kubevirt.io/clonePopulator";
pub const CLONE_SOURCE_FINALIZER: &str = "cdi.kubevirt.io/cloneSource";
pub const CROSS_NAMESPACE_FINALIZER: &str = "cdi.kubevirt.io/dataVolumeFinalizer";

/// Name of the one CDIConfig.
pub const CONFIG_NAME: &str = "config";
/// Share of a file system that is left free when no setting says otherwise.
pub const DEFAULT_FILESYSTEM_OVERHEAD: &str = "0.06";
/// Volume mode that asks for the StorageProfile's.
pub const VOLUME_MODE_FROM_STORAGE_PROFILE: &str = "FromStorageProfile";
