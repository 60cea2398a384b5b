//! `granary instance-manager`: runs engines and replicas as processes, and answers for them over gRPC.

mod arguments;

use std::os::unix::fs::DirBuilderExt;

use anyhow::Context;
use granary_instance::Server;
use tokio::signal::unix::{SignalKind, signal};

pub use arguments::InstanceManagerArgs;

use crate::lock::DataDirLock;
use crate::logs;

pub async fn run(arguments: &InstanceManagerArgs) -> anyhow::Result<()> {
    logs::start(&arguments.log)?;
    let settings = arguments.settings()?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&settings.state_dir)
        .with_context(|| format!("cannot make the state directory {}", settings.state_dir.display()))?;
    let mut lock = DataDirLock::take(&settings.state_dir).context("choose another --state-dir")?;
    let mut server = Server::start(settings, &arguments.listen()).await?;
    let address = server.address;
    lock.describe(&format!("granary instance-manager (pid {}, {address})", std::process::id()))?;
    let processes = server.registry.list().len();
    tracing::info!(%address, processes, "instance manager is ready");
    println!("ready {address} processes={processes}");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        why = server.failed() => anyhow::bail!("stopped answering: {why}"),
    }
    tracing::info!("stopping every process");
    server.stop().await;
    Ok(())
}
