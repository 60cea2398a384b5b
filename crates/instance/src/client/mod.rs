//! The manager's side: one connection to each instance manager, and one way to talk to an engine whatever is in
//! between.

mod binary;
mod choose;
mod connection;
mod engine;
mod model;
mod pool;
mod proxy;

pub use binary::Binary;
pub use choose::{EngineAt, engine_client};
pub use connection::{Connection, Target, Versions};
pub use engine::EngineClient;
pub use model::{ClientError, Rebuild, Replica, ReplicaMode, Snapshot, Volume};
pub use pool::Pool;
pub use proxy::ProxyClient;
