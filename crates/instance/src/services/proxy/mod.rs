//! The proxy: passes what managers ask to the engines that this instance manager runs, and to nobody else. It must
//! never pass on what was meant for another engine.

mod engines;
mod hashes;
mod pending;
mod rates;
mod replicas;
mod service;
mod snapshots;
mod volume;

use std::sync::Arc;

pub use engines::Engines;

use crate::process::Registry;

#[derive(Clone)]
pub struct Proxy {
    engines: Arc<Engines>,
    hashes: Arc<hashes::Hashes>,
    rates: Arc<rates::Rates>,
}

impl Proxy {
    pub fn new(registry: &Registry) -> Self {
        Self { engines: Engines::start(registry), hashes: Arc::default(), rates: Arc::default() }
    }
}
