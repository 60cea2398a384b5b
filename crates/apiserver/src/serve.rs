//! The listener: TLS, HTTP/1.1 and HTTP/2 on one port, and an orderly end.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("connections cannot be accepted: {0}")]
    Accept(#[from] std::io::Error),
}

/// A client that does not finish its handshake in this time is not one of ours.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long open requests may take to end after a stop.
const DRAIN: Duration = Duration::from_secs(5);
/// Streams of one HTTP/2 connection; a controller holds a watch for every kind it looks at.
const MAX_STREAMS: u32 = 1000;

/// Serves `router` until `stopping` fires, then lets running requests end.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: axum::Router,
    stopping: CancellationToken,
) -> Result<(), ServeError> {
    let acceptor = TlsAcceptor::from(tls);
    let graceful = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            () = stopping.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) if is_passing(&error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            },
        };
        let (acceptor, router, watcher) = (acceptor.clone(), router.clone(), graceful.watcher());
        let stopping = stopping.clone();
        tokio::spawn(async move {
            // A client that has not finished its handshake has asked for nothing yet.
            let stream = tokio::select! {
                stream = handshake(stream, acceptor) => stream,
                () = stopping.cancelled() => None,
            };
            if let Some(stream) = stream {
                connection(stream, router, watcher).await;
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time and were cut off");
    }
    Ok(())
}

async fn handshake(stream: TcpStream, acceptor: TlsAcceptor) -> Option<TlsStream<TcpStream>> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no-delay is not available");
    }
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
    None
}

async fn connection(stream: TlsStream<TcpStream>, router: axum::Router, watcher: Watcher) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let service = hyper_util::service::TowerToHyperService::new(router);
    let running = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(running.into_owned()).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Out of file descriptors or memory for a moment: existing clients go on, new ones wait.
fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, OutOfMemory};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | OutOfMemory)
        || matches!(error.raw_os_error(), Some(23 | 24))
}
