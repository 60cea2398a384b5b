//! Every kind Granary serves: types, validation, names. No I/O.

pub mod cdi;
pub mod cni;
pub mod crds;
pub mod harvester;
pub mod longhorn;
pub mod names;
pub mod quantity;
mod schema;
pub mod snapshot;
pub mod wire;
