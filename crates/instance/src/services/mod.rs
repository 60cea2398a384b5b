//! What is offered over gRPC: the process service, the instance service, and the proxy to the engines.

mod instance;
mod process;
mod proxy;
mod stream;

pub use instance::Instances;
pub use process::Processes;
pub use proxy::Proxy;
