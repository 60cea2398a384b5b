//! Every kind Granary serves: types, validation, names. No I/O.

pub mod names;
pub mod quantity;
