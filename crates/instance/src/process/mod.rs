//! Processes of this machine: what may run, what runs, and how it is started, replaced, stopped and found again.

mod adopt;
mod child;
mod condition;
mod foreign;
mod instance;
mod keys;
mod log;
mod plan;
mod ports;
mod ready;
mod record;
mod registry;
mod replace;
mod settings;
mod spec;
mod state;

pub use condition::sync_file_system;
pub use instance::{Instance, Status, View};
pub(crate) use log::read as read_log;
pub use plan::{Plan, Role};
pub use registry::{Registry, StartError};
pub use settings::Settings;
pub use spec::{Spec, check_name};
pub use state::State;
