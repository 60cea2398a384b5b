//! The embedded Kubernetes API: store, watch, patch, admission, discovery, tables, auth.
//!
//! One [`ApiServer`] serves everybody: remote clients through [`serve`], controllers of the same process
//! through [`ApiServer::client`], with the same code behind both.

pub mod admission;
pub mod auth;
mod bootstrap;
pub mod builtin;
mod discovery;
mod documents;
pub mod error;
pub mod fields;
mod housekeeping;
pub mod http;
pub mod jsonpath;
pub mod meta;
mod metrics;
pub mod openapi;
pub mod patch;
pub mod registry;
pub mod schema;
pub mod selector;
mod serve;
pub mod store;
mod table;
pub mod tls;
pub mod verbs;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub use bootstrap::StartError;
pub use http::ApiService;
pub use metrics::Metrics;
pub use serve::{ServeError, serve};

use auth::{Authenticator, Identity};
use documents::Documents;
use verbs::Api;

/// The API with everything around it that does not depend on a network.
pub struct ApiServer {
    pub api: Arc<Api>,
    pub authenticator: Authenticator,
    pub metrics: Metrics,
    documents: Documents,
}

impl ApiServer {
    /// A client for a part of this process; it needs neither socket nor token.
    pub fn client(self: &Arc<Self>, component: &str) -> kube::Client {
        let identity = Identity::component(component);
        let agent = ::http::HeaderValue::from_str(component)
            .unwrap_or_else(|_| ::http::HeaderValue::from_static("granary"));
        let service = tower::ServiceBuilder::new()
            .map_request(move |mut request: ::http::Request<kube::client::Body>| {
                request.extensions_mut().insert(identity.clone());
                request.headers_mut().entry(::http::header::USER_AGENT).or_insert_with(|| agent.clone());
                request
            })
            .service(ApiService(self.clone()));
        kube::Client::new(service, "default")
    }

    /// Ends all watches and refuses new work, so that connections can close.
    pub fn stop(&self) {
        self.api.stopping.cancel();
    }

    /// Closes the store after everything else has ended. A store that is not closed is repaired at the next
    /// start, which takes longer the more it holds.
    pub async fn close(&self) {
        self.api.store.close().await;
    }

    /// Fires when the server begins to stop.
    pub fn stopping(&self) -> CancellationToken {
        self.api.stopping.clone()
    }
}
