//! The kubeconfig of the admin, for `granary`, `kubectl` and everything else that reads one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub fn document(server: &str, ca_pem: &str, user: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "granary",
        "clusters": [{
            "name": "granary",
            "cluster": { "server": server, "certificate-authority-data": STANDARD.encode(ca_pem) },
        }],
        "contexts": [{
            "name": "granary",
            "context": { "cluster": "granary", "user": user, "namespace": "default" },
        }],
        "users": [{ "name": user, "user": { "token": token } }],
    })
}
