//! From a data directory to a running API: opens the store, serves known definitions, makes what must exist.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::admission::Admission;
use crate::auth::{self, Authenticator, Identity, Role, SYSTEM_NAMESPACE};
use crate::documents::Documents;
use crate::error::ApiError;
use crate::housekeeping::{self, internal_call};
use crate::http::media::Decoded;
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::store::{self, Key, Prefix, Store, StoreError};
use crate::verbs::{Api, Sent, is_established};
use crate::{ApiServer, meta};

/// Why the API could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{what} could not be made: {source}")]
    Make { what: String, source: ApiError },
}

const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system", SYSTEM_NAMESPACE];

impl ApiServer {
    /// Opens the store and makes the API ready to serve; `definitions` are the custom kinds it brings along.
    pub async fn start(options: store::Options, definitions: &[Value]) -> Result<Arc<Self>, StartError> {
        let store = Store::open(options)?;
        let api = Arc::new(Api {
            store: store.clone(),
            registry: Registry::new(),
            admission: Admission::default(),
            stopping: CancellationToken::new(),
        });
        let server = Arc::new(Self {
            api,
            authenticator: Authenticator::new(store),
            metrics: Metrics::new(),
            documents: Documents::default(),
        });
        server.serve_stored_definitions()?;
        for namespace in NAMESPACES {
            server.ensure("namespaces", "", json!({ "metadata": { "name": namespace } })).await?;
        }
        for definition in definitions {
            server.ensure_definition(definition).await?;
        }
        Ok(server)
    }

    /// Runs what the server does by itself, until it is stopped.
    pub async fn run_housekeeping(self: &Arc<Self>) {
        housekeeping::run(self.api.clone()).await;
    }

    fn serve_stored_definitions(&self) -> Result<(), StartError> {
        let snapshot = self.api.store.snapshot(None)?;
        let prefix = Prefix::resource("customresourcedefinitions.apiextensions.k8s.io");
        let mut start: Option<String> = None;
        loop {
            let page = snapshot.page(&prefix, start.as_deref(), usize::MAX, |_, _| true)?;
            for stored in page.items {
                let crd: Value = serde_json::from_slice(&stored.json).unwrap_or_default();
                if is_established(&crd)
                    && let Err(errors) = self.api.registry.put_crd(&crd)
                {
                    tracing::error!(crd = meta::name(&crd), ?errors, "a stored definition cannot be served");
                }
            }
            match page.next {
                Some(next) => start = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Makes an object of the core group unless it is there.
    async fn ensure(&self, plural: &str, namespace: &str, object: Value) -> Result<(), StartError> {
        let Some(resource) = self.api.registry.get("", "v1", plural) else { return Ok(()) };
        let name = meta::name(&object).to_string();
        let key = Key::new(&resource.storage, namespace, &name);
        if self.api.store.get(&key)?.is_some() {
            return Ok(());
        }
        let mut call = internal_call(&resource, namespace, "");
        call.user = Identity::component("bootstrap");
        let sent = Decoded { value: object, duplicates: Vec::new() };
        let made = self.api.create(&mut call, sent).await;
        made.map(|_| ()).map_err(|source| StartError::Make { what: format!("{plural} {name}"), source })
    }

    /// Applies a definition of ours, when it differs from what is stored.
    async fn ensure_definition(&self, definition: &Value) -> Result<(), StartError> {
        let found = self.api.registry.get("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let Some(resource) = found else { return Ok(()) };
        let name = meta::name(definition).to_string();
        let mut call = internal_call(&resource, "", &name);
        call.query.field_manager = "granary".into();
        call.query.force = true;
        let applied = self.api.patch(&mut call, Sent::Apply(definition.clone())).await;
        applied.map(|_| ()).map_err(|source| StartError::Make { what: format!("definition {name}"), source })
    }

    /// Makes `token` valid for `user`, replacing an earlier token of that user.
    pub async fn ensure_token(&self, user: &str, role: Role, token: &str) -> Result<(), StartError> {
        let Some(resource) = self.api.registry.get("", "v1", "secrets") else { return Ok(()) };
        let secret = auth::token_secret(user, role, token);
        let name = meta::name(&secret).to_string();
        let key = Key::new(&resource.storage, SYSTEM_NAMESPACE, &name);
        let Some(stored) = self.api.store.get(&key)? else {
            return self.ensure("secrets", SYSTEM_NAMESPACE, secret).await;
        };
        let known: Value = serde_json::from_slice(&stored.json).unwrap_or_default();
        if auth::secret_is_for(&known, token) {
            return Ok(());
        }
        let mut call = internal_call(&resource, SYSTEM_NAMESPACE, &name);
        let sent = Sent::MergePatch(json!({ "data": secret["data"] }));
        let made = self.api.patch(&mut call, sent).await;
        made.map(|_| ()).map_err(|source| StartError::Make { what: format!("token of {user}"), source })
    }
}
