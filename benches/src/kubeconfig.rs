//! What a kubeconfig says about its current cluster: address, certificates, token.
//!
//! Only as much of the format as measuring needs; a file without a token is refused.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;

pub struct Target {
    pub server: String,
    pub token: String,
    pub roots: Vec<CertificateDer<'static>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: String,
    contexts: Vec<NamedContext>,
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: ContextPair,
}

#[derive(Deserialize)]
struct ContextPair {
    cluster: String,
    user: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Deserialize)]
struct User {
    token: Option<String>,
}

pub fn read(path: &Path) -> anyhow::Result<Target> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let config: Kubeconfig =
        serde_saphyr::from_str(&text).with_context(|| format!("parse {}", path.display()))?;
    let context = config.contexts.into_iter().find(|c| c.name == config.current_context);
    let context = context.context("the current context is not in the file")?.context;
    let cluster = config.clusters.into_iter().find(|c| c.name == context.cluster);
    let cluster = cluster.context("the context's cluster is not in the file")?.cluster;
    let user = config.users.into_iter().find(|u| u.name == context.user);
    let user = user.context("the context's user is not in the file")?.user;
    let pem = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => STANDARD.decode(data).context("certificate-authority-data is not base64")?,
        (None, Some(file)) => fs::read(file).with_context(|| format!("read {file}"))?,
        (None, None) => Vec::new(),
    };
    let roots = CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>();
    Ok(Target {
        server: cluster.server,
        token: user.token.context("the user has no token")?,
        roots: roots.context("the certificate authority is not PEM")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> anyhow::Result<Target> {
        let path = std::env::temp_dir().join(format!("api-bench-kubeconfig-{}", text.len()));
        fs::write(&path, text).unwrap();
        let target = read(&path);
        fs::remove_file(&path).unwrap();
        target
    }

    const FILE: &str = "
current-context: second
contexts:
- {name: first, context: {cluster: here, user: nobody}}
- {name: second, context: {cluster: there, user: admin}}
clusters:
- {name: here, cluster: {server: 'https://here'}}
- {name: there, cluster: {server: 'https://there'}}
users:
- {name: nobody, user: {}}
- {name: admin, user: {token: abc}}
";

    #[test]
    fn the_current_context_decides() {
        let target = written(FILE).unwrap();
        assert_eq!((target.server.as_str(), target.token.as_str()), ("https://there", "abc"));
    }

    #[test]
    fn a_user_without_a_token_is_refused() {
        let text = FILE.replace("current-context: second", "current-context: first");
        assert!(written(&text).is_err());
    }
}
