//! Granary's command line for users: `get`, `describe`, `apply`, `delete`, `wait`, `events`,
//! `status`, `kinds` and `version` against any Kubernetes API, the embedded one or a cluster's.
//! It never touches a data directory beyond reading the kubeconfig in it.
//!
//! A program flattens [`ConnectionArgs`], mounts [`Command`] and calls [`run_to_exit`]; the exit
//! codes are those of [`Exit`].

mod colour;
mod commands;
mod connection;
mod discovery;
mod duration;
mod environment;
mod error;
mod event;
mod exit;
mod fieldpath;
mod follow;
mod format;
mod goal;
mod health;
mod kinds;
mod manifest;
mod output;
mod pages;
mod request;
mod selection;
mod session;
mod sort;
mod table;
mod targets;
mod text;
mod tree;
mod waiting;

pub use commands::{Command, run, run_in, run_to_exit};
pub use connection::{ColourChoice, Connected, ConnectionArgs, Origin};
pub use environment::Environment;
pub use error::CliError;
pub use exit::{EXIT_CODES_HELP, Exit};
pub use output::Output;
pub use session::Session;
pub use text::{Columns, cell};
