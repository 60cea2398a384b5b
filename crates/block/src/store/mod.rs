//! A replica's bytes: one directory with a metadata file that is replaced atomically and a tree of sparse layers.
//! Knows nothing of engines, generations' meaning or the network; never changes a frozen layer's content.

mod belonging;
mod blocks;
mod cloning;
mod content;
mod digests;
mod doubt;
mod error;
mod expand;
mod flush;
mod inspect;
mod intents;
mod io;
mod layer;
mod metadata;
mod open;
mod options;
mod probe;
mod purge;
mod reading;
mod rebuild;
mod repair;
mod segments;
mod snapshots;
mod space;
mod state;
mod stripes;
#[cfg(test)]
mod tests;
mod view;

pub use error::{Result, StoreError};
pub use inspect::{Inspection, LayerReport, Problem, inspect};
pub use metadata::{BackingRecord, LayerRecord, Metadata};
pub use options::{BackingOptions, CloneOptions, CreateOptions, Limits, OpenOptions};
pub use repair::{Action, Remedy, plan_repair};
pub use state::Store;
