//! The controllers: they make what the objects of the API say, through the API and through instance managers.
//! They must never touch a disk or a volume's data; whether a copy may be trusted is decided by the engine.

pub mod context;
pub mod engine;
mod finalizer;
pub mod manager;
pub mod node;
mod process;
pub mod replica;
mod run;
pub mod schedule;
pub mod setting;
mod store;
pub mod volume;

pub use context::{Context, Managers};
pub use run::run;
