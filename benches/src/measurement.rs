//! One measurement: the phases in their order, and the numbers that come out.
//!
//! The order matters: writes are measured on an empty namespace and again on a full one, since they must
//! not become slower with the number of objects.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use crate::connection::Server;
use crate::fanout::{self, FanoutSummary};
use crate::lists::{self, ListSummary};
use crate::load::{self, Bounds, Summary};
use crate::memory;
use crate::objects;

#[derive(Args)]
pub struct Options {
    /// Which server, and with which token
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Processes of the server, whose memory is added up
    #[arg(long, value_delimiter = ',')]
    pids: Vec<u32>,
    /// How many objects there are in the end
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    #[arg(long, default_value_t = 64)]
    clients: usize,
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Seconds for each phase of load
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds after which filling up is given up
    #[arg(long, default_value_t = 1200)]
    fill_seconds: u64,
    #[arg(long, default_value_t = 500)]
    page: usize,
    #[arg(long, default_value_t = 100)]
    watchers: usize,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Measurement {
    pub idle_mib: f64,
    pub create: Summary,
    pub get: Summary,
    pub update: Summary,
    pub fanout: FanoutSummary,
    pub fill: Summary,
    pub objects: usize,
    pub loaded_mib: f64,
    pub paged_list: ListSummary,
    pub whole_list: ListSummary,
    pub create_when_full: Summary,
}

pub async fn measure(options: &Options) -> anyhow::Result<Measurement> {
    let server = Arc::new(Server::connect(&options.kubeconfig, options.connections).await?);
    make_namespace(&server).await?;
    let bounds = Bounds {
        clients: options.clients,
        requests: options.objects / 5,
        time: Duration::from_secs(options.seconds),
    };
    let mut result = Measurement { idle_mib: memory::resident_mib(&options.pids)?, ..Measurement::default() };

    result.create = phase("create", create(&server, 0, bounds)).await?;
    let there = result.create.requests;
    let any = Bounds { requests: usize::MAX, ..bounds };
    result.get = phase("get", get(&server, there, any)).await?;
    result.update = phase("update", update(&server, there, any)).await?;
    let started = Instant::now();
    result.fanout = fanout::measure(&server, options.watchers, 100).await?;
    eprintln!("fan-out: {:.1} s", started.elapsed().as_secs_f64());

    let wanted = options.objects.saturating_sub(there);
    let fill = Bounds { requests: wanted, time: Duration::from_secs(options.fill_seconds), ..bounds };
    result.fill = phase("fill", create(&server, there, fill)).await?;
    result.objects = there + result.fill.requests;
    result.loaded_mib = memory::resident_mib(&options.pids)?;
    result.paged_list = lists::list(&server, options.page, &options.pids).await?;
    result.whole_list = lists::list(&server, 0, &options.pids).await?;
    // Few enough that a slow server gets there in time, too: both sides go on with the same number.
    let more = Bounds { requests: options.objects / 20, ..bounds };
    result.create_when_full = phase("create when full", create(&server, result.objects, more)).await?;
    Ok(result)
}

async fn phase(name: &str, load: impl Future<Output = anyhow::Result<Summary>>) -> anyhow::Result<Summary> {
    let summary = load.await.with_context(|| format!("phase {name}"))?;
    eprintln!("{name}: {} in {:.1} s", summary.requests, summary.seconds);
    Ok(summary)
}

async fn make_namespace(server: &Server) -> anyhow::Result<()> {
    let body = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, objects::NAMESPACE);
    let (status, answer) = server.call_any(Method::POST, "/api/v1/namespaces", body.into()).await?;
    anyhow::ensure!(
        status.is_success() || status == StatusCode::CONFLICT,
        "the namespace could not be made: {}",
        String::from_utf8_lossy(&answer)
    );
    Ok(())
}

async fn create(server: &Arc<Server>, first: usize, bounds: Bounds) -> anyhow::Result<Summary> {
    let server = server.clone();
    load::run(bounds, move |number| {
        let server = server.clone();
        async move {
            server.call(Method::POST, &objects::collection(), objects::body(first + number, 0)).await?;
            Ok(())
        }
    })
    .await
}

async fn get(server: &Arc<Server>, there: usize, bounds: Bounds) -> anyhow::Result<Summary> {
    let server = server.clone();
    load::run(bounds, move |number| {
        let server = server.clone();
        async move {
            // A stride that is prime to most counts visits the objects in no helpful order.
            let body = server.call(Method::GET, &objects::path(number * 7919 % there), Bytes::new()).await?;
            anyhow::ensure!(body.len() > 2048, "an object came back short");
            Ok(())
        }
    })
    .await
}

async fn update(server: &Arc<Server>, there: usize, bounds: Bounds) -> anyhow::Result<Summary> {
    let server = server.clone();
    load::run(bounds, move |number| {
        let server = server.clone();
        async move {
            let round = 1 + (number / there) as u32;
            let target = number * 7919 % there;
            server.call(Method::PUT, &objects::path(target), objects::body(target, round)).await?;
            Ok(())
        }
    })
    .await
}
