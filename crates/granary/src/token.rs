//! `granary token`: users of the API. A token is shown once; the server keeps only its hash.

use std::io::Write;

use anyhow::{Context, bail};
use granary_apiserver::auth::{self, Role, SYSTEM_NAMESPACE, TOKEN_TYPE};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};

use crate::arguments::{TokenArgs, TokenCommand};

pub async fn run(arguments: &TokenArgs, connection: &granary_cli::ConnectionArgs) -> anyhow::Result<()> {
    let environment = granary_cli::Environment::of_process();
    let session = granary_cli::Session::open(connection, &environment).await?;
    let secrets: Api<Secret> = Api::namespaced(session.client(), SYSTEM_NAMESPACE);
    match &arguments.command {
        TokenCommand::Create { user, role } => create(&secrets, user, role).await,
        TokenCommand::List => list(&secrets).await,
        TokenCommand::Revoke { user } => revoke(&secrets, user).await,
    }
}

async fn create(secrets: &Api<Secret>, user: &str, role: &str) -> anyhow::Result<()> {
    let Some(role) = Role::parse(role) else {
        bail!("role {role:?} is not known; use admin or read-only");
    };
    let token = auth::new_token();
    let secret = auth::token_secret(user, role, &token);
    let name = granary_apiserver::meta::name(&secret).to_string();
    if secrets.get_opt(&name).await?.is_some() {
        bail!("{user} has a token already; revoke it first with `granary token revoke {user}`");
    }
    let parameters = PatchParams::apply("granary").force();
    secrets
        .patch(&name, &parameters, &Patch::Apply(&secret))
        .await
        .with_context(|| format!("the token of {user} could not be stored"))?;
    writeln!(std::io::stdout(), "{token}")?;
    eprintln!("This token of {user} ({}) cannot be shown again.", role.name());
    Ok(())
}

async fn list(secrets: &Api<Secret>) -> anyhow::Result<()> {
    let parameters = ListParams::default().fields(&format!("type={TOKEN_TYPE}"));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:<24}{:<12}CREATED", "USER", "ROLE")?;
    for secret in secrets.list(&parameters).await? {
        let field = |name: &str| {
            let bytes = secret.data.as_ref().and_then(|data| data.get(name)).map(|b| b.0.clone());
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        };
        let created =
            secret.metadata.creation_timestamp.as_ref().map(|t| t.0.to_string()).unwrap_or_default();
        writeln!(out, "{:<24}{:<12}{created}", field("user"), field("role"))?;
    }
    Ok(())
}

async fn revoke(secrets: &Api<Secret>, user: &str) -> anyhow::Result<()> {
    let name = format!("token-{user}");
    match secrets.get_opt(&name).await? {
        Some(secret) if secret.type_.as_deref() == Some(TOKEN_TYPE) => {}
        _ => bail!("{user} has no token; see `granary token list`"),
    }
    secrets.delete(&name, &DeleteParams::default()).await?;
    writeln!(std::io::stdout(), "the token of {user} is revoked")?;
    Ok(())
}
