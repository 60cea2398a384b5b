//! A few HTTP/2 connections to one server, shared by all load generators.
//!
//! Kept as thin as possible, so that the client does not become what is measured: connections are opened
//! once, bodies are bytes that were made beforehand, answers are not parsed here.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::kubeconfig;

/// Lists are large; with HTTP/2's default window of 64 KiB we would measure round trips of window updates.
const WINDOW: u32 = 8 << 20;

pub struct Server {
    base: String,
    authorization: String,
    connections: Vec<SendRequest<Full<Bytes>>>,
    next: AtomicUsize,
}

impl Server {
    pub async fn connect(kubeconfig: &Path, connections: usize) -> anyhow::Result<Self> {
        let target = kubeconfig::read(kubeconfig)?;
        let base: Uri = target.server.parse()?;
        let tls = connector(target.roots)?;
        let mut opened = Vec::with_capacity(connections);
        for _ in 0..connections {
            opened.push(open(&base, &tls).await?);
        }
        Ok(Self {
            base: target.server.trim_end_matches('/').to_string(),
            authorization: format!("Bearer {}", target.token),
            connections: opened,
            next: AtomicUsize::new(0),
        })
    }

    /// Sends one request over one of the connections, in turn.
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::AUTHORIZATION, &self.authorization)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "api-bench")
            .body(Full::new(body))?;
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let mut connection = self.connections[turn].clone();
        connection.ready().await?;
        Ok(connection.send_request(request).await?)
    }

    /// Sends a request and takes in the whole answer, which must be a success.
    pub async fn call(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let (status, body) = self.call_any(method, path, body).await?;
        if !status.is_success() {
            bail!("{path}: {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }

    pub async fn call_any(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let response = self.send(method, path, body).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}

fn connector(roots: Vec<CertificateDer<'static>>) -> anyhow::Result<TlsConnector> {
    let mut store = rustls::RootCertStore::empty();
    for root in roots {
        store.add(root)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn open(base: &Uri, tls: &TlsConnector) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let host = base.host().context("the server has no host")?;
    let port = base.port_u16().unwrap_or(443);
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let stream = tls.connect(ServerName::try_from(host.to_string())?, stream).await?;
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW * 2)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            eprintln!("api-bench: a connection ended: {error}");
        }
    });
    Ok(sender)
}
