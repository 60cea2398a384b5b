//! A new replica that shares a snapshot's layers. The source must not be served meanwhile.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use granary_block::disk::directory::Directory;
use granary_block::store::{CloneOptions, OpenOptions, Store};

pub fn run(from: &Path, snapshot: &str, to: &Path) -> anyhow::Result<()> {
    let source = Directory::open(from).with_context(|| format!("cannot open {}", from.display()))?;
    let source = Store::open(Arc::new(source), OpenOptions::default())?;
    let target = Directory::create(to).with_context(|| format!("cannot make {}", to.display()))?;
    let options = CloneOptions::default();
    source.clone_to(snapshot, &target, &options)?;
    println!("{} is replica {}, a clone of {} at {snapshot}", to.display(), options.replica, from.display());
    Ok(())
}
