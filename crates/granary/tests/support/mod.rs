//! A running Granary for tests, and the few words that the stories share.
//!
//! A story is told once and run against the server inside this process and against the real binary over TLS.

#![allow(dead_code, reason = "every test program uses its own part of this")]

mod binary;
pub mod raw;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use granary_apiserver::{ApiServer, store};
use kube::Client;
use tempfile::TempDir;

pub use binary::Binary;

/// Long enough for a loaded machine; a story that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Where the server of a story runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    InProcess,
    OverTls,
}

pub enum Granary {
    InProcess { server: Arc<ApiServer>, _dir: TempDir },
    OverTls(Box<Binary>),
}

impl Granary {
    pub async fn start(place: Place) -> Self {
        Self::start_with_history(place, Duration::from_secs(300)).await
    }

    /// `history` is how long a watch can be resumed.
    pub async fn start_with_history(place: Place, history: Duration) -> Self {
        match place {
            Place::InProcess => {
                let dir = tempfile::tempdir().unwrap();
                let mut options = store::Options::new(dir.path().join("granary.redb"));
                options.history = history;
                let definitions: Vec<_> =
                    granary_api::crds::all().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
                let server = ApiServer::start(options, &definitions).await.unwrap();
                let keeper = server.clone();
                tokio::spawn(async move { keeper.run_housekeeping().await });
                Self::InProcess { server, _dir: dir }
            }
            Place::OverTls => Self::OverTls(Box::new(Binary::start(history).await)),
        }
    }

    pub async fn client(&self, name: &str) -> Client {
        match self {
            Self::InProcess { server, .. } => server.client(name),
            Self::OverTls(binary) => binary.client().await,
        }
    }

    /// The server itself, for what only a part of the same process can do.
    pub fn server(&self) -> &Arc<ApiServer> {
        match self {
            Self::InProcess { server, .. } => server,
            Self::OverTls(_) => panic!("the server is another process"),
        }
    }
}

impl Drop for Granary {
    fn drop(&mut self) {
        if let Self::InProcess { server, .. } = self {
            server.stop();
        }
    }
}

/// Tells one story twice: in this process and over TLS.
#[macro_export]
macro_rules! everywhere {
    ($($story:ident),* $(,)?) => {
        mod in_process {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story($crate::support::Place::InProcess).await;
            })*
        }
        mod over_tls {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story($crate::support::Place::OverTls).await;
            })*
        }
    };
}

/// Waits until `look` gives something.
pub async fn eventually<T, F, Fut>(what: &str, mut look: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The result of `future`, which must not take forever.
pub async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(result) => result,
        Err(_) => panic!("waited in vain for {what}"),
    }
}
