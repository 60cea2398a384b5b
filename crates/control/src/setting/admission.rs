//! What is looked at before a setting changes. A value that cannot work is refused here, where its author reads why,
//! rather than by pods that fail to start.

use futures::FutureExt;
use granary_api::cni::NetworkAttachmentDefinition;
use granary_api::longhorn::{GROUP, Setting, Volume, VolumeState};
use granary_apiserver::admission::{Hook, Operation, Phase, Request};
use kube::core::admission::AdmissionResponse;
use kube::core::{DynamicObject, admission};
use kube::{Api, Client, ResourceExt};

use super::catalogue::{self, STORAGE_NETWORK};
use super::network;

/// Why a setting is not changed.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Unfit(#[from] catalogue::Unfit),
    #[error("setting {0} cannot be deleted; set it to {1:?}, its default, instead")]
    Deleted(String, &'static str),
    #[error("the object is not a setting: {0}")]
    NoSetting(#[from] serde_json::Error),
    #[error("NetworkAttachmentDefinition {0} does not exist; create it first")]
    NoDefinition(String),
    #[error("NetworkAttachmentDefinition {0} cannot be used: {1}")]
    BadDefinition(String, String),
    #[error("{STORAGE_NETWORK} cannot change while volumes are attached; detach {}", list(.0))]
    Attached(Vec<String>),
    #[error("{0}")]
    Api(#[from] kube::Error),
}

/// To be registered with the API server, once.
pub fn hook(client: Client) -> Hook {
    let operations = [Operation::Create, Operation::Update, Operation::Delete];
    Hook::new("settings.longhorn.io", Phase::Validate, GROUP, &["settings"], &operations, move |request| {
        let client = client.clone();
        async move {
            let response = AdmissionResponse::from(&request);
            match review(&client, request).await {
                Ok(()) => response,
                Err(refused) => response.deny(refused.to_string()),
            }
        }
        .boxed()
    })
}

async fn review(client: &Client, request: Request) -> Result<(), Refused> {
    let Some(definition) = catalogue::find(&request.name) else { return Ok(()) };
    if request.operation == admission::Operation::Delete {
        return Err(Refused::Deleted(request.name, definition.default));
    }
    let Some(new) = request.object.map(setting).transpose()? else { return Ok(()) };
    let old = request.old_object.map(setting).transpose()?;
    definition.check(&new.spec.value)?;
    let before = old.map_or(String::new(), |old| old.spec.value);
    if definition.name == STORAGE_NETWORK && before != new.spec.value {
        check_network(client, &new.spec.value).await?;
        check_detached(client, new.namespace().as_deref().unwrap_or_default()).await?;
    }
    Ok(())
}

fn setting(object: DynamicObject) -> Result<Setting, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(object)?)
}

async fn check_network(client: &Client, value: &str) -> Result<(), Refused> {
    let Ok(network) = network::parse(value) else { return Ok(()) };
    let definitions: Api<NetworkAttachmentDefinition> = Api::namespaced(client.clone(), &network.namespace);
    let definition = definitions.get_opt(&network.name).await?;
    let definition = definition.ok_or_else(|| Refused::NoDefinition(value.to_owned()))?;
    network::check_definition(&definition).map_err(|why| Refused::BadDefinition(value.to_owned(), why))
}

async fn check_detached(client: &Client, namespace: &str) -> Result<(), Refused> {
    let volumes: Api<Volume> = Api::namespaced(client.clone(), namespace);
    let volumes = volumes.list(&kube::api::ListParams::default()).await?;
    let attached: Vec<String> =
        volumes.items.iter().filter(|volume| is_in_use(volume)).map(ResourceExt::name_any).collect();
    if attached.is_empty() {
        return Ok(());
    }
    Err(Refused::Attached(attached))
}

/// Also one that is only wanted somewhere: its processes may start before it says so.
fn is_in_use(volume: &Volume) -> bool {
    let wanted = volume.spec.node_id.as_deref().is_some_and(|node| !node.is_empty());
    let state = volume.status.as_ref().and_then(|status| status.state.as_ref());
    wanted || matches!(state, Some(VolumeState::Attached | VolumeState::Attaching | VolumeState::Detaching))
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
