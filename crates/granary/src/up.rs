//! `granary up`: the API, what it does by itself, and an orderly end, in one process.

use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::ACCEPT;
use axum::response::{IntoResponse, Response};
use granary_apiserver::auth::{self, Role};
use granary_apiserver::{ApiServer, ApiService, store, tls};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tower::ServiceExt;

use crate::arguments::UpArgs;
use crate::config::Config;
use crate::lock::DataDirLock;
use crate::{kubeconfig, landing, logs};

const ADMIN: &str = "admin";

pub async fn run(arguments: &UpArgs, connection: &granary_cli::ConnectionArgs) -> anyhow::Result<()> {
    let config = Config::gather(arguments, connection)?;
    logs::start(&config.log)?;
    serve(&config).await.map_err(|error| {
        if !is_full(&error) {
            return error;
        }
        let dir = config.data_dir.display();
        error.context(format!("the disk under {dir} is full; free some space and start again"))
    })
}

fn is_full(error: &anyhow::Error) -> bool {
    let kinds =
        error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    kinds.into_iter().any(|kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}

async fn serve(config: &Config) -> anyhow::Result<()> {
    let data_dir = &config.data_dir;
    make_private_dir(data_dir)?;
    let mut lock = DataDirLock::take(data_dir)?;
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!("cannot listen on {}; choose another address with --listen ADDRESS:PORT", config.listen)
    })?;
    let address = listener.local_addr()?;
    let server_url = format!("https://{}", reachable(address));
    if let Err(error) = lock.describe(&format!("granary up (pid {}, {server_url})", std::process::id())) {
        tracing::warn!(%error, "the lock file cannot tell others who holds it");
    }

    let (names, addresses) = certificate_names(config, address.ip());
    let certificates = tls::load_or_make(&data_dir.join("tls"), &names, &addresses)?;
    let mut options = store::Options::new(data_dir.join("granary.redb"));
    options.history = config.history;
    let definitions = granary_api::crds::all()
        .iter()
        .map(serde_json::to_value)
        .collect::<Result<Vec<_>, _>>()
        .context("the definitions of our kinds")?;
    let server = ApiServer::start(options, &definitions).await?;
    let token = admin_token(data_dir)?;
    server.ensure_token(ADMIN, Role::Admin, &token).await?;
    let document = kubeconfig::document(&server_url, &certificates.ca_pem, ADMIN, &token);
    write_if_changed(&data_dir.join("kubeconfig"), &serde_saphyr::to_string(&document)?)?;

    let housekeeping = tokio::spawn({
        let server = server.clone();
        async move { server.run_housekeeping().await }
    });
    let serving = tokio::spawn(granary_apiserver::serve(
        listener,
        certificates.config,
        router(&server),
        server.stopping(),
    ));
    let signals = StopSignals::listen()?;
    // Whoever waits for the announcement finds the log line already there.
    tracing::info!(address = %address, data = %data_dir.display(), "ready");
    announce(&server_url, data_dir)?;

    signals.wait().await;
    tracing::info!("stopping");
    server.stop();
    serving.await.context("the listener")??;
    housekeeping.await.context("housekeeping")?;
    server.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// The API on every path, and a page for browsers at the root.
fn router(server: &Arc<ApiServer>) -> Router {
    let api = ApiService(server.clone());
    Router::new().fallback(move |request: Request| {
        let api = api.clone();
        async move { answer(api, request).await }
    })
}

async fn answer(api: ApiService, request: Request) -> Response {
    let browser =
        request.headers().get(ACCEPT).and_then(|v| v.to_str().ok()).is_some_and(|a| a.contains("text/html"));
    if request.uri().path() == "/" && request.method() == Method::GET && browser {
        return landing::page().await.into_response();
    }
    match api.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The token of the data directory's owner; made at the first start.
fn admin_token(data_dir: &Path) -> anyhow::Result<String> {
    let path = data_dir.join("token");
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_string()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("token file {}", path.display())),
    }
    let token = auth::new_token();
    tls::write_private(&path, format!("{token}\n").as_bytes())?;
    Ok(token)
}

/// Leaves a file alone that is right already, so that a restart needs no space.
fn write_if_changed(path: &Path, text: &str) -> Result<(), tls::TlsError> {
    let private = std::fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o077 == 0);
    if private && std::fs::read_to_string(path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    tls::write_private(path, text.as_bytes())
}

fn make_private_dir(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("data directory {}; choose another with --data-dir", path.display()))
}

/// An address that a client on this machine can use.
fn reachable(mut address: std::net::SocketAddr) -> std::net::SocketAddr {
    if address.ip().is_unspecified() {
        let local = if address.is_ipv4() {
            IpAddr::from([127, 0, 0, 1])
        } else {
            IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1])
        };
        address.set_ip(local);
    }
    address
}

fn certificate_names(config: &Config, listen: IpAddr) -> (Vec<String>, Vec<IpAddr>) {
    let mut addresses = vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1])];
    if !listen.is_unspecified() && !addresses.contains(&listen) {
        addresses.push(listen);
    }
    let mut names = Vec::new();
    if let Ok(host) = rustix::system::uname().nodename().to_str() {
        names.push(host.to_string());
    }
    for name in &config.names {
        match name.parse() {
            Ok(ip) => addresses.push(ip),
            Err(_) => names.push(name.clone()),
        }
    }
    (names, addresses)
}

fn announce(server: &str, data_dir: &Path) -> anyhow::Result<()> {
    let dir = data_dir.display();
    // Where the directory is found without being named, commands are shorter.
    let environment = granary_cli::Environment::of_process();
    let flag = if environment.default_data_dir().as_deref() == Some(data_dir) {
        String::new()
    } else {
        format!(" --data-dir {dir}")
    };
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "Granary {} is ready.\n\n  API and page  {server}\n  kubeconfig    {dir}/kubeconfig\n  token         {dir}/token\n\n\
         Try next:\n  granary{flag} status\n  granary{flag} kinds\n  kubectl --kubeconfig {dir}/kubeconfig get namespaces\n\n\
         Ctrl-C stops it.",
        env!("CARGO_PKG_VERSION"),
    )?;
    Ok(out.flush()?)
}

/// Requests to stop. Listened to before anybody is told that the server is there: a signal that nobody listens
/// to ends the process without an orderly close.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Returns at the first request; the second one does not wait for anything.
    async fn wait(mut self) {
        self.next().await;
        tokio::spawn(async move {
            self.next().await;
            tracing::warn!("told to stop twice; leaving at once");
            std::process::exit(130);
        });
    }
}
