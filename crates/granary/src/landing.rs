//! What a browser sees at the server's address: that Granary runs here and how to use it.

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;

const PAGE: &str = concat!(
    "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
    "<title>Granary</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:4rem auto;",
    "padding:0 1rem;color:#1a2b22}code,pre{background:#eef3ef;border-radius:4px;padding:.1rem .3rem}",
    "pre{padding:.8rem}@media(prefers-color-scheme:dark){body{background:#101613;color:#dfe9e3}",
    "code,pre{background:#1c2621}}</style>",
    "<h1>Granary ",
    env!("CARGO_PKG_VERSION"),
    "</h1><p>Granary is running. This address serves its Kubernetes-compatible API; every request needs a ",
    "token, which is in the data directory of the machine it runs on.</p>",
    "<pre>granary status\ngranary kinds\nkubectl --kubeconfig &lt;data-dir&gt;/kubeconfig get storageclasses</pre>",
    "<p>Health: <a href=/readyz?verbose>/readyz</a></p></html>",
);

pub async fn page() -> impl IntoResponse {
    (
        [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
        ],
        PAGE,
    )
}
