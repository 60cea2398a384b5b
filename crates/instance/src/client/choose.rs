//! Which way leads to an engine.

use std::path::PathBuf;
use std::sync::Arc;

use granary_block::wire::address::Address;

use super::binary::Binary;
use super::connection::{Connection, Versions};
use super::engine::EngineClient;
use super::proxy::ProxyClient;

/// Everything one may need to know to reach an engine.
#[derive(Clone, Debug)]
pub struct EngineAt {
    /// Of the process that the engine is.
    pub name: String,
    pub volume: String,
    /// `HOST:PORT`, as its instance manager tells.
    pub address: String,
    /// For the program, where there is no proxy.
    pub control: Address,
    pub program: PathBuf,
}

/// Through the proxy of its instance manager, or, where that has none, by running a program.
pub fn engine_client(
    connection: &Arc<Connection>,
    versions: Versions,
    engine: &EngineAt,
) -> Box<dyn EngineClient> {
    if versions.proxy == 0 {
        return Box::new(Binary::new(engine.program.clone(), engine.control.clone()));
    }
    Box::new(ProxyClient::new(connection.clone(), &engine.address, &engine.volume, &engine.name))
}
