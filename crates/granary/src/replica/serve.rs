//! Serves one replica until it is told to stop.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use granary_block::disk::Disk;
use granary_block::disk::directory::Directory;
use granary_block::ids::LayerId;
use granary_block::replica::server::Server;
use granary_block::size;
use granary_block::store::{BackingOptions, CreateOptions, Limits, OpenOptions, Store, StoreError};
use granary_block::wire::key::Key;
use tokio::signal::unix::{SignalKind, signal};

use super::arguments::ServeArgs;
use crate::logs;

pub fn run(arguments: &ServeArgs, log: &str) -> anyhow::Result<()> {
    logs::start(log)?;
    let key = Key::read(&arguments.key_file)?;
    let store = Arc::new(open(arguments)?);
    if let Some(volume) = &arguments.volume {
        store.set_volume(volume).with_context(|| arguments.dir.display().to_string())?;
    }
    // One thread for the sockets; what may block has threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let server = Server::bind(&arguments.listen, store.clone(), key).await?;
        let (replica, size) = (store.info()?.replica, store.size());
        tracing::info!(address = %server.address(), %replica, size, "replica is ready");
        println!("ready {} replica={replica} size={size}", server.address());
        server
            .run(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                tracing::info!("stopping");
            })
            .await
            .context("what was written last may not be on disk")
    })
}

fn open(arguments: &ServeArgs) -> anyhow::Result<Store> {
    let dir = &arguments.dir;
    let limits = limits(arguments);
    let disk = Arc::new(Directory::create(dir).with_context(|| format!("cannot use {}", dir.display()))?);
    let opened = Store::open(disk.clone(), OpenOptions { limits: limits.clone() });
    match opened {
        Ok(store) => {
            check(arguments, &store)?;
            Ok(store)
        }
        Err(StoreError::NotAVolume { .. }) => create(arguments, disk, limits),
        Err(error) => Err(error.into()),
    }
}

/// A flag that says something else than what the directory holds is a mistake, and never a wish to change it.
fn check(arguments: &ServeArgs, store: &Store) -> anyhow::Result<()> {
    let dir = arguments.dir.display();
    let own = store.size();
    if let Some(wanted) = arguments.size.filter(|wanted| *wanted != own) {
        bail!(
            "{dir} holds a volume of {} ({own} bytes), not of {} ({wanted} bytes); leave --size out, and grow the \
             volume through its engine",
            size::show(own),
            size::show(wanted)
        );
    }
    if let Some(wanted) = &arguments.backing {
        let wanted = absolute(wanted)?;
        let layers = store.info()?.layers;
        let own = layers.iter().find_map(|layer| layer.backing.as_deref());
        if own != Some(wanted.as_str()) {
            bail!("{dir} stands on {}, not on {wanted}; leave --backing out", own.unwrap_or("no image"));
        }
    }
    Ok(())
}

fn create(arguments: &ServeArgs, disk: Arc<dyn Disk>, limits: Limits) -> anyhow::Result<Store> {
    let Some(size) = arguments.size else {
        bail!("{} holds no volume yet; give its --size, e.g. --size 10GiB", arguments.dir.display());
    };
    let backing = arguments
        .backing
        .as_deref()
        .map(|path| {
            Ok::<_, anyhow::Error>(BackingOptions { path: absolute(path)?, layer: LayerId::random() })
        })
        .transpose()?;
    let store = Store::create(disk, CreateOptions { backing, limits, ..CreateOptions::new(size) })?;
    tracing::info!(dir = %arguments.dir.display(), size, "made a new replica");
    Ok(store)
}

/// The image is looked for at every start, from wherever the process is started then.
fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = path.canonicalize().with_context(|| format!("backing image {}", path.display()))?;
    path.into_os_string().into_string().map_err(|path| anyhow::anyhow!("{} is not UTF-8", path.display()))
}

/// The head is a layer too, and so is a backing image.
fn limits(arguments: &ServeArgs) -> Limits {
    let mut limits = Limits::default();
    if let Some(snapshots) = arguments.max_snapshots {
        limits.layers = snapshots as usize + 1 + usize::from(arguments.backing.is_some());
    }
    limits
}
